#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/plan.h"
#include "core/engine/search/verdict.h"
#include "core/model/pauses.h"
#include "core/model/pending_index.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

WaitReason Reason(WaitCode code) {
  WaitReason reason;
  reason.code = code;
  return reason;
}

WaitReason Until(WaitCode code, Time until) {
  WaitReason reason = Reason(code);
  reason.until = until;
  return reason;
}

std::vector<WaitReason> WhyHeld(const ClusterState& state, const Job& job, Time now) {
  std::vector<WaitReason> reasons;
  if (job.status.suspended) reasons.push_back(Reason(WaitCode::kUserHold));
  for (const JobDependency& dependency : job.dependencies) {
    const Job* before = state.jobs().Find(dependency.job);
    if (job.status.starts > 0 || before == nullptr || Ended(before->status.state)) continue;
    WaitReason reason = Reason(WaitCode::kDependency);
    reason.job = dependency.job;
    reason.detail = absl::StrCat("job ", before->name, " has not ended");
    reasons.push_back(std::move(reason));
  }
  if (job.start_after > now) reasons.push_back(Until(WaitCode::kStartTime, job.start_after));
  return reasons;
}

// Members that still occupy resources and must go before the job can start again.
std::vector<WaitReason> WhyNotGone(const ClusterState& state, const Job& job) {
  std::vector<WaitReason> reasons;
  int64_t stopping = 0;
  for (const Task& task : job.tasks) {
    if (task.state == TaskState::kLost && reasons.empty()) {
      WaitReason reason = Reason(WaitCode::kNodeFencing);
      const Node& node = state.nodes().At(task.node);
      reason.detail = absl::StrCat("node ", node.spec.name, " is silent");
      if (node.status.state == NodeState::kLost) {
        reason.detail = absl::StrCat("node ", node.spec.name,
                                     " is lost, and the job's tasks there may still run: it waits "
                                     "until the node returns or the job is cancelled");
      }
      reasons.push_back(std::move(reason));
    }
    if (task.state == TaskState::kReleasing) ++stopping;
  }
  if (stopping == 0) return reasons;
  WaitReason reason = Reason(WaitCode::kNotConsidered);
  reason.detail = absl::StrCat(stopping, " members are still being stopped");
  reasons.push_back(std::move(reason));
  return reasons;
}

std::vector<WaitReason> WhyRestarting(const ClusterState& state, const Job& job, Time now) {
  std::vector<WaitReason> reasons = WhyNotGone(state, job);
  if (job.status.hold_until > now) {
    reasons.push_back(Until(WaitCode::kRetryBackoff, job.status.hold_until));
    reasons.back().detail = job.status.message;
  }
  return reasons;
}

// In a strictly ordered queue, a class that was not tried is behind the first blocked gang.
WaitReason NotTried(const ClusterState& state, const Queue& queue) {
  std::optional<ClassKey> head;
  for (const auto* list : {&state.pending().short_of_room(), &state.pending().held_back()}) {
    const auto found = list->find(queue.id);
    if (queue.spec.order != QueueOrder::kFifoStrict || found == list->end()) continue;
    const auto gang =
        std::find_if(found->second.begin(), found->second.end(), [&](const auto& one) {
          const PendingClass& c = state.pending().Class(one.second);
          return one.first.growth == 0 && c.blocked->wake != WakeOn::kChange;  // that can never fit
        });
    if (gang == found->second.end()) continue;
    if (!head.has_value() || gang->first < *head) head = gang->first;
  }
  if (!head.has_value()) return Reason(WaitCode::kNotConsidered);
  WaitReason reason = Reason(WaitCode::kBehindHead);
  reason.queue = queue.id;
  reason.job = head->job;
  reason.detail = absl::StrCat("job ", state.jobs().At(head->job).name, " goes first");
  return reason;
}

// When room is expected: at its own reservation, or at that of the job that it must not delay.
Time StartOf(const ClusterState& state, JobId reserved) {
  const auto found = state.reservations().find(reserved);
  return found == state.reservations().end() ? absl::InfinitePast() : found->second.start;
}

std::string Whom(const ClusterState& state, const Job& job, JobId refused) {
  if (refused == job.id) return "this job";
  const Job* other = state.jobs().Find(refused);
  return other == nullptr ? "a job" : absl::StrCat("job ", other->name);
}

// "3 nodes are backing off until 12:00:03 UTC, after refusing this job: no space left". Nodes that
// refused through the job's own fault are excluded for that job only.
void DescribeBackoffs(const ClusterState& state, const Job& job, const BlockedVerdict& verdict,
                      WaitReason* reason) {
  const Refusals& own = job.status.refusals;
  const Node* node = state.nodes().Find(verdict.backs_off);
  const bool leaves_out = !own.nodes.empty() && own.until != absl::InfinitePast();
  if (reason->code != WaitCode::kInsufficientResources) return;
  if (verdict.backing_off > 0 && node != nullptr) {
    reason->nodes = verdict.backing_off;
    reason->until = verdict.backs_off_until;
    reason->job = node->status.last_refused;
  } else if (leaves_out) {
    reason->nodes = static_cast<int32_t>(own.nodes.size());
    reason->until = own.until;
    reason->job = job.id;
  } else {
    return;
  }
  reason->code = WaitCode::kNodesBackingOff;
  const std::string& why = verdict.backing_off > 0 ? node->status.refusal : job.status.message;
  absl::StrAppend(
      &reason->detail, ": ", reason->nodes, reason->nodes == 1 ? " node is" : " nodes are",
      verdict.backing_off > 0 ? " backing off" : " excluded", " until ",
      absl::FormatTime("%H:%M:%S", reason->until, absl::UTCTimeZone()), " UTC, after refusing ",
      Whom(state, job, reason->job), why.empty() ? "" : ": ", why);
}

// The job itself asks not to evict others for what they hold.
void DescribePolicy(const Job& job, WaitReason* reason) {
  const bool held = reason->code == WaitCode::kInsufficientResources ||
                    reason->code == WaitCode::kQueueLimit ||
                    reason->code == WaitCode::kGuaranteeKept ||
                    reason->code == WaitCode::kReserved || reason->code == WaitCode::kJobAffinity;
  if (job.preempts || !held || CanNeverStart(*reason)) return;
  absl::StrAppend(&reason->detail, reason->detail.empty() ? "" : "; ",
                  "the job evicts no others (preemption_policy NEVER)");
}

WaitReason OfClass(const ClusterState& state, const Job& job, const PendingClass& of) {
  if (of.blocked == nullptr) return NotTried(state, state.queues().At(of.demand.queue));
  const BlockedVerdict& verdict = *of.blocked;
  WaitReason reason = Reason(static_cast<WaitCode>(verdict.code));
  reason.resource = verdict.resource;
  reason.needed = verdict.needed;
  reason.free = verdict.free;
  reason.limit = verdict.limit;
  reason.queue = verdict.queue;
  reason.detail = verdict.detail;
  reason.job = verdict.job;
  reason.asked = verdict.asked;
  const bool reserved = reason.code == WaitCode::kReserved;
  reason.until = StartOf(state, reserved ? verdict.job : job.id);
  if (reason.code == WaitCode::kWaitsForBetterTier) reason.until = verdict.revisit;
  DescribeBackoffs(state, job, verdict, &reason);
  DescribePolicy(job, &reason);
  return reason;
}

void AddClosedGroups(const Job& job, std::vector<WaitReason>* reasons) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].Waiting() == 0 || GroupOpen(job, g)) continue;
    WaitReason reason = Reason(WaitCode::kGroupDependency);
    for (const GroupDependency& dependency : job.groups[g].depends_on) {
      const bool running = dependency.condition == GroupCondition::kRunning;
      absl::StrAppend(&reason.detail, reason.detail.empty() ? "" : "; ", "group ",
                      job.groups[g].name, " waits until ", job.groups[dependency.group].name,
                      running ? " runs" : " has completed");
    }
    reasons->push_back(std::move(reason));
  }
}

std::vector<WaitReason> WhyPending(const ClusterState& state, const Job& job) {
  std::vector<WaitReason> reasons;
  const PendingClass* of = state.pending().FindClass(job.pending_class);
  const bool below_minimum = of != nullptr && of->demand.gang;
  if (job.status.state == JobState::kPending || below_minimum) {
    if (of != nullptr) {
      reasons.push_back(OfClass(state, job, *of));
    } else {
      reasons = WhyNotGone(state, job);
    }
    AddClosedGroups(job, &reasons);
  }
  return reasons;
}

// "paused for job urgent: its priority 1 is below 5"
std::string WhyItYields(const ClusterState& state, const Pause& pause) {
  const Job* job = state.jobs().Find(pause.beneficiary);
  return absl::StrCat("paused for job ",
                      job == nullptr ? absl::StrCat("uid ", pause.beneficiary.value) : job->name,
                      pause.detail.empty() ? "" : ": ", pause.detail);
}

// What the frozen task lacks to go on: its CPU, or devices that it lends. False: nothing.
bool NameLack(const ClusterState& state, const Job& job, uint32_t index, WaitReason* reason) {
  const Task& task = job.tasks[index];
  const Node& node = state.nodes().At(task.node);
  reason->detail = absl::StrCat("node ", node.spec.name);
  reason->resource = "cpu";
  reason->needed = CpuOf(state, job, index);
  reason->free = std::max<int64_t>(UnusedCpu(node), 0);
  if (reason->free < reason->needed) return true;
  const DeviceSet taken = node.devices_used.InUse();
  if (!task.devices_lent || !task.devices.Overlaps(taken)) return false;
  const DeviceSet free = Difference(task.devices, taken);
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (!task.devices.Has(i) || free.Has(i)) continue;
    reason->resource = node.spec.devices[i].kind;
    absl::StrAppend(&reason->detail, ", ", node.spec.devices[i].uuid);
    break;
  }
  reason->needed = task.devices.Count() * kWhole;
  reason->free = free.Count() * kWhole;
  return true;
}

// While it is paused: the user's hold, or for whom. Then the first node where what it lends is not
// free.
std::vector<WaitReason> WhyPaused(const ClusterState& state, const Job& job) {
  if (job.status.suspended) {
    WaitReason reason = Reason(WaitCode::kUserHold);
    reason.detail = "its tasks are paused";
    return {std::move(reason)};
  }
  WaitReason reason = Reason(WaitCode::kPauseEnds);
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].pause == PauseState::kResuming && NameLack(state, job, i, &reason)) break;
  }
  if (!Yields(job.status)) return {std::move(reason)};
  reason.job = job.status.pause.beneficiary;
  absl::StrAppend(&reason.detail, reason.detail.empty() ? "" : "; ",
                  WhyItYields(state, job.status.pause));
  return {std::move(reason)};
}

// A schedule waits for its next time, an array for room for more of its jobs.
std::vector<WaitReason> WhySeriesWaits(const ClusterState& state, const Job& job, Time now) {
  std::vector<WaitReason> reasons = WhyHeld(state, job, now);
  if (!reasons.empty() || !job.status.series) return reasons;
  const SeriesStatus& series = *job.status.series;
  if (job.series->IsSchedule()) {
    if (series.due == absl::InfiniteFuture()) return reasons;
    return {Until(WaitCode::kStartTime, series.due)};
  }
  const bool more = series.next < CountOf(job.series->indexes) &&
                    static_cast<int64_t>(series.live.size()) < job.series->parallelism;
  if (more && !state.Open(job.queue)) {
    reasons.push_back(Reason(WaitCode::kQueueClosed));
    reasons.back().queue = job.queue;
  } else if (more && RoomForMembers(state, job) == 0) {
    reasons.push_back(Reason(WaitCode::kNotConsidered));
    reasons.back().detail = absl::StrCat(
        "queue ", state.queues().At(job.queue).spec.name,
        ", one above it, or the cluster takes no more jobs or tasks now: others must end first");
  }
  return reasons;
}

}  // namespace

std::vector<WaitReason> WhyWaiting(const ClusterState& state, const Job& job, Time now) {
  if (job.series && !Ended(job.status.state)) return WhySeriesWaits(state, job, now);
  switch (job.status.state) {
    case JobState::kHeld:
    case JobState::kSuspended:
      return WhyHeld(state, job, now);
    case JobState::kRestarting:
      return WhyRestarting(state, job, now);
    case JobState::kPending:
    case JobState::kBinding:
    case JobState::kRunning:
      if (IsPaused(job.status)) return WhyPaused(state, job);
      return WhyPending(state, job);
    default:
      return {};
  }
}

}  // namespace berth
