#include "core/engine/place/patience.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/engine/place/earliest_start.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

Time EligibleSince(const ClusterState& state, const Job& job) {
  Time since = std::max({job.submit, job.start_after, job.status.hold_until});
  for (const Task& task : job.tasks) {
    if (task.state == TaskState::kPending) since = std::max(since, task.since);
  }
  for (const JobDependency& dependency : job.dependencies) {
    const Job* before = state.jobs().Find(dependency.job);
    if (before != nullptr && Ended(before->status.state)) {
      since = std::max(since, before->status.end);
    }
  }
  return since;
}

Duration LongestPatience(const Job& job) {
  Duration longest = absl::ZeroDuration();
  const auto look = [&](const TopologyConstraint& says) {
    if (says.mode == TopologyMode::kSoft) longest = std::max(longest, says.patience);
  };
  look(*job.topology);
  for (const Group& group : job.groups) {
    look(group.topology);
    look(group.partition_topology);
  }
  return longest;
}

// While this object lives.
class Hardening {
 public:
  explicit Hardening(Placer& placer) : placer_(placer) { placer.Harden(true); }
  ~Hardening() { placer_.Harden(false); }
  Hardening(const Hardening&) = delete;
  Hardening& operator=(const Hardening&) = delete;

 private:
  Placer& placer_;
};

}  // namespace

std::optional<BlockedVerdict> AwaitBetterTier(Cycle& cycle, Placer& placer, const Job& job,
                                              const JobNeeds& needs) {
  if (!HasTopology(job) || !HasPatience(job)) return std::nullopt;
  const Time until = EligibleSince(cycle.state(), job) + LongestPatience(job);
  if (until <= cycle.now()) return std::nullopt;
  const Hardening insisting(placer);
  const Transaction::Mark mark = cycle.transaction().mark();
  const bool fits = placer.PlaceAll(job, needs) == TasksIn(needs);
  cycle.transaction().RollbackTo(mark);
  if (fits) return std::nullopt;
  const std::optional<Reservation> better = EarliestStart(cycle, placer, job, until);
  if (!better.has_value()) return std::nullopt;
  BlockedVerdict verdict;
  verdict.code = static_cast<uint8_t>(WaitCode::kWaitsForBetterTier);
  verdict.wake = WakeOn::kRoom;
  // Overdue jobs may end at any moment, which is a change that wakes the job. Time alone brings no
  // change before the patience ends.
  const bool due = better->start <= cycle.now();
  verdict.revisit = due ? until : better->start;
  verdict.detail =
      absl::StrCat("the preferred tier should be free ",
                   due ? "at any moment"
                       : absl::StrCat("in ", absl::FormatDuration(better->start - cycle.now())));
  return verdict;
}

}  // namespace berth
