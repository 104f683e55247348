// Nodes as the scheduler stores them.
#ifndef BERTH_CORE_MODEL_NODE_H_
#define BERTH_CORE_MODEL_NODE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/base/fields.h"
#include "core/model/device_topology.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/node_faults.h"
#include "core/model/resources.h"

namespace berth {

inline constexpr int32_t kMaxSharers = 100;            // of one device
inline constexpr size_t kMaxRefusedBefore = 16;        // jobs in a node's record
inline constexpr int32_t kMaxOversubscription = 1000;  // per cent

struct Device {
  std::string kind;
  std::string uuid;
  std::string model;
  int64_t memory_bytes = 0;
  int32_t numa_node = -1;
  std::string pci_bus_id;
  bool unhealthy = false;
  int32_t max_tasks = 1;  // that may share it; at most kMaxSharers
  // Per cent: an oversubscribed share takes share * 100 / this. 100..1000.
  int32_t oversubscription = 100;
  int32_t compute_capability = 0;  // NVIDIA's, 100 * major + minor; 0 = unknown
  bool operator==(const Device&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  bool evicts = false;  // tasks that run there and do not tolerate it must leave
  bool operator==(const Taint&) const = default;
};

class DeviceLayout;  // core/devices/device_layout.h
struct ShapeEntry;   // core/model/interner.h
struct Task;         // core/model/task.h

// Reported by an agent; part of NodeRegistered.
struct NodeSpec {
  std::string name;
  std::string address;
  int64_t cpu_millis = 0;
  int64_t memory_bytes = 0;
  std::vector<Device> devices;  // at most kMaxDevicesPerNode, sorted by (kind, pci_bus_id, uuid)
  std::vector<NamedAmount> extended;  // sorted by name
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  std::string os, architecture;
  DeviceTopology topology = {};      // of `devices`
  bool divides_gpus = false;         // unused GPUs in MIG mode may be divided differently
  bool freezes = false;              // its agent can freeze tasks
  bool checkpoints_devices = false;  // and keep what frozen tasks have on GPUs in its memory
  int32_t max_tasks = 0;             // on the node, whatever they request; 0 = no limit
  bool operator==(const NodeSpec&) const = default;
};

enum class NodeState : uint8_t { kReady, kSilent, kLost };

enum class DrainMode : uint8_t {
  kNow,         // tasks are stopped, with their grace
  kCheckpoint,  // each is stopped once it has reported a checkpoint, or at the deadline
  kWait,        // tasks end by themselves, or are stopped at the deadline
  kWhenPlaced,  // each is moved once there is another place (core/actions/migrate.cc), or stopped
                // at the deadline
};

// How tasks leave a node that is drained, or some of its devices.
struct Drain {
  DrainMode mode = DrainMode::kNow;
  Time begin = absl::InfinitePast();       // with kCheckpoint: only later checkpoints count
  Time deadline = absl::InfiniteFuture();  // finite with kCheckpoint
  // Not empty: the node is not drained, but these of its devices are: their users leave, and nobody
  // else gets them.
  DeviceSet devices;
  bool operator==(const Drain&) const = default;
};
inline constexpr Duration kDefaultCheckpointDrain = absl::Minutes(10);

inline constexpr size_t kMaxNodeImages = 512;

struct NodeStatus {
  NodeState state = NodeState::kReady;
  bool cordoned = false;
  bool draining = false;
  std::string reason;
  uint64_t epoch = 0;  // registrations so far
  std::string agent_id, boot_id, agent_version;
  Time registered = absl::InfinitePast();
  int32_t refusals = 0;      // in a row
  int32_t refused_jobs = 0;  // the same, by different jobs
  JobId last_refused;        // job of the latest
  // Jobs counted by refused_jobs, the latest kMaxRefusedBefore, in order: they do not count again.
  // Meaningless while refused_jobs is 0.
  std::vector<JobId> refused_before = {};
  Time backoff_until = absl::InfinitePast();
  std::string refusal;  // reason of the latest refusal
  Drain drain = {};
  NodeFaults faults = {};
  bool operator==(const NodeStatus&) const = default;
};

// Prefix of the reason if a node is cordoned because of refusals. Such a cordon is lifted when the
// node reboots, or by an operator.
inline constexpr char kCordonedForRefusals[] = "starts refused: ";

// `status` after a refusal that is the node's fault. If the number of refusals is unchanged, only
// the job differs: it was sent there before the node backed off.
struct NodeRefused;
NodeStatus AfterRefusal(NodeStatus status, const NodeRefused& event, Time now);

// NodeStatus::refused_jobs after one more refusal, of a member of `job`.
int32_t RefusedJobs(const NodeStatus& status, JobId job);

// `before`, which has all of `lost` and none of `gained`, after that change. All are ascending.
std::vector<ImageId> ImagesAfter(const std::vector<ImageId>& before,
                                 const std::vector<ImageId>& gained,
                                 const std::vector<ImageId>& lost);

// The healthy devices of one kind.
struct DeviceKindSet {
  ResourceKind kind;
  DeviceSet devices;
  bool operator==(const DeviceKindSet&) const = default;
};

// "9.0" and 900; nullopt if malformed. Empty is 0: unknown, or any.
std::optional<int32_t> ComputeCapabilityFrom(absl::string_view text);
std::string ComputeCapabilityText(int32_t capability);

// True if they are equal in every respect that requests can name, except UUIDs.
bool Interchangeable(const Device& a, const Device& b);

// Healthy devices of one make.
struct InterchangeableDevices {
  ResourceKind kind;
  size_t first = 0;  // one of them, in NodeSpec::devices
  DeviceSet devices;
};

// Sums over the tasks of a node. A new sum is a field and a line of ForEach: CheckConsistency then
// compares it by name, and Fingerprint includes it.
struct NodeSums {
  Resources allocated;  // of tasks that occupy
  DeviceUse devices_used;
  // Of tasks that are nominated here, or will be once they have left elsewhere (Task::moves). Not
  // yet free while other tasks are being released. Also what frozen tasks lend and wait for, but
  // devices one by one are in `awaited`: several tasks may wait for the same.
  Resources reserved;
  DeviceUse devices_reserved;
  // The part of allocated and devices_used that is being released, also what tasks will give back
  // that are being frozen. Those stay, so leaving_tasks does not count them.
  Resources leaving;
  DeviceUse devices_leaving;
  int32_t leaving_tasks = 0;
  // Devices that frozen tasks lend (Task::devices_lent); and those of them for which they wait.
  DeviceSet lent;
  DeviceSet awaited;

  // Visits (name, the sum in each of `of`).
  template <class Visit, class... Sums>
  static void ForEach(Visit&& visit, Sums&... of);
};

template <class Visit, class... Sums>
void NodeSums::ForEach(Visit&& visit, Sums&... of) {
  static_assert(kFields<NodeSums> == 9, "visit the new one");
  visit("allocated", of.allocated...);
  visit("devices_used", of.devices_used...);
  visit("reserved", of.reserved...);
  visit("devices_reserved", of.devices_reserved...);
  visit("leaving", of.leaving...);
  visit("devices_leaving", of.devices_leaving...);
  visit("leaving_tasks", of.leaving_tasks...);
  visit("lent", of.lent...);
  visit("awaited", of.awaited...);
}

struct Node : NodeSums {
  NodeId id;
  NodeSpec spec;
  NodeStatus status;
  absl::InlinedVector<HyperNodeId, 1> domains;  // the lowest of each kind around it; ascending
  std::vector<ImageId> images;                  // that it holds; ascending, at most kMaxNodeImages
  uint64_t revision = 0;
  // Derived, besides the sums.
  Resources capacity;                         // healthy devices only
  DeviceSet healthy;                          // neither unhealthy nor drained
  bool shareable = false;                     // some healthy device can be shared
  std::vector<DeviceKindSet> kinds;           // by first index
  std::vector<InterchangeableDevices> alike;  // likewise
  // How the devices are connected, shared by all equal nodes; null: unknown.
  const DeviceLayout* layout = nullptr;
  std::vector<TaskKey> tasks;      // that occupy, in arbitrary order
  std::vector<TaskKey> nominated;  // that reserve, likewise
};

// An agent reported that image; it may be gone by now.
inline bool HoldsImage(const Node& node, ImageId image) {
  return std::binary_search(node.images.begin(), node.images.end(), image);
}

// True if the device's make matches the request, independent of its links, and it can be shared if
// a share is requested.
bool MatchesMake(const Device& device, const DeviceRequest& request);
// The thousandths of a suitable device that the share takes. By memory, it is the fraction of the
// device's memory. Oversubscribed, it is as little as the node allows, but never less than the
// requested memory. 1..1000.
int32_t ShareOn(const Device& device, const DeviceRequest& request);

// What a task of the shape uses of these devices there.
DeviceUse UseOf(const Node& node, const ShapeEntry& shape, const DeviceSet& devices);
// Everything that it takes of its node with that use of devices. Queues count
// ShapeEntry::resources.
Resources AmountsOf(const ShapeEntry& shape, const DeviceUse& use);
// The part of it that a task gives back while it is frozen (core/engine/lifecycle/pause.cc): its
// CPU, and its devices if it lends them.
Resources GivenBack(const ShapeEntry& shape, bool lends);
// What a task on the node holds: without that part while it is frozen, and without its devices if
// it lends them. `use`: of DevicesHeld.
Resources HeldBy(const ShapeEntry& shape, const DeviceUse& use, bool frozen);
// What the frozen task lends, so what it needs to go on.
Resources LentBy(const Node& node, const ShapeEntry& shape, const Task& task);

// True if `more` fits besides `taken`: no device exceeds its capacity or the number of tasks that
// may share it.
bool HasRoom(const Node& node, const DeviceUse& taken, const DeviceUse& more);

// Free for new tasks: neither allocated nor reserved; negative amounts become 0. Devices are
// counted individually (healthy and neither used nor reserved), as an unhealthy one may be in use.
Resources FreeOf(const Node& node);
// Reserved or awaited.
DeviceUse ClaimedDevices(const Node& node);
// The devices that new tasks cannot use: in use, reserved or awaited.
DeviceUse TakenDevices(const Node& node);

// The same after the release of what is being released: what can be reserved now.
Resources FreeAfterRelease(const Node& node);
DeviceUse TakenAfterRelease(const Node& node);

// How many more tasks the node may have, whatever they request. Occupying and expected tasks count.
// Never negative; large without a limit.
int64_t TaskRoom(const Node& node);
// The same if the node were empty.
int64_t TaskRoomIfEmpty(const Node& node);

// How tasks leave the node or the drained devices. A node that drains as a whole although only
// devices were to be drained, such as for a condition of its agent, drains at once.
DrainMode DrainModeOf(const NodeStatus& status);
// When the tasks that may still stay must leave; InfiniteFuture if never, or if none may.
Time DrainDeadline(const NodeStatus& status);
// The task, which has these devices there, must leave the node: sooner or later.
bool MustLeave(const NodeStatus& status, const DeviceSet& devices);
// The device is not given to tasks.
inline bool Unusable(const Node& node, size_t device) {
  return node.spec.devices[device].unhealthy || node.status.drain.devices.Has(device);
}

// Something is being released there.
inline bool AnyLeaves(const Node& node) { return node.leaving_tasks > 0 || !node.leaving.IsZero(); }

// Ready, and not cordoned or draining. Back-off depends on the time: FreeIndex::Has.
bool TakesTasks(const NodeStatus& status);

// `fresh`, plus devices that `fresh` omits (by kind and uuid), as unhealthy ones: those that tasks
// of the node use, and, while there is room, those that are drained, so that they still are when
// they come back. May then have more than kMaxDevicesPerNode.
NodeSpec WithUsedDevices(const Node& node, NodeSpec fresh);

// Sorts the devices, and reorders the topology to match.
void SortDevices(NodeSpec& spec);

// For each device of `before` its index in `after`, by kind and uuid; -1 if it is missing.
std::vector<int> DeviceMoves(const NodeSpec& before, const NodeSpec& after);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_NODE_H_
