// StateEditor: nodes, and what tasks hold on them.
#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/model/pauses.h"
#include "core/model/state_editor.h"
#include "core/model/taints.h"
#include "core/model/task_room.h"

namespace berth {
namespace {

// At their new positions. Those that are gone are left out.
DeviceSet Moved(const DeviceSet& devices, const std::vector<int>& moves) {
  DeviceSet moved;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (devices.Has(i) && moves[i] >= 0) moved.Add(static_cast<size_t>(moves[i]));
  }
  return moved;
}

void AddHold(Resources& sum, DeviceUse& devices, const ShapeEntry& shape, const DeviceUse& use,
             bool frozen = false) {
  sum += HeldBy(shape, use, frozen);
  devices += use;
}
void DropHold(Resources& sum, DeviceUse& devices, const ShapeEntry& shape, const DeviceUse& use,
              bool frozen = false) {
  sum -= HeldBy(shape, use, frozen);
  devices -= use;
}

// A task with these devices may have to leave, if it was there before.
bool ExpelsFrom(const NodeSpec& spec, const DeviceSet& devices) {
  if (HasEvictingTaint(spec)) return true;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    if (spec.devices[i].unhealthy && devices.Has(i)) return true;
  }
  return false;
}

void AddLent(NodeSums& sums, const Task& task) {
  if (!task.devices_lent) return;
  sums.lent |= task.devices;
  if (task.pause == PauseState::kResuming) sums.awaited |= task.devices;
}

bool IsFaulty(const NodeStatus& status) { return status.faults.thousandths > 0; }

void Drop(std::vector<TaskKey>& list, TaskKey key) {
  const auto found = std::find(list.rbegin(), list.rend(), key);
  BERTH_CHECK(found != list.rend());
  *found = list.back();
  list.pop_back();
}

}  // namespace

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
    BERTH_CHECK(moved.Count() == devices.Count());  // WithUsedDevices
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
  for (TaskKey key : node.tasks) {
    const bool leaves = ExpelsFrom(spec, state_.jobs_.At(key.job).tasks[key.task].devices);
    if (facts() && leaves) state_.unsettled_.insert(key.job);
  }
  state_.drain_ends_.erase({DrainDeadline(node.status), id});
  node.status.drain.devices = Moved(node.status.drain.devices, moves);
  ListDrainEnd(node);
  state_.node_names_.erase(node.spec.name);
  node.spec = std::move(spec);
  state_.node_names_.emplace(node.spec.name, id);
  ListExpelling(node);
  CountCapacity(node, false);
  DeriveAgain(node);
  CountCapacity(node, true);
  if (facts()) state_.dirty_.nodes.push_back(id);
  WakeAll();
}

// Its devices are others, or other ones may be used.
void StateEditor::DeriveAgain(Node& node) {
  DeriveNode(node);
  CountHolds(node);
  ReindexNode(node);
  state_.free_.SetMarks(node.id, 0);
  state_.new_nodes_.push_back(node.id);
  ForgetNever();
}

void StateEditor::SetNodeStatus(NodeId id, NodeStatus status) {
  Node& node = state_.nodes_.At(id);
  CountCapacity(node, false);
  const NodeStatus old = std::exchange(node.status, std::move(status));
  state_.faulty_nodes_ += (IsFaulty(node.status) ? 1 : 0) - (IsFaulty(old) ? 1 : 0);
  if (!(node.status.drain.devices == old.drain.devices)) DeriveAgain(node);
  CountCapacity(node, true);
  state_.backoffs_.erase({old.backoff_until, id});
  if (node.status.backoff_until > state_.passed_time_) {
    state_.backoffs_.insert({node.status.backoff_until, id});
  }
  state_.drain_ends_.erase({DrainDeadline(old), id});
  ListDrainEnd(node);
  ListExpelling(node);
  ReindexNode(node);
  if (!facts()) return;
  state_.dirty_.nodes.push_back(id);
  DrainChanged(node, old);
  WakeAll();
}

void StateEditor::SetNodeImages(NodeId id, std::vector<ImageId> images) {
  Node& node = state_.nodes_.At(id);
  UnlistImages(node);
  node.images = std::move(images);
  ListImages(node);
  state_.free_.SetMarks(id, 0);
  state_.new_nodes_.push_back(id);
  if (facts()) state_.dirty_.nodes.push_back(id);
}

void StateEditor::ListImages(const Node& node) {
  for (ImageId image : node.images) state_.image_holders_[image].insert(node.id);
}

void StateEditor::UnlistImages(const Node& node) {
  for (ImageId image : node.images) {
    const auto holders = state_.image_holders_.find(image);
    holders->second.erase(node.id);
    if (holders->second.empty()) state_.image_holders_.erase(holders);
  }
}

void StateEditor::ListDrainEnd(const Node& node) {
  const Time deadline = DrainDeadline(node.status);
  if (deadline <= state_.passed_time_ || deadline == absl::InfiniteFuture()) return;
  state_.drain_ends_.insert({deadline, node.id});
}

void StateEditor::ListExpelling(const Node& node) {
  if (MayExpel(node)) {
    state_.expelling_nodes_.insert(node.id);
  } else if (!state_.expelling_nodes_.empty()) {
    state_.expelling_nodes_.erase(node.id);
  }
}

// Jobs that must leave the node, or get no place there, are looked at.
void StateEditor::DrainChanged(const Node& node, const NodeStatus& old) {
  const NodeStatus& now = node.status;
  const bool drains = now.draining || !now.drain.devices.Empty();
  const bool changed = now.draining != old.draining || !(now.drain == old.drain);
  if (drains && changed) {
    for (TaskKey key : node.tasks) state_.unsettled_.insert(key.job);
  }
  if (!TakesTasks(now) || changed) {
    for (TaskKey key : node.nominated) state_.unsettled_.insert(key.job);
  }
}

void StateEditor::EraseNode(NodeId id) {
  const Node& node = state_.nodes_.At(id);
  BERTH_CHECK(node.tasks.empty() && node.nominated.empty());
  while (!node.domains.empty()) LeaveNodes(node.domains.back(), {id});
  CountCapacity(node, false);
  state_.backoffs_.erase({node.status.backoff_until, id});
  state_.drain_ends_.erase({DrainDeadline(node.status), id});
  state_.expelling_nodes_.erase(id);
  state_.free_.Remove(id);
  state_.node_names_.erase(node.spec.name);
  state_.shareable_nodes_ -= node.shareable ? 1 : 0;
  state_.faulty_nodes_ -= IsFaulty(node.status) ? 1 : 0;
  UnlistImages(node);
  state_.interner_.ReleaseLayout(node.layout);
  state_.nodes_.Erase(id);
  if (facts()) state_.dirty_.nodes.push_back(id);
}

void StateEditor::Occupy(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices,
                         bool frozen) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  BERTH_CHECK(!node.devices_used.Clashes(use));
  AddHold(node.allocated, node.devices_used, shape, use, frozen);
  node.tasks.push_back(key);
  ReindexNode(node);
}

void StateEditor::Vacate(NodeId id, TaskKey key, const ShapeEntry& shape, const DeviceSet& devices,
                         bool frozen) {
  Node& node = state_.nodes_.At(id);
  DropHold(node.allocated, node.devices_used, shape, UseOf(node, shape, devices), frozen);
  Drop(node.tasks, key);
  ReindexNode(node);
  WakeForNode(id);
}

void StateEditor::Reserve(NodeId id, TaskKey key, const ShapeEntry& shape,
                          const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  const DeviceUse use = UseOf(node, shape, devices);
  BERTH_CHECK(!node.devices_reserved.Clashes(use));
  AddHold(node.reserved, node.devices_reserved, shape, use);
  node.nominated.push_back(key);
  ReindexNode(node);
}

void StateEditor::Unreserve(NodeId id, TaskKey key, const ShapeEntry& shape,
                            const DeviceSet& devices) {
  Node& node = state_.nodes_.At(id);
  DropHold(node.reserved, node.devices_reserved, shape, UseOf(node, shape, devices));
  Drop(node.nominated, key);
  ReindexNode(node);
  WakeForNode(id);
}

// For a frozen task that waits for what it lends there.
void StateEditor::ReserveLent(const Task& task, const ShapeEntry& shape, int sign) {
  Node& node = state_.nodes_.At(task.node);
  const Resources lent = LentBy(node, shape, task);
  if (sign > 0) node.reserved += lent;
  if (sign < 0) node.reserved -= lent;
  ReindexNode(node);
  if (sign < 0) WakeForNode(task.node);
}

// Recomputed, as several tasks may lend the same device.
void StateEditor::CountLent(NodeId id) {
  Node& node = state_.nodes_.At(id);
  node.lent = node.awaited = DeviceSet{};
  for (TaskKey key : node.tasks) AddLent(node, state_.jobs_.At(key.job).tasks[key.task]);
  ReindexNode(node);
  WakeForNode(id);
}

// The task is, or was, being released or frozen: updates what its node will have then. The task
// occupies that; the caller updates the node's place in the index.
void StateEditor::CountLeavingTask(const Job& job, const Task& task, const ShapeEntry& shape,
                                   int sign) {
  Node& node = state_.nodes_.At(task.node);
  if (BeingFrozen(task)) {
    const bool lends = LendsSoon(job, shape, task);
    const Resources amounts = GivenBack(shape, lends);
    const DeviceUse use = lends ? UseOf(node, shape, task.devices) : DeviceUse{};
    if (sign > 0) {
      node.leaving += amounts;
      node.devices_leaving += use;
    } else {
      node.leaving -= amounts;
      node.devices_leaving -= use;
    }
    return;
  }
  node.leaving_tasks += sign;
  const auto count = sign > 0 ? AddHold : DropHold;
  count(node.leaving, node.devices_leaving, shape, UseOf(node, shape, DevicesHeld(task)),
        Frozen(task));
}

// Recomputed: device positions changed, or shares take another part of them than before.
void StateEditor::CountHolds(Node& node) {
  static_cast<NodeSums&>(node) = NodeSums{};
  const auto shape_of = [this](const Job& job, TaskKey key) -> const ShapeEntry& {
    return state_.interner_.Shape(job.groups[GroupOf(job, key.task)].shape);
  };
  for (TaskKey key : node.tasks) {
    const Job& job = state_.jobs_.At(key.job);
    const Task& task = job.tasks[key.task];
    const ShapeEntry& shape = shape_of(job, key);
    AddHold(node.allocated, node.devices_used, shape, UseOf(node, shape, DevicesHeld(task)),
            Frozen(task));
    AddLent(node, task);
    if (task.pause == PauseState::kResuming) node.reserved += LentBy(node, shape, task);
    if (GivesRoom(task)) CountLeavingTask(job, task, shape, 1);
  }
  for (TaskKey key : node.nominated) {
    const Job& job = state_.jobs_.At(key.job);
    const Task& task = job.tasks[key.task];
    const ShapeEntry& shape = shape_of(job, key);
    const DeviceSet& devices = task.moves ? task.next_devices : task.devices;
    AddHold(node.reserved, node.devices_reserved, shape, UseOf(node, shape, devices));
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
  const bool soon = AnyLeaves(node) && TaskRoomAfterRelease(node) > 0;
  if (!soon) return state_.free_.RemoveSoon(node.id);
  const int64_t cpu = FreeAfterRelease(node)[kCpu];
  state_.free_.PutSoon(node.id, FreeIndex::Room(devices(TakenAfterRelease(node)), cpu));
}

// Derives capacity, device sets and layout from the spec and the drained devices.
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
    if (Unusable(node, i)) continue;
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

void StateEditor::CountCapacity(const Node& node, bool add) {
  if (node.status.state != NodeState::kReady) return;
  if (add) state_.capacity_ += node.capacity;
  if (!add) state_.capacity_ -= node.capacity;
}

}  // namespace berth
