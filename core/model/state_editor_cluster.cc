// StateEditor: queues, nodes, and the passing of time.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/model/queue_change.h"
#include "core/model/task_room.h"

namespace berth {
namespace {

void AddSigned(Resources& sum, const Resources* request, int sign) {
  if (sign > 0) sum += *request;
  if (sign < 0) sum -= *request;
}

DeviceSet Moved(const DeviceSet& devices, const std::vector<int>& moves) {
  DeviceSet moved;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (!devices.Has(i)) continue;
    BERTH_CHECK(moves[i] >= 0);
    moved.Add(static_cast<size_t>(moves[i]));
  }
  return moved;
}

// True if all jobs that have not ended are in one queue, and there are some. O(depth x children).
bool OneLeafIsActive(const ClusterState& state) {
  const Queue* at = &state.queues().At(kRootQueue);
  const int64_t all = at->active_jobs;
  while (!at->children.empty()) {
    const auto has_all = [&](QueueId child) { return state.queues().At(child).active_jobs == all; };
    const auto found = std::find_if(at->children.begin(), at->children.end(), has_all);
    if (found == at->children.end()) return false;
    at = &state.queues().At(*found);
  }
  return all > 0;
}

void Drop(std::vector<TaskKey>& list, TaskKey key) {
  const auto found = std::find(list.rbegin(), list.rend(), key);
  BERTH_CHECK(found != list.rend());
  *found = list.back();
  list.pop_back();
}

}  // namespace

void StateEditor::ChangeQueues(QueueId leaf, const QueueChange& change) {
  // Demand is the sum of allocated and wanted, which a bind does not change.
  if (change.allocated + change.wanted != 0) ShareChanged(state_.queues_.At(leaf));
  // While only one leaf was active, there was nothing to reclaim, and so no retries.
  const bool joins = facts() && change.active_jobs > 0 &&
                     state_.queues_.At(leaf).active_jobs == 0 && OneLeafIsActive(state_);
  std::optional<Resources> kept_more;  // change below, by this edit
  bool open = true;
  for (QueueId id = leaf;;) {
    Queue& queue = state_.queues_.At(id);
    const bool keeps = change.allocated != 0 && (queue.guarantees || kept_more.has_value());
    const Resources kept = keeps ? KeptFor(queue) : Resources{};
    if (kept_more.has_value()) queue.kept += *kept_more;
    AddSigned(queue.allocated, change.request, change.allocated);
    if (keeps) kept_more = KeptFor(queue) - kept;
    AddSigned(queue.nonpreemptible, change.request, change.nonpreemptible);
    AddSigned(queue.pending, change.request, change.pending);
    AddSigned(queue.wanted, change.request, change.wanted);
    AddSigned(queue.nominated, change.request, change.nominated);
    AddSigned(queue.leaving, change.request, change.leaving);
    AddSigned(queue.nonpreemptible_leaving, change.request, change.nonpreemptible_leaving);
    AddSigned(queue.claimed, change.request, change.claimed);
    // One by one: reading them as a vector right after writing single numbers would stall on all
    // these writes.
    if (change.jobs != 0) queue.jobs += change.jobs;
    if (change.active_jobs != 0) {
      queue.active_jobs += change.active_jobs;
      queue.active_tasks += change.active_tasks;
    }
    if (change.running_jobs != 0) queue.running_jobs += change.running_jobs;
    if (change.held_jobs != 0) queue.held_jobs += change.held_jobs;
    if (change.leaving_jobs != 0) queue.leaving_jobs += change.leaving_jobs;
    open = open && queue.open;
    if (id == kRootQueue) break;
    id = queue.spec.parent;
  }
  // For a closed queue only allocated counts: what returns to it is not wanted by any job.
  if (!open && change.allocated != 0) ShareChanged(state_.queues_.At(leaf));
  if (joins) WakeAll();
}

void StateEditor::Occupy(NodeId id, TaskKey key, const ShapeEntry& shape,
                         const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  BERTH_CHECK(!node.devices_used.Clashes(use));
  node.allocated += AmountsOf(shape, use);
  node.devices_used += use;
  node.tasks.push_back(key);
  ReindexNode(node);
}

void StateEditor::Reserve(NodeId id, TaskKey key, const ShapeEntry& shape,
                          const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  BERTH_CHECK(!node.devices_reserved.Clashes(use));
  node.reserved += AmountsOf(shape, use);
  node.devices_reserved += use;
  node.nominated.push_back(key);
  ReindexNode(node);
}

void StateEditor::Unreserve(NodeId id, TaskKey key, const ShapeEntry& shape,
                            const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  node.reserved -= AmountsOf(shape, use);
  node.devices_reserved -= use;
  Drop(node.nominated, key);
  ReindexNode(node);
  WakeForNode(id);
}

void StateEditor::Vacate(NodeId id, TaskKey key, const ShapeEntry& shape,
                         const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  node.allocated -= AmountsOf(shape, use);
  node.devices_used -= use;
  Drop(node.tasks, key);
  ReindexNode(node);
  WakeForNode(id);
}

// Recomputed: device positions changed, or shares take another part of them than before.
void StateEditor::CountHolds(Node& node) {
  node.allocated = node.reserved = node.leaving = Resources{};
  for (DeviceUse* use : {&node.devices_used, &node.devices_reserved, &node.devices_leaving}) {
    use->whole = DeviceSet{};
    use->shared.clear();
  }
  for (TaskKey key : node.tasks) {
    const Job& job = state_.jobs_.At(key.job);
    const Task& task = job.tasks[key.task];
    const ShapeEntry& shape = state_.interner_.Shape(job.groups[GroupOf(job, key.task)].shape);
    const DeviceUse use = UseOf(node, shape, task.devices);
    node.allocated += AmountsOf(shape, use);
    node.devices_used += use;
    if (task.state != TaskState::kReleasing) continue;
    node.leaving += AmountsOf(shape, use);
    node.devices_leaving += use;
  }
  for (TaskKey key : node.nominated) {
    const Job& job = state_.jobs_.At(key.job);
    const Task& task = job.tasks[key.task];
    const ShapeEntry& shape = state_.interner_.Shape(job.groups[GroupOf(job, key.task)].shape);
    const DeviceUse use = UseOf(node, shape, task.moves ? task.next_devices : task.devices);
    node.reserved += AmountsOf(shape, use);
    node.devices_reserved += use;
  }
}

void StateEditor::ReindexNode(const Node& node) {
  const bool full = TaskRoom(node) == 0;
  if (full) state_.full_nodes_.insert(node.id);
  if (!full && !state_.full_nodes_.empty()) state_.full_nodes_.erase(node.id);
  if (full || !MayHaveTasks(state_, node)) state_.free_.Remove(node.id);
  if (!MayHaveTasks(state_, node)) return;
  // Devices with something free.
  const auto devices = [&](const DeviceUse& taken) {
    return Difference(node.healthy, taken.Full()).Count();
  };
  if (!full) {
    const Resources free = FreeOf(node);
    state_.free_.Put(node.id, free, FreeIndex::Room(devices(TakenDevices(node)), free[kCpu]));
  }
  const bool soon = node.leaving_tasks > 0 && TaskRoomAfterRelease(node) > 0;
  if (!soon) return state_.free_.RemoveSoon(node.id);
  const int64_t cpu = FreeAfterRelease(node)[kCpu];
  state_.free_.PutSoon(node.id, FreeIndex::Room(devices(TakenAfterRelease(node)), cpu));
}

// Derives capacity, device sets and layout from the spec.
void StateEditor::DeriveNode(Node& node) {
  const DeviceLayout* before = node.layout;
  node.layout = state_.interner_.AcquireLayout(node.spec);
  state_.interner_.ReleaseLayout(before);
  node.capacity = Resources{};
  node.capacity[kCpu] = node.spec.cpu_millis;
  node.capacity[kMemory] = node.spec.memory_bytes;
  for (const NamedAmount& extended : node.spec.extended) {
    node.capacity[state_.interner_.AddKind(extended.name)] += extended.amount;
  }
  node.healthy = DeviceSet{};
  state_.shareable_nodes_ -= node.shareable ? 1 : 0;
  node.shareable = false;
  node.kinds.clear();
  node.alike.clear();
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    const ResourceKind kind = state_.interner_.AddKind(device.kind);
    if (device.unhealthy) continue;
    node.healthy.Add(i);
    node.shareable = node.shareable || device.max_tasks > 1;
    node.capacity[kind] += kWhole;
    // Sorted by kind: a kind's devices are adjacent.
    if (node.kinds.empty() || node.kinds.back().kind != kind) node.kinds.push_back({kind, {}});
    node.kinds.back().devices.Add(i);
    const auto is_alike = [&](const InterchangeableDevices& others) {
      return Interchangeable(node.spec.devices[others.first], device);
    };
    auto alike = std::find_if(node.alike.begin(), node.alike.end(), is_alike);
    if (alike == node.alike.end()) {
      alike = node.alike.insert(alike, {.kind = kind, .first = i, .devices = {}});
    }
    alike->devices.Add(i);
  }
  state_.shareable_nodes_ += node.shareable ? 1 : 0;
}

void StateEditor::DeriveQueue(Queue& queue) {
  const auto derive = [this](const std::vector<NamedAmount>& amounts, int64_t absent) {
    Resources derived;
    derived.amount.fill(absent);
    for (const NamedAmount& a : amounts) derived[state_.interner_.AddKind(a.name)] = a.amount;
    return derived;
  };
  constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
  queue.limit = derive(queue.spec.limit, kNoBound);
  queue.deserved = derive(queue.spec.deserved, 0);
  queue.deserved_bound = derive(queue.spec.deserved, kNoBound);
  queue.guarantee = derive(queue.spec.guarantee, 0);
  queue.guarantees = !queue.guarantee.IsZero();
  ShareChanged(queue);
}

void StateEditor::ShareChanged(Queue& queue) {
  if (queue.share_changed) return;
  queue.share_changed = true;
  state_.changed_queues_.push_back(queue.id);
}

std::vector<QueueId> StateEditor::TakeChangedQueues() {
  for (QueueId id : state_.changed_queues_) {
    if (Queue* queue = state_.queues_.Find(id); queue != nullptr) queue->share_changed = false;
  }
  return std::exchange(state_.changed_queues_, {});
}

// Recomputed from here to the root: a guarantee changed, or a child was added or removed.
void StateEditor::KeepForChildren(Queue& parent) {
  for (Queue* at = &parent;; at = &state_.queues_.At(at->spec.parent)) {
    at->kept = Resources{};
    for (QueueId child : at->children) at->kept += KeptFor(state_.queues_.At(child));
    if (at->id == kRootQueue) return;
  }
}

void StateEditor::CountCapacity(const Node& node, bool add) {
  if (node.status.state != NodeState::kReady) return;
  if (add) state_.capacity_ += node.capacity;
  if (!add) state_.capacity_ -= node.capacity;
}

// Recomputed when user_fairness changes.
void StateEditor::CountUsers(Queue& queue) {
  queue.user_allocated.clear();
  for (auto id = state_.jobs_.NextFrom(JobId{}); id.has_value();
       id = state_.jobs_.NextFrom(JobId{id->value + 1})) {
    const Job& job = state_.jobs_.At(*id);
    if (job.queue != queue.id) continue;
    touched_.push_back(*id);  // user_fairness decides whether users have separate classes
    for (size_t g = 0; g < job.groups.size(); ++g) {
      const GroupTally& tally = job.tallies[g];
      const int32_t tasks = tally.Occupying() + tally.Nominated();
      if (tasks == 0) continue;
      const Resources& one = state_.interner_.Shape(job.groups[g].shape).resources;
      ChangeUser(job, one.Times(tasks), 1);
    }
  }
}

void StateEditor::AddQueue(QueueId id, QueueSpec spec) {
  Queue& queue = state_.queues_.Insert(id, Queue{});
  queue.id = id;
  queue.spec = std::move(spec);
  DeriveQueue(queue);
  BERTH_CHECK(state_.queue_names_.emplace(queue.spec.name, id).second);
  std::vector<QueueId>& siblings = state_.queues_.At(queue.spec.parent).children;
  siblings.insert(std::upper_bound(siblings.begin(), siblings.end(), id), id);
  KeepForChildren(state_.queues_.At(queue.spec.parent));
  if (state_.next_queue_id_ <= id) state_.next_queue_id_ = QueueId{id.value + 1};
  if (facts()) state_.dirty_.queues.push_back(id);
}

void StateEditor::SetQueueSpec(QueueId id, QueueSpec spec) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(queue.spec.name == spec.name && queue.spec.parent == spec.parent);
  state_.queue_names_.erase(queue.spec.name);
  const UserFairness before = queue.spec.user_fairness;
  queue.spec = std::move(spec);
  state_.queue_names_.emplace(queue.spec.name, id);
  DeriveQueue(queue);
  if (id != kRootQueue) KeepForChildren(state_.queues_.At(queue.spec.parent));
  if (queue.spec.user_fairness != before) CountUsers(queue);
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();
}

void StateEditor::SetQueueUsage(QueueId id, std::vector<NamedAmount> usage) {
  Queue& queue = state_.queues_.At(id);
  if (queue.usage == usage) return;
  queue.usage = std::move(usage);
  ShareChanged(queue);
  if (facts()) state_.dirty_.usages.push_back(id);
}

// Stored with the root.
void StateEditor::SetUsageCharged(Time when) {
  state_.usage_charged_ = when;
  if (facts()) state_.dirty_.usages.push_back(kRootQueue);
}

void StateEditor::SetRequestMix(RequestMix mix) {
  state_.request_mix_ = std::move(mix);
  ++state_.request_mix_version_;
  if (facts()) state_.dirty_.request_mix = true;
}

void StateEditor::AddRun(RunId id, FinishedRun run) {
  const std::vector<RunId> dropped = state_.run_history_.Add(id, std::move(run));
  if (!facts()) return;
  state_.dirty_.runs.push_back(id);
  state_.dirty_.runs.insert(state_.dirty_.runs.end(), dropped.begin(), dropped.end());
}

// Pending tasks in or below a closed queue are not demand.
void StateEditor::DemandChangedBelow(Queue& queue) {
  ShareChanged(queue);
  for (QueueId child : queue.children) DemandChangedBelow(state_.queues_.At(child));
}

void StateEditor::SetQueueOpen(QueueId id, bool open) {
  Queue& queue = state_.queues_.At(id);
  if (queue.open != open) DemandChangedBelow(queue);
  queue.open = open;
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();
}

void StateEditor::EraseQueue(QueueId id) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(id != kRootQueue && queue.jobs == 0 && queue.children.empty());
  std::vector<QueueId>& siblings = state_.queues_.At(queue.spec.parent).children;
  siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  KeepForChildren(state_.queues_.At(queue.spec.parent));
  ShareChanged(queue);
  ShareChanged(state_.queues_.At(queue.spec.parent));
  state_.queue_names_.erase(queue.spec.name);
  state_.queues_.Erase(id);
  if (facts()) state_.dirty_.queues.push_back(id);
  WakeAll();  // its guarantee is now free for others
}

void StateEditor::AddNode(NodeId id, NodeSpec spec, NodeStatus status) {
  Node& node = state_.nodes_.Insert(id, Node{});
  node.id = id;
  node.spec = std::move(spec);
  BERTH_CHECK(state_.node_names_.emplace(node.spec.name, id).second);
  if (state_.next_node_id_ <= id) state_.next_node_id_ = NodeId{id.value + 1};
  state_.new_nodes_.push_back(id);
  DeriveNode(node);
  CountCapacity(node, true);
  ForgetNever();
  SetNodeStatus(id, std::move(status));
}

void StateEditor::SetNodeSpec(NodeId id, NodeSpec spec) {
  Node& node = state_.nodes_.At(id);
  BERTH_CHECK(node.spec.name == spec.name);
  const std::vector<int> moves = DeviceMoves(node.spec, spec);
  const auto move = [&](TaskKey key, DeviceSet& devices) {
    const DeviceSet moved = Moved(devices, moves);
    if (moved == devices) return;
    devices = moved;
    if (facts()) state_.dirty_.tasks.push_back(key);
  };
  for (TaskKey key : node.tasks) {
    move(key, state_.jobs_.At(key.job).tasks.Changed(key.task).devices);
  }
  for (TaskKey key : node.nominated) {
    Task& task = state_.jobs_.At(key.job).tasks.Changed(key.task);
    move(key, task.moves ? task.next_devices : task.devices);
  }
  // Their places may have become unhealthy.
  for (TaskKey key : node.nominated) {
    if (facts()) state_.unsettled_.insert(key.job);
  }
  state_.node_names_.erase(node.spec.name);
  node.spec = std::move(spec);
  state_.node_names_.emplace(node.spec.name, id);
  CountCapacity(node, false);
  DeriveNode(node);
  CountCapacity(node, true);
  CountHolds(node);
  ReindexNode(node);
  state_.free_.SetMarks(id, 0);
  state_.new_nodes_.push_back(id);
  if (facts()) state_.dirty_.nodes.push_back(id);
  ForgetNever();
  WakeAll();
}

void StateEditor::SetNodeStatus(NodeId id, NodeStatus status) {
  Node& node = state_.nodes_.At(id);
  CountCapacity(node, false);
  const NodeStatus old = std::exchange(node.status, std::move(status));
  CountCapacity(node, true);
  state_.backoffs_.erase({old.backoff_until, id});
  if (node.status.backoff_until > state_.passed_time_) {
    state_.backoffs_.insert({node.status.backoff_until, id});
  }
  ReindexNode(node);
  if (!facts()) return;
  state_.dirty_.nodes.push_back(id);
  if (node.status.draining && !old.draining) {
    for (TaskKey key : node.tasks) state_.unsettled_.insert(key.job);
  }
  if (!node.nominated.empty() && !TakesTasks(node.status)) {
    for (TaskKey key : node.nominated) state_.unsettled_.insert(key.job);
  }
  WakeAll();
}

void StateEditor::EraseNode(NodeId id) {
  const Node& node = state_.nodes_.At(id);
  BERTH_CHECK(node.tasks.empty() && node.nominated.empty());
  while (!node.domains.empty()) LeaveNodes(node.domains.back(), {id});
  CountCapacity(node, false);
  state_.backoffs_.erase({node.status.backoff_until, id});
  state_.free_.Remove(id);
  state_.node_names_.erase(node.spec.name);
  state_.shareable_nodes_ -= node.shareable ? 1 : 0;
  state_.interner_.ReleaseLayout(node.layout);
  state_.nodes_.Erase(id);
  if (facts()) state_.dirty_.nodes.push_back(id);
}

void StateEditor::WakeAll() {
  if (facts()) state_.pending_.ReopenAll();
}

void StateEditor::WakeReserved(Duration refresh) {
  if (state_.freed_nodes_.empty()) return;
  for (const auto& [id, reservation] : state_.reservations_) {
    const Job* job = state_.jobs_.Find(id);
    if (job == nullptr || job->pending_class == ClassId{}) continue;
    const BlockedVerdict* verdict = state_.pending_.Class(job->pending_class).blocked.get();
    if (verdict == nullptr) continue;
    const Time due = verdict->found + refresh;
    if (due <= state_.passed_time_) {
      state_.pending_.Reopen(job->pending_class);
    } else {
      state_.pending_.Revisit(job->pending_class, due);
    }
  }
}

void StateEditor::WakeForRoom(absl::FunctionRef<bool(ShapeId, NodeId)> fits) {
  if (state_.freed_nodes_.empty()) return;
  std::vector<NodeId> nodes = std::exchange(state_.freed_nodes_, {});
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<ShapeId> woken;
  auto& blocked = state_.pending_.blocked_by_room_;
  for (auto it = blocked.begin(); it != blocked.end();) {
    const ShapeId of = it->first;
    if (state_.interner_.shapes().Find(of) == nullptr) {  // the last job of that shape is deleted
      it = blocked.erase(it);
      continue;
    }
    const auto helps = [&](NodeId node) { return state_.free_.Has(node) && fits(of, node); };
    if (std::any_of(nodes.begin(), nodes.end(), helps)) woken.push_back(of);
    ++it;
  }
  for (ShapeId shape : woken) state_.pending_.ReopenShape(shape);
}

void StateEditor::PassTime(Time now) {
  if (now <= state_.passed_time_) return;
  Sync();
  state_.passed_time_ = now;
  state_.pending_.ReopenDue(now);
  while (!state_.timers_.empty() && state_.timers_.begin()->first <= now) {
    Job& job = state_.jobs_.At(state_.timers_.begin()->second);
    state_.unsettled_.insert(job.id);
    RefreshTimer(job);
  }
  while (!state_.backoffs_.empty() && state_.backoffs_.begin()->first <= now) {
    const NodeId id = state_.backoffs_.begin()->second;
    state_.backoffs_.erase(state_.backoffs_.begin());
    ReindexNode(state_.nodes_.At(id));
    state_.freed_nodes_.push_back(id);
  }
}

}  // namespace berth
