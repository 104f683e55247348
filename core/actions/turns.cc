#include "core/actions/turns.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/pauses.h"

namespace berth {
namespace {

Duration SliceOf(const ClusterState& state, const Job& job) {
  return state.queues().At(job.queue).spec.slice;
}

Time TurnEnds(const ClusterState& state, const Job& job) {
  return TurnBegan(job.status) + SliceOf(state, job);
}

std::string WhyItsTurnIsOver(const ClusterState& state, const Job& job) {
  return absl::StrCat("its turn of ", absl::FormatDuration(SliceOf(state, job)), " is over");
}

// Since when a job without places has waited for them.
Time WaitsSince(const Job& job, Time now) {
  Time since = std::max(job.submit, job.status.eviction.time);
  if (job.status.hold_until <= now) since = std::max(since, job.status.hold_until);
  return since;
}

// Whom the job may pause to enter. `again`: the earliest end of a turn that is not over.
bool MayPauseToEnter(const ClusterState& state, const Job& job, const Job& victim, Time now,
                     Time* again) {
  if (!TakesTurns(state, victim) || !CanYield(state, victim)) return false;
  if (victim.priority < job.priority) return true;
  if (IsPaused(victim.status)) return victim.status.pause.since > WaitsSince(job, now);
  const Time ends = TurnEnds(state, victim);
  if (ends > now) *again = std::min(*again, ends);
  return ends <= now;
}

// One frozen job that waits for its CPU, or for devices that it lends.
struct InLineForTurn {
  const Job* job = nullptr;
  std::map<NodeId, int64_t> cpu;        // that its tasks need there
  std::map<NodeId, DeviceSet> devices;  // that they lend there
};

class TurnPasser {
 public:
  explicit TurnPasser(Cycle& cycle) : cycle_(cycle), state_(cycle.state()) {}

  void Run() {
    for (const InLineForTurn& waiting : Line()) Serve(waiting);
    cycle_.transaction().Sync();
  }

 private:
  std::vector<InLineForTurn> Line();
  void Serve(const InLineForTurn& waiting);
  bool AddUsersOf(const DeviceSet& devices, NodeId node, const Job& job,
                  std::vector<const Job*>* over);
  std::vector<const Job*> WhoseTurnIsOver(const Job& job, NodeId node);
  void GiveCpu(const Job& victim, std::map<NodeId, int64_t>* left) const;
  void PauseFor(const Job& job, const Job& victim);

  Cycle& cycle_;
  const ClusterState& state_;
  // CPU of the nodes that is unused, or will be, after the jobs before in the line.
  std::map<NodeId, int64_t> left_;
};

// The line: by priority, then who was paused first. Fills in what is left of their nodes: without
// what is reserved there for others.
std::vector<InLineForTurn> TurnPasser::Line() {
  std::map<JobId, InLineForTurn> jobs;
  for (const TaskKey& key : state_.resuming()) {
    const Job& job = state_.jobs().At(key.job);
    const Task& task = job.tasks[key.task];
    if (!TakesTurns(state_, job) || job.status.suspended || task.state != TaskState::kRunning) {
      continue;
    }
    cycle_.CountWork(1);
    const int64_t cpu = CpuOf(state_, job, key.task);
    jobs[key.job].job = &job;
    jobs[key.job].cpu[task.node] += cpu;
    if (task.devices_lent) jobs[key.job].devices[task.node] |= task.devices;
    const Node& node = state_.nodes().At(task.node);
    const int64_t unclaimed = UnusedCpu(node) + node.leaving[kCpu] - node.reserved[kCpu];
    left_.try_emplace(task.node, unclaimed).first->second += cpu;
  }
  std::vector<InLineForTurn> line;
  for (auto& [id, waiting] : jobs) line.push_back(std::move(waiting));
  std::stable_sort(line.begin(), line.end(), [](const InLineForTurn& a, const InLineForTurn& b) {
    return std::tuple(-int64_t{a.job->priority}, a.job->status.pause.since) <
           std::tuple(-int64_t{b.job->priority}, b.job->status.pause.since);
  });
  return line;
}

// Jobs on the node that may be paused for this one, who has run longest first.
std::vector<const Job*> TurnPasser::WhoseTurnIsOver(const Job& job, NodeId node) {
  std::set<JobId> there;
  for (const TaskKey& key : state_.nodes().At(node).tasks) there.insert(key.job);
  std::vector<const Job*> jobs;
  for (const JobId id : there) {
    const Job& other = state_.jobs().At(id);
    cycle_.CountWork(1);
    const bool competes = other.queue == job.queue && other.priority <= job.priority;
    if (!competes || IsPaused(other.status) || !TakesTurns(state_, other)) continue;
    if (!CanYield(state_, other)) continue;
    if (const Time ends = TurnEnds(state_, other); ends > cycle_.now()) {
      cycle_.WakeBy(ends);
    } else {
      jobs.push_back(&other);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return TurnBegan(a->status) < TurnBegan(b->status);
  });
  return jobs;
}

// Those that use devices which the job lends: false if not all of them may be paused, and lend
// them.
bool TurnPasser::AddUsersOf(const DeviceSet& devices, NodeId node, const Job& job,
                            std::vector<const Job*>* over) {
  const std::vector<const Job*> may = WhoseTurnIsOver(job, node);
  for (const TaskKey& key : state_.nodes().At(node).tasks) {
    const Job& user = state_.jobs().At(key.job);
    const Task& task = user.tasks[key.task];
    if (!DevicesHeld(task).Overlaps(devices) || GivesRoom(task)) continue;
    const bool passes = std::find(may.begin(), may.end(), &user) != may.end() &&
                        MayLend(state_, user, key.task) &&
                        state_.nodes().At(node).spec.checkpoints_devices;
    if (!passes) return false;
    if (std::find(over->begin(), over->end(), &user) == over->end()) over->push_back(&user);
  }
  return true;
}

// All its nodes, or nobody is paused. It keeps those behind it from what it waits for.
void TurnPasser::Serve(const InLineForTurn& waiting) {
  std::map<NodeId, int64_t> left = left_;
  std::vector<const Job*> over;
  bool fits = true;
  for (const auto& [node, devices] : waiting.devices) {
    fits = fits && AddUsersOf(devices, node, *waiting.job, &over);
  }
  for (const Job* victim : over) GiveCpu(*victim, &left);
  for (const auto& [node, cpu] : waiting.cpu) {
    if (left[node] >= cpu) continue;
    for (const Job* victim : WhoseTurnIsOver(*waiting.job, node)) {
      if (left[node] >= cpu) break;
      if (std::find(over.begin(), over.end(), victim) != over.end()) continue;
      over.push_back(victim);
      GiveCpu(*victim, &left);
    }
    fits &= left[node] >= cpu;
  }
  if (fits) {
    for (const Job* victim : over) PauseFor(*waiting.job, *victim);
    // Nodes of victims alone are looked at anew when somebody waits there.
    for (auto& [node, cpu] : left_) cpu = left[node];
  }
  for (const auto& [node, cpu] : waiting.cpu) left_[node] -= cpu;
}

void TurnPasser::GiveCpu(const Job& victim, std::map<NodeId, int64_t>* left) const {
  for (uint32_t i = 0; i < victim.tasks.size(); ++i) {
    const Task& task = victim.tasks[i];
    if (Occupies(task.state)) (*left)[task.node] += CpuOf(state_, victim, i);
  }
}

void TurnPasser::PauseFor(const Job& job, const Job& victim) {
  std::vector<uint32_t> tasks;
  for (uint32_t i = 0; i < victim.tasks.size(); ++i) {
    if (Occupies(victim.tasks[i].state)) tasks.push_back(i);
  }
  const Duration longest = cycle_.policies().lifecycle().longest_pause;
  cycle_.transaction().Decide(TasksPaused{.job = victim.id,
                                          .tasks = std::move(tasks),
                                          .until = cycle_.now() + longest,
                                          .beneficiary = job.id,
                                          .detail = WhyItsTurnIsOver(state_, victim)});
}

}  // namespace

VictimOutcome PlanTurn(Cycle& cycle, UnitPool& pool, const Job& job, const JobNeeds& needs) {
  const ClusterState& state = cycle.state();
  const Time now = cycle.now();
  Time again = now + SliceOf(state, job);
  const VictimPlanGoal goal{
      .job = job,
      .needs = needs,
      .reason = ReleaseReason::kPreempted,
      .pauses = true,
      .only_pauses = true,
      .why = [&state](const Job& victim, int32_t) { return WhyItsTurnIsOver(state, victim); }};
  VictimOutcome outcome = PlanVictims(cycle, goal, [&](UsefulJob useful) {
    UsefulJob over = [&, also = std::move(useful)](const Job& victim) {
      return MayPauseToEnter(state, job, victim, now, &again) && (also == nullptr || also(victim));
    };
    return std::make_unique<QueueVictims>(pool, state, job.queue, job.id, int64_t{job.priority} + 1,
                                          std::move(over));
  });
  outcome.protected_until = std::min(outcome.protected_until, again);
  return outcome;
}

void PassTurns(Cycle& cycle) {
  if (!cycle.state().resuming().empty()) TurnPasser(cycle).Run();
}

}  // namespace berth
