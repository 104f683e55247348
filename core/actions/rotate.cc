// rotate: does a job of the same queue and priority that has had its turn, by the queue's job
// order, hold what this one needs? Victims are preemptible jobs that rank behind it by at least the
// order's gap (JobOrder::PrepareStanding): levels of attained service, or twice as much remaining
// work. The standing of a running job only falls or rises by a few steps, and a stopped job keeps
// its attained service. So of two jobs that compete for the same room, each gives way a few times
// at most.
//
//   least_attained, full node of 8:   A has had 5 h on 8 devices (level 2); B comes and wants 2
//   A is stopped after a checkpoint, B starts; A waits in level 2, and starts again
//   after B
//
// A job gives way only when most of its work since its start is saved: it writes checkpoints, and
// the time since the last one is at most a fifth of the run. So rotation loses at most a fifth of
// all device time, and every turn makes progress. The job is considered again at its next
// checkpoint.
//
//   checkpoints every 10 min:   not before 10 min;  from 10 to 12.5;  20 to 25;  30 to 37.5;  from
//   40 on
//
// The queue's fair share limits rotation (core/engine/shares/queue_bounds.h). Without such a job
// order the action does nothing.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/actions/eviction.h"
#include "core/engine/victims/domain_victims.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

constexpr int64_t kMostLost = 5;  // a fifth

// When enough of the work since the job's start is saved for it to give way: `now`, or its next
// checkpoint. InfiniteFuture for a job without checkpoints.
Time MayGiveWay(const Job& job, Time now) {
  if (job.checkpoint_interval == absl::InfiniteDuration()) return absl::InfiniteFuture();
  const Duration interval = std::max(job.checkpoint_interval, absl::Seconds(1));
  const bool runs = job.status.state == JobState::kRunning && job.status.start < now;
  if (!runs) return now + interval;
  if (IsPaused(job.status)) return absl::InfiniteFuture();
  const Duration ran = RunTime(job.status, now);
  const Duration kept = absl::Floor(ran, interval);
  return (ran - kept) * kMostLost <= ran ? now : now + (kept + interval - ran);
}

struct Ranked {
  int64_t value = 0;
  VictimUnit unit;
};

// The units of one queue's jobs, most service first.
struct Crowd {
  std::vector<Ranked> units;
  Time again = absl::InfiniteFuture();  // when a job may have become a victim
};

class Rotation {
 public:
  explicit Rotation(Cycle& cycle) : cycle_(cycle), state_(cycle.state()) {
    for (const auto& order : cycle.policies().job_orders()) {
      standing_ = order->PrepareStanding(cycle.policies());
      if (standing_ == nullptr) continue;
      order_ = order.get();
      return;
    }
  }

  bool any() const { return order_ != nullptr; }
  RoomMade Help(const Job& job, const JobNeeds& needs);
  const ClusterState& state() const { return state_; }
  Time now() const { return cycle_.now(); }
  Standing Of(const Job& job) const { return standing_(state_, job, cycle_.now()); }
  const Crowd& CrowdOf(QueueId queue);

 private:
  std::string Barred(const Job& job, const VictimOutcome& outcome) const;

  Cycle& cycle_;
  const ClusterState& state_;
  JobStanding standing_;
  const JobOrder* order_ = nullptr;
  std::map<QueueId, Crowd> crowds_;
};

// Victims for one job: units with its priority and a standing of at least `least`.
class RotationVictims final : public VictimSource {
 public:
  RotationVictims(Rotation& rotation, const Job& job, int64_t least, UsefulJob useful)
      : rotation_(rotation),
        crowd_(rotation.CrowdOf(job.queue)),
        job_(job),
        least_(least),
        useful_(std::move(useful)) {}

  std::optional<VictimUnit> Next() override {
    for (; next_ < crowd_.units.size() && crowd_.units[next_].value >= least_;) {
      const VictimUnit& unit = crowd_.units[next_++].unit;
      const Job& victim = rotation_.state().jobs().At(unit.job);
      if (!Equal(victim) || !MayGo(victim)) continue;
      if (useful_ == nullptr || useful_(victim)) return unit;
    }
    return std::nullopt;
  }
  bool CouldGive(const Job& victim) const override {
    return Equal(victim) && rotation_.Of(victim).value >= least_ &&
           MayGiveWay(victim, rotation_.now()) <= rotation_.now();
  }
  Time protected_until() const override { return crowd_.again; }

 private:
  bool Equal(const Job& victim) const {
    return victim.queue == job_.queue && victim.id != job_.id && victim.priority == job_.priority;
  }

  Rotation& rotation_;
  const Crowd& crowd_;
  const Job& job_;
  const int64_t least_;
  const UsefulJob useful_;
  size_t next_ = 0;
};

const Crowd& Rotation::CrowdOf(QueueId queue) {
  const auto [slot, fresh] = crowds_.try_emplace(queue);
  Crowd& crowd = slot->second;
  if (!fresh) return crowd;
  UnitMaker maker(state_, cycle_.policies().eviction(), cycle_.now());
  std::vector<VictimUnit> units;
  for (const OrderKey& key : state_.queues().At(queue).occupying_jobs) {
    const Job& job = state_.jobs().At(key.job);
    cycle_.CountWork(1);
    if (!job.preemptible) continue;
    const Standing standing = Of(job);
    crowd.again = std::min(crowd.again, standing.until);
    const Time may = MayGiveWay(job, cycle_.now());
    if (may > cycle_.now()) {
      crowd.again = std::min(crowd.again, may);
      continue;
    }
    units.clear();
    maker.AddUnitsOf(job, &units);
    for (VictimUnit& unit : units) crowd.units.push_back({standing.value, std::move(unit)});
  }
  crowd.again = std::min(crowd.again, maker.TakeProtectedUntil());
  std::stable_sort(crowd.units.begin(), crowd.units.end(), [](const Ranked& a, const Ranked& b) {
    if (a.value != b.value) return a.value > b.value;
    if (a.unit.job == b.unit.job) return false;  // surplus tasks first, in order of creation
    if (a.unit.loss != b.unit.loss) return a.unit.loss < b.unit.loss;
    return a.unit.job > b.unit.job;
  });
  return crowd;
}

std::string Rotation::Barred(const Job& job, const VictimOutcome& outcome) const {
  if (outcome.some_may_go && outcome.barred != nullptr) return outcome.barred;
  return absl::StrCat("no job of priority ", job.priority, " in queue ",
                      state_.queues().At(job.queue).spec.name, " has had its turn (",
                      order_->name(), ") and made a checkpoint recently");
}

RoomMade Rotation::Help(const Job& job, const JobNeeds& needs) {
  if (!needs.gang) return {.barred = "tasks beyond the minimum use only free room"};
  const Queue& queue = state_.queues().At(job.queue);
  const int64_t least = Of(job).value + order_->StandingGap();
  const VictimPlanGoal goal{.job = job,
                            .needs = needs,
                            .reason = ReleaseReason::kPreempted,
                            .claim_room = cycle_.shares().At(queue.id).fair_share - queue.claimed,
                            .why = [this](const Job&, int32_t) {
                              return absl::StrCat("it has had its turn (", order_->name(), ")");
                            }};
  const VictimOutcome outcome = PlanVictims(cycle_, goal, [&](UsefulJob useful) {
    return std::make_unique<RotationVictims>(*this, job, least, std::move(useful));
  });
  return ResultOf(cycle_, outcome, Barred(job, outcome));
}

class RotateAction final : public Action {
 public:
  absl::string_view name() const override { return "rotate"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Rotation rotation(cycle);
    if (!rotation.any()) return;
    ForEachMissed(cycle, name(),
                  [&](const Job& job, const JobNeeds& needs) { return rotation.Help(job, needs); });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    Rotation rotation(cycle);
    return rotation.any() && rotation.Help(job, needs).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeRotate() { return std::make_unique<RotateAction>(); }

}  // namespace berth
