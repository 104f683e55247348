// UsageFold: tasks, and what they hold.
#include <algorithm>
#include <utility>

#include "core/history/usage_fold.h"
#include "core/history/usage_fold_internal.h"
#include "core/model/transitions.h"

namespace berth {

using history_internal::Unfit;

namespace history_internal {

Loss LossBy(ReleaseReason reason, Loss broken_by) {
  switch (reason) {
    case ReleaseReason::kReclaimed:
    case ReleaseReason::kPreempted:
    case ReleaseReason::kConsolidated:
      return Loss::kPreemption;
    case ReleaseReason::kDrain:
    case ReleaseReason::kPrepareTimeout:
      return Loss::kFault;
    case ReleaseReason::kRestart:
    case ReleaseReason::kGangBroken:
    case ReleaseReason::kGangExpired:
      return broken_by;
    case ReleaseReason::kCancelled:
    case ReleaseReason::kSuspended:
    case ReleaseReason::kTimeout:
    case ReleaseReason::kCompleted:
    case ReleaseReason::kFailed:
      return Loss::kNone;
  }
  return Loss::kNone;
}

}  // namespace history_internal

namespace {

bool HasPlace(const Task& task) {
  return Occupies(task.state) || Reserves(task.state) || task.moves;
}

// The place that is reserved for it, if any.
struct ReservedPlace {
  bool any = false;
  NodeId node;
  DeviceSet devices;
  bool operator==(const ReservedPlace&) const = default;
};
ReservedPlace ReservedFor(const Task& task) {
  if (Reserves(task.state)) return {.any = true, .node = task.node, .devices = task.devices};
  if (!task.moves) return {};
  return {.any = true, .node = task.next_node, .devices = task.next_devices};
}

bool AwaitsLent(const Task& task) { return task.pause == PauseState::kResuming; }

// Nothing changes in what it holds, reserves or waits for.
bool SamePlaces(const Task& a, const Task& b) {
  const bool occupies = Occupies(a.state);
  if (occupies != Occupies(b.state) || !(ReservedFor(a) == ReservedFor(b))) return false;
  if (AwaitsLent(a) != AwaitsLent(b) || Frozen(a) != Frozen(b)) return false;
  return !occupies ||
         (a.node == b.node && DevicesHeld(a) == DevicesHeld(b) && a.devices_lent == b.devices_lent);
}

void ListOnNode(std::vector<TaskKey>& list, TaskKey key, int sign) {
  if (sign > 0) return list.push_back(key);
  const auto found = std::find(list.rbegin(), list.rend(), key);
  if (found == list.rend()) return;
  *found = list.back();
  list.pop_back();
}

template <class Sum>
void AddWithSign(Sum& sum, const Sum& more, int sign) {
  if (sign > 0) sum += more;
  if (sign < 0) sum -= more;
}

// The devices of the task that others may use.
DeviceUse LentUse(const Node& node, const ShapeEntry& shape, const Task& task) {
  return task.devices_lent ? UseOf(node, shape, task.devices) : DeviceUse{};
}

}  // namespace

const PlacedTask* UsageFold::FindTask(TaskKey key) const {
  const JobUsage* job = jobs_.Find(key.job);
  if (job == nullptr || job->places == nullptr) return nullptr;
  const auto found = job->places->tasks.find(key.task);
  return found == job->places->tasks.end() ? nullptr : &found->second;
}

PlacedTask* UsageFold::MutableTask(TaskKey key) {
  return const_cast<PlacedTask*>(std::as_const(*this).FindTask(key));
}

const ShapeEntry& UsageFold::ShapeOf(const JobUsage& job, uint32_t index) const {
  return interner_.Shape(job.shared->groups[GroupOf(job.shared->groups, index)].shape);
}

absl::Status UsageFold::ChangeTasks(JobId job, absl::Span<const uint32_t> tasks,
                                    absl::FunctionRef<Task(const Task&)> change) {
  for (const uint32_t index : tasks) {
    const PlacedTask* placed = FindTask({job, index});
    if (placed == nullptr) return Unfit("task ", index, " of job ", job.value, " has no place");
    if (absl::Status set = SetTask({job, index}, change(placed->task)); !set.ok()) return set;
  }
  return absl::OkStatus();
}

// A new attempt, the start of its run, and pauses.
PlacedTask UsageFold::NextPlaced(const PlacedTask* before, const Task& after) const {
  PlacedTask next = before == nullptr ? PlacedTask{} : *before;
  const Task was = next.task;
  next.task = after;
  const bool bound = after.state == TaskState::kBound && was.state != TaskState::kBound &&
                     was.state != TaskState::kLost;
  const bool started = after.start != was.start && after.start != absl::InfinitePast();
  if (bound || started) {
    next.work_from_ms = now_ms_;
    next.frozen_ms = 0;
    if (bound) next.stopped_by = Loss::kNone;
  }
  if (Frozen(after) && !Frozen(was)) next.frozen_since_ms = now_ms_;
  if (!Frozen(after) && Frozen(was)) {
    next.frozen_ms += now_ms_ - std::max(next.frozen_since_ms, next.work_from_ms);
  }
  return next;
}

// A task without a place is pending, or has ended: it is pending if it gets a place, and has ended
// if it becomes pending.
absl::Status UsageFold::SetTask(TaskKey key, const Task& after, Loss loss) {
  JobUsage* job = jobs_.Find(key.job);
  if (job == nullptr) return Unfit("no job ", key.job.value);
  const absl::Span<const Group> groups = job->shared->groups;
  if (groups.empty() ||
      key.task >= groups.back().first_task + static_cast<uint32_t>(groups.back().replicas)) {
    return Unfit("job ", key.job.value, " has no task ", key.task);
  }
  const ReservedPlace reserved = ReservedFor(after);
  const bool known = (!Occupies(after.state) || nodes_.Find(after.node) != nullptr) &&
                     (!reserved.any || nodes_.Find(reserved.node) != nullptr);
  if (!known) return Unfit("a task on a node that does not exist");
  if (job->places == nullptr) job->places = std::make_unique<JobPlaces>();
  auto& tasks = job->places->tasks;
  const auto found = tasks.find(key.task);
  const PlacedTask* before = found == tasks.end() ? nullptr : &found->second;
  changes_.tasks.insert(key);
  const PlacedTask next = NextPlaced(before, after);
  if (before != nullptr && SamePlaces(before->task, after)) {
    found->second = next;
    return absl::OkStatus();
  }
  const bool lends = after.devices_lent || (before != nullptr && before->task.devices_lent);
  const NodeId lent_on = before == nullptr ? after.node : before->task.node;
  const bool cut = before != nullptr && Occupies(before->task.state) && !Occupies(after.state);
  const bool was_pending = before == nullptr && HasPlace(after);
  if (cut) CountLoss(*job, key.task, *before, loss);
  if (before != nullptr) Place(key, *job, before->task, -1);
  if (HasPlace(after)) {
    tasks[key.task] = next;
    Place(key, *job, after, 1);
  } else if (before != nullptr) {
    tasks.erase(key.task);
  }
  if (lends) CountLent(nodes_.At(lent_on));
  const int32_t more = (after.state == TaskState::kPending ? 1 : 0) - (was_pending ? 1 : 0);
  if (more != 0) CountPending(*job, GroupOf(groups, key.task), more);
  changes_.jobs.insert(key.job);
  return absl::OkStatus();
}

void UsageFold::Place(TaskKey key, JobUsage& job, const Task& task, int sign) {
  PlaceOnNode(key, job, task, sign);
  CountTask(job, key.task, task, sign);
}

void UsageFold::PlaceOnNode(TaskKey key, const JobUsage& job, const Task& task, int sign) {
  const ShapeEntry& shape = ShapeOf(job, key.task);
  if (Occupies(task.state)) {
    NodeUsage& node = nodes_.At(task.node);
    const DeviceUse use = UseOf(node, shape, DevicesHeld(task));
    AddWithSign(node.allocated, HeldBy(shape, use, Frozen(task)), sign);
    AddWithSign(node.devices_used, use, sign);
    if (AwaitsLent(task)) AddWithSign(node.reserved, LentBy(node, shape, task), sign);
    ListOnNode(node.tasks, key, sign);
    ChangeNode(task.node);
  }
  const ReservedPlace place = ReservedFor(task);
  if (!place.any) return;
  NodeUsage& node = nodes_.At(place.node);
  const DeviceUse use = UseOf(node, shape, place.devices);
  AddWithSign(node.reserved, HeldBy(shape, use, false), sign);
  AddWithSign(node.devices_reserved, use, sign);
  ListOnNode(node.nominated, key, sign);
  ChangeNode(place.node);
}

void UsageFold::CountTask(JobUsage& job, uint32_t index, const Task& task, int sign) {
  const ShapeEntry& shape = ShapeOf(job, index);
  const auto count = [&](const NodeUsage& node, const Resources& amounts, const DeviceUse& use,
                         Measure measure) {
    for (const DividedAmount& part : DivideAmounts(amounts, use, node.devices)) {
      Count(job, part.of, measure, sign * part.amount);
    }
  };
  if (Occupies(task.state)) {
    const NodeUsage& node = nodes_.At(task.node);
    const DeviceUse use = UseOf(node, shape, DevicesHeld(task));
    const Resources held = HeldBy(shape, use, Frozen(task));
    count(node, held, use, Measure::kHeld);
    if (Frozen(task)) count(node, held, use, Measure::kPaused);
    if (AwaitsLent(task)) {
      count(node, LentBy(node, shape, task), LentUse(node, shape, task), Measure::kReserved);
    }
  }
  const ReservedPlace place = ReservedFor(task);
  if (!place.any) return;
  const NodeUsage& node = nodes_.At(place.node);
  const DeviceUse use = UseOf(node, shape, place.devices);
  count(node, HeldBy(shape, use, false), use, Measure::kReserved);
}

void UsageFold::CountLoss(JobUsage& job, uint32_t index, const PlacedTask& placed, Loss loss) {
  job.broken_by = loss;
  if (loss == Loss::kNone) return;
  int64_t work = now_ms_ - placed.work_from_ms - placed.frozen_ms;
  if (Frozen(placed.task)) {
    work -= now_ms_ - std::max(placed.frozen_since_ms, placed.work_from_ms);
  }
  if (work <= 0) return;
  const ShapeEntry& shape = ShapeOf(job, index);
  const NodeUsage& node = nodes_.At(placed.task.node);
  const DeviceUse use = UseOf(node, shape, placed.task.devices);
  const Measure measure = loss == Loss::kPreemption ? Measure::kPreempted : Measure::kFaulted;
  for (const DividedAmount& part : DivideAmounts(HeldBy(shape, use, false), use, node.devices)) {
    AddLoss(job, part.of, measure, AmountTime(part.amount) * work);
  }
}

Loss UsageFold::LossAtEnd(const PlacedTask& before, const Task& after) {
  if (after.state == TaskState::kSucceeded) return Loss::kNone;
  if (Releasing(before.task)) return before.stopped_by;
  switch (after.end_cause) {
    case EndCause::kNodeLost:
    case EndCause::kDevice:
      return Loss::kFault;
    case EndCause::kRefused:
      return after.own_fault || after.nobodys_fault ? Loss::kNone : Loss::kFault;
    case EndCause::kNone:
    case EndCause::kExit:
    case EndCause::kStopped:
      return Loss::kNone;
  }
  return Loss::kNone;
}

void UsageFold::CountPending(JobUsage& job, size_t group, int32_t more) {
  job.pending[group] += more;
  if (history_internal::IsHeldBack(job.state)) return;
  CountWaitingAmounts(job, interner_.Shape(job.shared->groups[group].shape).resources, more);
}

// Recomputed, as several tasks may lend the same device.
void UsageFold::CountLent(NodeUsage& node) {
  node.lent = node.awaited = DeviceSet{};
  for (const TaskKey key : node.tasks) {
    const PlacedTask* placed = FindTask(key);
    if (placed == nullptr || !placed->task.devices_lent) continue;
    node.lent |= placed->task.devices;
    if (AwaitsLent(placed->task)) node.awaited |= placed->task.devices;
  }
  ChangeNode(node.id);
}

}  // namespace berth
