// StateEditor: queues, nodes, and the passing of time.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/model/queue_change.h"

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

}  // namespace

void StateEditor::ChangeQueues(QueueId leaf, const QueueChange& change) {
  for (QueueId id = leaf;;) {
    Queue& queue = state_.queues_.At(id);
    AddSigned(queue.allocated, change.request, change.allocated);
    AddSigned(queue.pending, change.request, change.pending);
    // One by one: read as one vector, what was just written number by number would wait for all
    // writes before it.
    if (change.jobs != 0) queue.jobs += change.jobs;
    if (change.active_jobs != 0) queue.active_jobs += change.active_jobs;
    if (change.running_jobs != 0) queue.running_jobs += change.running_jobs;
    if (change.held_jobs != 0) queue.held_jobs += change.held_jobs;
    if (id == kRootQueue) return;
    id = queue.spec.parent;
  }
}

void StateEditor::Occupy(NodeId id, TaskKey key, const Resources& request,
                         const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  BERTH_CHECK(!node.devices_used.Overlaps(devices));
  node.allocated += request;
  node.devices_used |= devices;
  node.tasks.push_back(key);
  ReindexNode(node);
}

void StateEditor::Vacate(NodeId id, TaskKey key, const Resources& request,
                         const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  node.allocated -= request;
  node.devices_used -= devices;
  const auto found = std::find(node.tasks.rbegin(), node.tasks.rend(), key);
  BERTH_CHECK(found != node.tasks.rend());
  *found = node.tasks.back();
  node.tasks.pop_back();
  ReindexNode(node);
}

void StateEditor::ReindexNode(const Node& node) {
  if (!TakesTasks(node.status) || node.status.backoff_until > state_.passed_time_) {
    state_.free_.Remove(node.id);
    return;
  }
  DeviceSet unused = node.healthy;
  unused -= node.devices_used;
  const Resources free = FreeOf(node);
  state_.free_.Put(node.id, free, FreeIndex::Room(unused.Count(), free[kCpu]));
}

// Capacity and device sets, from the spec.
void StateEditor::DeriveNode(Node& node) {
  node.capacity = Resources{};
  node.capacity[kCpu] = node.spec.cpu_millis;
  node.capacity[kMemory] = node.spec.memory_bytes;
  for (const NamedAmount& extended : node.spec.extended) {
    node.capacity[state_.interner_.AddKind(extended.name)] += extended.amount;
  }
  node.healthy = DeviceSet{};
  node.kinds.clear();
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    const ResourceKind kind = state_.interner_.AddKind(device.kind);
    if (device.unhealthy) continue;
    node.healthy.Add(i);
    ++node.capacity[kind];
    // Sorted by kind: a kind's devices are neighbours.
    if (node.kinds.empty() || node.kinds.back().kind != kind) node.kinds.push_back({kind, {}});
    node.kinds.back().devices.Add(i);
  }
}

void StateEditor::DeriveQueue(Queue& queue) {
  queue.limit.amount.fill(std::numeric_limits<int64_t>::max());
  for (const NamedAmount& limit : queue.spec.limit) {
    queue.limit[state_.interner_.AddKind(limit.name)] = limit.amount;
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
  if (state_.next_queue_id_ <= id) state_.next_queue_id_ = QueueId{id.value + 1};
  if (facts()) state_.dirty_.queues.push_back(id);
}

void StateEditor::SetQueueSpec(QueueId id, QueueSpec spec) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(queue.spec.name == spec.name && queue.spec.parent == spec.parent);
  state_.queue_names_.erase(queue.spec.name);
  queue.spec = std::move(spec);
  state_.queue_names_.emplace(queue.spec.name, id);
  DeriveQueue(queue);
  if (facts()) state_.dirty_.queues.push_back(id);
  CouldHelp();
}

void StateEditor::SetQueueOpen(QueueId id, bool open) {
  state_.queues_.At(id).open = open;
  if (facts()) state_.dirty_.queues.push_back(id);
  CouldHelp();
}

void StateEditor::EraseQueue(QueueId id) {
  Queue& queue = state_.queues_.At(id);
  BERTH_CHECK(id != kRootQueue && queue.jobs == 0 && queue.children.empty());
  std::vector<QueueId>& siblings = state_.queues_.At(queue.spec.parent).children;
  siblings.erase(std::find(siblings.begin(), siblings.end(), id));
  state_.queue_names_.erase(queue.spec.name);
  state_.queues_.Erase(id);
  if (facts()) state_.dirty_.queues.push_back(id);
}

void StateEditor::AddNode(NodeId id, NodeSpec spec, NodeStatus status) {
  Node& node = state_.nodes_.Insert(id, Node{});
  node.id = id;
  node.spec = std::move(spec);
  BERTH_CHECK(state_.node_names_.emplace(node.spec.name, id).second);
  if (state_.next_node_id_ <= id) state_.next_node_id_ = NodeId{id.value + 1};
  DeriveNode(node);
  SetNodeStatus(id, std::move(status));
}

void StateEditor::SetNodeSpec(NodeId id, NodeSpec spec) {
  Node& node = state_.nodes_.At(id);
  BERTH_CHECK(node.spec.name == spec.name);
  const std::vector<int> moves = DeviceMoves(node.spec, spec);
  for (TaskKey key : node.tasks) {
    Task& task = state_.jobs_.At(key.job).tasks[key.task];
    const DeviceSet moved = Moved(task.devices, moves);
    if (moved == task.devices) continue;
    task.devices = moved;
    if (facts()) state_.dirty_.tasks.push_back(key);
  }
  node.devices_used = Moved(node.devices_used, moves);
  state_.node_names_.erase(node.spec.name);
  node.spec = std::move(spec);
  state_.node_names_.emplace(node.spec.name, id);
  DeriveNode(node);
  ReindexNode(node);
  if (facts()) state_.dirty_.nodes.push_back(id);
  CouldHelp();
}

void StateEditor::SetNodeStatus(NodeId id, NodeStatus status) {
  Node& node = state_.nodes_.At(id);
  const NodeStatus old = std::exchange(node.status, std::move(status));
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
  CouldHelp();
}

void StateEditor::EraseNode(NodeId id) {
  const Node& node = state_.nodes_.At(id);
  BERTH_CHECK(node.tasks.empty());
  state_.backoffs_.erase({node.status.backoff_until, id});
  state_.free_.Remove(id);
  state_.node_names_.erase(node.spec.name);
  state_.nodes_.Erase(id);
  if (facts()) state_.dirty_.nodes.push_back(id);
}

void StateEditor::PassTime(Time now) {
  if (now <= state_.passed_time_) return;
  Sync();
  state_.passed_time_ = now;
  while (!state_.timers_.empty() && state_.timers_.begin()->first <= now) {
    Job& job = state_.jobs_.At(state_.timers_.begin()->second);
    state_.unsettled_.insert(job.id);
    RefreshTimer(job);
  }
  while (!state_.backoffs_.empty() && state_.backoffs_.begin()->first <= now) {
    const NodeId id = state_.backoffs_.begin()->second;
    state_.backoffs_.erase(state_.backoffs_.begin());
    ReindexNode(state_.nodes_.At(id));
    state_.pending_.ReopenAll();
  }
}

}  // namespace berth
