// UsageFold: nodes, and how their capacity is divided.
#include <algorithm>
#include <utility>

#include "core/history/usage_fold.h"
#include "core/history/usage_fold_internal.h"
#include "core/model/transitions.h"

namespace berth {

using history_internal::Unfit;

namespace {

std::optional<DeviceSet> AfterMove(const DeviceSet& devices, const std::vector<int>& moves) {
  DeviceSet moved;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (!devices.Has(i)) continue;
    if (moves[i] < 0) return std::nullopt;
    moved.Add(static_cast<size_t>(moves[i]));
  }
  return moved;
}

// Tasks that occupy the node, or have a place reserved there; each once.
std::vector<TaskKey> AllTasks(const Node& node) {
  std::vector<TaskKey> keys = node.tasks;
  keys.insert(keys.end(), node.nominated.begin(), node.nominated.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

NodeSpec ReducedSpec(const NodeSpec& spec) {
  NodeSpec reduced;
  reduced.name = spec.name;
  reduced.cpu_millis = spec.cpu_millis;
  reduced.memory_bytes = spec.memory_bytes;
  reduced.devices = spec.devices;
  reduced.extended = spec.extended;
  return reduced;
}

absl::Status UsageFold::DeriveNode(NodeUsage& node) {
  std::vector<absl::string_view> kinds;
  for (const Device& device : node.spec.devices) kinds.push_back(device.kind);
  for (const NamedAmount& extended : node.spec.extended) kinds.push_back(extended.name);
  if (absl::Status room = interner_.CanAddKinds(kinds); !room.ok()) return room;
  node.capacity = Resources{};
  node.capacity[kCpu] = node.spec.cpu_millis;
  node.capacity[kMemory] = node.spec.memory_bytes;
  for (const NamedAmount& extended : node.spec.extended) {
    node.capacity[interner_.AddKind(extended.name)] += extended.amount;
  }
  node.devices.clear();
  for (const Device& device : node.spec.devices) {
    node.devices.push_back({interner_.AddKind(device.kind), models_.Add(device.model)});
  }
  return absl::OkStatus();
}

absl::Status UsageFold::LoadNode(NodeId id, const NodeSpec& spec, const NodeStatus& status) {
  if (nodes_.Find(id) != nullptr) return Unfit("two nodes ", id.value);
  NodeUsage& node = nodes_.Emplace(id);
  node.id = id;
  node.spec = ReducedSpec(spec);
  node.status.state = status.state;
  node.status.cordoned = status.cordoned;
  node.status.draining = status.draining;
  node.status.drain = status.drain;
  ChangeNode(id);
  return DeriveNode(node);
}

absl::Status UsageFold::On(const NodeRegistered& event) {
  changes_.nodes.insert(event.id);
  NodeUsage* node = nodes_.Find(event.id);
  if (node == nullptr) return LoadNode(event.id, event.spec, NodeStatus{});
  absl::Status moved = SetNodeSpec(*node, WithUsedDevices(*node, ReducedSpec(event.spec)));
  if (!moved.ok()) return moved;
  node->status.state = NodeState::kReady;
  for (const TaskKey key : std::vector<TaskKey>(node->tasks)) {
    const PlacedTask* placed = FindTask(key);
    if (placed == nullptr || placed->task.state != TaskState::kLost) continue;
    absl::Status set = SetTask(key, ReturnedTask(placed->task, now()));
    if (!set.ok()) return set;
  }
  return absl::OkStatus();
}

// Its tasks keep their devices, at their new positions.
absl::Status UsageFold::SetNodeSpec(NodeUsage& node, NodeSpec spec) {
  const std::vector<int> moves = DeviceMoves(node.spec, spec);
  const std::vector<TaskKey> keys = AllTasks(node);
  for (const TaskKey key : keys) {
    const PlacedTask* placed = FindTask(key);
    if (placed == nullptr) return Unfit("a task of node ", node.id.value, " has no place");
    Place(key, jobs_.At(key.job), placed->task, -1);
  }
  for (const TaskKey key : keys) {
    Task& task = MutableTask(key)->task;
    const bool here = (Occupies(task.state) || Reserves(task.state)) && task.node == node.id;
    const auto devices = here ? AfterMove(task.devices, moves) : task.devices;
    const bool moves_here = task.moves && task.next_node == node.id;
    const auto next = moves_here ? AfterMove(task.next_devices, moves) : task.next_devices;
    if (!devices.has_value() || !next.has_value()) {
      return Unfit("node ", node.id.value, " has lost devices that tasks use");
    }
    if (!(task.devices == *devices) || !(task.next_devices == *next)) changes_.tasks.insert(key);
    task.devices = *devices;
    task.next_devices = *next;
  }
  DeviceSet drained;
  for (size_t i = 0; i < moves.size(); ++i) {
    if (node.status.drain.devices.Has(i) && moves[i] >= 0) {
      drained.Add(static_cast<size_t>(moves[i]));
    }
  }
  node.status.drain.devices = drained;
  node.spec = std::move(spec);
  if (absl::Status derived = DeriveNode(node); !derived.ok()) return derived;
  for (const TaskKey key : keys) Place(key, jobs_.At(key.job), FindTask(key)->task, 1);
  CountLent(node);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const NodeSilenced& event) {
  NodeUsage* node = nodes_.Find(event.id);
  if (node == nullptr) return Unfit("no node ", event.id.value);
  node->status.state = NodeState::kSilent;
  changes_.nodes.insert(event.id);
  ChangeNode(event.id);
  for (const TaskKey key : std::vector<TaskKey>(node->tasks)) {
    const JobUsage& job = jobs_.At(key.job);
    const PlacedTask& placed = *FindTask(key);
    const bool by_force = job.forced && event.ends_forced;
    const Task after = by_force ? EndedByForce(placed.task, now())
                                : SilencedTask(placed.task, job.on_node_loss, now());
    const Loss loss = by_force ? Loss::kNone : LossAtEnd(placed, after);
    if (absl::Status set = SetTask(key, after, loss); !set.ok()) return set;
  }
  return absl::OkStatus();
}

absl::Status UsageFold::On(const NodeFenced& event) {
  NodeUsage* node = nodes_.Find(event.id);
  if (node == nullptr) return Unfit("no node ", event.id.value);
  node->status.state = NodeState::kLost;
  changes_.nodes.insert(event.id);
  ChangeNode(event.id);
  for (const TaskKey key : std::vector<TaskKey>(node->tasks)) {
    const PlacedTask& placed = *FindTask(key);
    if (!EndsAtFence(placed.task, jobs_.At(key.job).on_node_loss)) continue;
    const Task after = GoneTask(placed.task, EndCause::kNodeLost, now());
    if (absl::Status set = SetTask(key, after, LossAtEnd(placed, after)); !set.ok()) return set;
  }
  return absl::OkStatus();
}

// Of a job that was cancelled by force.
absl::Status UsageFold::EndLostTasks(JobId id, const JobUsage& job) {
  if (job.places == nullptr) return absl::OkStatus();
  std::vector<uint32_t> lost;
  for (const auto& [index, placed] : job.places->tasks) {
    if (placed.task.state == TaskState::kLost) lost.push_back(index);
  }
  return ChangeTasks(id, lost, [this](const Task& task) { return EndedByForce(task, now()); });
}

absl::Status UsageFold::On(const NodeSteered& event) {
  NodeUsage* node = nodes_.Find(event.id);
  if (node == nullptr) return Unfit("no node ", event.id.value);
  node->status.cordoned = event.cordoned;
  node->status.draining = event.draining;
  const bool drains = event.draining || !event.drain.devices.Empty();
  node->status.drain = drains ? event.drain : Drain{};
  changes_.nodes.insert(event.id);
  ChangeNode(event.id);
  return absl::OkStatus();
}

absl::Status UsageFold::On(const NodeDeleted& event) {
  NodeUsage* node = nodes_.Find(event.id);
  if (node == nullptr) return Unfit("no node ", event.id.value);
  if (!node->tasks.empty()) return Unfit("node ", event.id.value, " was deleted with tasks");
  for (const TaskKey key : std::vector<TaskKey>(node->nominated)) {
    const Task& task = FindTask(key)->task;
    const Task after =
        task.moves ? ReleasedTask(task, true, task.released, now()) : UnnominatedTask(task, now());
    if (absl::Status set = SetTask(key, after); !set.ok()) return set;
  }
  CountSplits();
  CountSplit(node->split, {});
  nodes_.Erase(event.id);
  changes_.nodes.insert(event.id);
  return absl::OkStatus();
}

// ---- Capacity

void UsageFold::CountSplits() {
  for (const NodeId id : std::exchange(changed_nodes_, {})) {
    NodeUsage* node = nodes_.Find(id);
    if (node == nullptr) continue;
    CapacitySplit split = SplitCapacity(*node, node->devices);
    if (split == node->split) continue;
    CountSplit(node->split, split);
    node->split = std::move(split);
  }
}

void UsageFold::CountSplit(const CapacitySplit& before, const CapacitySplit& after) {
  const auto count = [&](const CapacitySplit& split, int sign) {
    for (const CapacityShare& share : split) {
      for (auto* rows : {&capacity_minutes_, &capacity_hours_}) {
        CapacityMeter& meter = rows->Change(share.of.model, share.of.kind, now_ms_);
        for (size_t part = 0; part < kCapacityParts; ++part) {
          meter.rate[part] += sign * share.parts[part];
        }
      }
    }
  };
  count(before, -1);
  count(after, 1);
}

}  // namespace berth
