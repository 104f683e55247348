#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/model/apply_internal.h"
#include "core/model/state_editor.h"
#include "core/model/transitions.h"

namespace berth::apply_internal {
namespace {

absl::Status CheckDevices(const NodeSpec& spec) {
  const std::string whose = absl::StrCat("node ", spec.name);
  if (spec.devices.size() > kMaxDevicesPerNode) {
    return Invalid(whose, " has ", spec.devices.size(), " devices; at most ", kMaxDevicesPerNode);
  }
  std::set<std::pair<absl::string_view, absl::string_view>> seen;
  for (const Device& device : spec.devices) {
    if (device.kind.empty() || device.uuid.empty()) {
      return Invalid(whose, ": a device without kind or uuid");
    }
    if (!seen.emplace(device.kind, device.uuid).second) {
      return Invalid(whose, ": two devices of kind ", device.kind, " with uuid ", device.uuid);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTopology(const NodeSpec& spec) {
  const DeviceTopology& topology = spec.topology;
  const std::string whose = absl::StrCat("node ", spec.name);
  const bool fits =
      topology.links.size() <= kMaxDeviceLinks && topology.numa_nodes.size() <= kMaxNumaNodes &&
      (topology.between.empty() || topology.between.size() == PairsOf(spec.devices.size()));
  if (!fits) return Invalid(whose, ": its topology does not match its devices");
  for (const char code : topology.between) {
    if (static_cast<uint8_t>(code) <= topology.links.size()) continue;
    return Invalid(whose, ": its topology names a link that does not exist");
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const ClusterState& state, const NodeSpec& spec) {
  const std::string whose = absl::StrCat("node ", spec.name);
  if (spec.name.empty()) return Invalid("a node needs a name");
  for (int64_t amount : {spec.cpu_millis, spec.memory_bytes}) {
    if (amount < 0 || amount > kMaxAmount) {
      return Invalid(whose, ": cpu and memory must be 0 to ", kMaxAmount, ", not ", amount);
    }
  }
  if (auto status = CheckAmounts(spec.extended, whose); !status.ok()) return status;
  if (auto status = CheckDevices(spec); !status.ok()) return status;
  if (auto status = CheckTopology(spec); !status.ok()) return status;
  std::vector<absl::string_view> names;
  for (const Device& device : spec.devices) names.push_back(device.kind);
  for (const NamedAmount& extended : spec.extended) names.push_back(extended.name);
  return state.interner().CanAddKinds(names);
}

absl::Status CheckKnown(const ClusterState& state, NodeId id) {
  if (state.nodes().Find(id) != nullptr) return absl::OkStatus();
  return NotFound("no node ", id.value);
}

std::vector<TaskKey> TasksOn(const Node& node) {
  std::vector<TaskKey> tasks = node.tasks;
  std::sort(tasks.begin(), tasks.end());
  return tasks;
}

// Drops reservations on the node, so that planning looks for other places.
void DropReservationsOn(StateEditor& editor, const ClusterState& state, NodeId node) {
  std::vector<JobId> jobs;
  for (const auto& [id, reservation] : state.reservations()) {
    const auto& places = reservation.places;
    const auto there = [node](const Placement& place) { return place.node == node; };
    if (std::any_of(places.begin(), places.end(), there)) jobs.push_back(id);
  }
  for (JobId id : jobs) editor.SetReservation(id, {});
}

void UnnominateOn(StateEditor& editor, const ClusterState& state, const Node& node, Time now) {
  const std::vector<TaskKey> nominated = node.nominated;
  for (TaskKey key : nominated) {
    const Task& task = state.jobs().At(key.job).tasks[key.task];
    editor.SetTask(key, task.moves ? ReleasedTask(task, true, task.released, now)
                                   : UnnominatedTask(task, now));
  }
}

bool SamePositions(const NodeSpec& before, const NodeSpec& after) {
  const std::vector<int> moves = DeviceMoves(before, after);
  for (size_t i = 0; i < moves.size(); ++i) {
    if (moves[i] != static_cast<int>(i)) return false;
  }
  return true;
}

// Some device that tasks have and that was healthy is not healthy any more.
bool DeviceFailed(const Node& node, const NodeSpec& spec) {
  const DeviceSet in_use = node.devices_used.InUse();
  const std::vector<int> moves = DeviceMoves(node.spec, spec);
  for (size_t i = 0; i < moves.size(); ++i) {
    if (!in_use.Has(i) || node.spec.devices[i].unhealthy) continue;
    if (moves[i] < 0 || spec.devices[static_cast<size_t>(moves[i])].unhealthy) return true;
  }
  return false;
}

NodeStatus Registration(const NodeRegistered& event, NodeStatus status, Time now) {
  status.state = NodeState::kReady;
  status.epoch = event.epoch;
  status.agent_id = event.agent_id;
  status.boot_id = event.boot_id;
  status.agent_version = event.agent_version;
  status.registered = now;
  return status;
}

absl::Status RegisterNew(ClusterState& state, const NodeRegistered& event, Time now) {
  const NodeSpec& spec = event.spec;
  if (event.id != state.next_node_id()) {
    return Refused("the next node is ", state.next_node_id().value, ", not ", event.id.value);
  }
  if (state.FindNode(spec.name) != nullptr) return Exists("node ", spec.name, " exists");
  if (event.epoch != 1) return Invalid("node ", spec.name, ": the first epoch is 1");
  if (auto status = CheckSpec(state, spec); !status.ok()) return status;
  StateEditor(state).AddNode(event.id, spec, Registration(event, {}, now));
  return absl::OkStatus();
}

absl::Status RegisterAgain(ClusterState& state, const NodeRegistered& event, Time now) {
  const Node& node = state.nodes().At(event.id);
  if (event.spec.name != node.spec.name) {
    return Invalid(NameOf(node), " cannot become ", event.spec.name);
  }
  if (event.epoch != node.status.epoch + 1) {
    return Refused(NameOf(node), ": the next epoch is ", node.status.epoch + 1, ", not ",
                   event.epoch);
  }
  NodeSpec spec = WithUsedDevices(node, event.spec);
  if (auto checked = CheckSpec(state, spec); !checked.ok()) return checked;
  const bool failed = event.counts_faults && DeviceFailed(node, spec);
  StateEditor editor(state);
  if (!SamePositions(node.spec, spec)) DropReservationsOn(editor, state, event.id);
  editor.SetNodeSpec(event.id, std::move(spec));
  NodeStatus status = Registration(event, node.status, now);  // SetNodeSpec changes the drain
  if (failed) status.faults = WithFault(status.faults, now);
  editor.SetNodeStatus(event.id, std::move(status));
  for (TaskKey key : TasksOn(node)) {
    const Task& task = state.jobs().At(key.job).tasks[key.task];
    if (task.state == TaskState::kLost) editor.SetTask(key, ReturnedTask(task, now));
  }
  return absl::OkStatus();
}

// Ascending, and all of them held, or none.
absl::Status CheckImageChange(const Node& node, const std::vector<ImageId>& images, bool held) {
  const bool ordered = std::adjacent_find(images.begin(), images.end(),
                                          std::greater_equal<ImageId>()) == images.end();
  if (!ordered || (!images.empty() && images.front() == ImageId{})) {
    return Invalid(NameOf(node), ": images must be ascending, each once");
  }
  for (ImageId image : images) {
    if (HoldsImage(node, image) == held) continue;
    return Refused(NameOf(node), held ? " does not hold" : " already holds", " image ",
                   image.value);
  }
  return absl::OkStatus();
}

void SetNodeState(StateEditor& editor, const Node& node, NodeState value) {
  NodeStatus status = node.status;
  status.state = value;
  editor.SetNodeStatus(node.id, std::move(status));
}

void CountFault(StateEditor& editor, const Node& node, Time now) {
  NodeStatus status = node.status;
  status.faults = WithFault(status.faults, now);
  editor.SetNodeStatus(node.id, std::move(status));
}

}  // namespace

absl::Status ApplyBody(ClusterState& state, const NodeRegistered& event, Time now) {
  const bool known = state.nodes().Find(event.id) != nullptr;
  return known ? RegisterAgain(state, event, now) : RegisterNew(state, event, now);
}

absl::Status ApplyBody(ClusterState& state, const NodeSilenced& event, Time now) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Node& node = state.nodes().At(event.id);
  if (node.status.state != NodeState::kReady) return Refused(NameOf(node), " is already silent");
  StateEditor editor(state);
  SetNodeState(editor, node, NodeState::kSilent);
  const std::vector<TaskKey> tasks = TasksOn(node);
  for (TaskKey key : tasks) {
    const Job& job = state.jobs().At(key.job);
    const Task& task = job.tasks[key.task];
    if (job.status.forced && event.ends_forced) {
      EndByForce(editor, key, task, now);
      continue;
    }
    editor.SetTask(key, SilencedTask(task, job.on_node_loss, now));
  }
  // Else it counts when the node is fenced.
  const bool all_ended = !tasks.empty() && node.tasks.empty();
  if (event.counts_faults && all_ended) CountFault(editor, node, now);
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodeFenced& event, Time now) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Node& node = state.nodes().At(event.id);
  if (node.status.state != NodeState::kSilent) return Refused(NameOf(node), " is not silent");
  StateEditor editor(state);
  SetNodeState(editor, node, NodeState::kLost);
  if (event.counts_faults && !node.tasks.empty()) CountFault(editor, node, now);
  for (TaskKey key : TasksOn(node)) {
    const Job& job = state.jobs().At(key.job);
    const Task& task = job.tasks[key.task];
    if (EndsAtFence(task, job.on_node_loss)) {
      editor.SetTask(key, GoneTask(task, EndCause::kNodeLost, now));
    }
  }
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodeSteered& event, Time) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Node& node = state.nodes().At(event.id);
  for (size_t i = node.spec.devices.size(); i < kMaxDevicesPerNode; ++i) {
    if (event.drain.devices.Has(i)) return Invalid(NameOf(node), " has no device ", i);
  }
  if (event.drain.mode == DrainMode::kCheckpoint &&
      event.drain.deadline == absl::InfiniteFuture()) {
    return Invalid(NameOf(node), ": a drain by checkpoint needs a deadline");
  }
  NodeStatus status = node.status;
  status.cordoned = event.cordoned;
  status.draining = event.draining;
  const bool drains = event.draining || !event.drain.devices.Empty();
  status.drain = drains ? event.drain : Drain{};
  status.reason = event.reason;
  if (event.repaired) status.faults = {};
  if (!event.cordoned && !event.draining) {  // trusted again
    status.refusals = status.refused_jobs = 0;
    status.backoff_until = absl::InfinitePast();
    status.refusal.clear();
  }
  StateEditor(state).SetNodeStatus(event.id, std::move(status));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodeRefused& event, Time now) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  if (event.refusals < 0) return Invalid("node ", event.id.value, ": refusals is negative");
  StateEditor(state).SetNodeStatus(event.id,
                                   AfterRefusal(state.nodes().At(event.id).status, event, now));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodeImagesChanged& event, Time) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Node& node = state.nodes().At(event.id);
  if (event.gained.empty() && event.lost.empty()) return Invalid("no images were gained or lost");
  if (auto status = CheckImageChange(node, event.gained, false); !status.ok()) return status;
  if (auto status = CheckImageChange(node, event.lost, true); !status.ok()) return status;
  std::vector<ImageId> images = ImagesAfter(node.images, event.gained, event.lost);
  if (images.size() > kMaxNodeImages) {
    return Invalid(NameOf(node), " holds ", images.size(), " images; at most ", kMaxNodeImages);
  }
  StateEditor(state).SetNodeImages(event.id, std::move(images));
  return absl::OkStatus();
}

absl::Status ApplyBody(ClusterState& state, const NodeDeleted& event, Time now) {
  if (auto status = CheckKnown(state, event.id); !status.ok()) return status;
  const Node& node = state.nodes().At(event.id);
  if (node.status.state == NodeState::kReady) {
    return Refused(NameOf(node), " is connected: stop its agent first");
  }
  if (!node.tasks.empty()) return Refused(NameOf(node), " holds ", node.tasks.size(), " tasks");
  StateEditor editor(state);
  UnnominateOn(editor, state, node, now);
  DropReservationsOn(editor, state, event.id);
  editor.EraseNode(event.id);
  return absl::OkStatus();
}

}  // namespace berth::apply_internal
