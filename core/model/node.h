// Nodes as the scheduler keeps them.
#ifndef BERTH_CORE_MODEL_NODE_H_
#define BERTH_CORE_MODEL_NODE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/model/device_topology.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/resources.h"

namespace berth {

inline constexpr int32_t kMaxSharers = 100;            // of one device
inline constexpr size_t kMaxRefusedBefore = 16;        // jobs that a node's record names
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
  // Per cent: a share that may be oversubscribed takes share * 100 / this. 100..1000.
  int32_t oversubscription = 100;
  int32_t compute_capability = 0;  // NVIDIA's, 100 * major + minor; 0 = unknown
  bool operator==(const Device&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  bool operator==(const Taint&) const = default;
};

class DeviceLayout;  // core/devices/device_layout.h
struct ShapeEntry;   // core/model/interner.h

// What an agent reports; carried by NodeRegistered.
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
  DeviceTopology topology = {};  // of `devices`
  bool divides_gpus = false;     // GPUs in MIG mode may be divided anew when nobody uses them
  int32_t max_tasks = 0;         // that may live there, whatever they ask for; 0 = no bound
  bool operator==(const NodeSpec&) const = default;
};

enum class NodeState : uint8_t { kReady, kSilent, kLost };

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
  JobId last_refused;        // whose the latest was
  // Jobs that refused_jobs counts, the latest kMaxRefusedBefore, in that order: one of them does
  // not count again. What is left of an earlier row means nothing while refused_jobs is 0.
  std::vector<JobId> refused_before = {};
  Time backoff_until = absl::InfinitePast();
  std::string refusal;  // why it refused the latest
  bool operator==(const NodeStatus&) const = default;
};

// The reason of a node that is cordoned for what it refused begins so. Taken back when the node
// boots anew, or by an operator.
inline constexpr char kCordonedForRefusals[] = "starts refused: ";

// `status` after a refusal that is the node's fault. With as many refusals as before, only the job
// is another one: it was sent there before the node backed off.
struct NodeRefused;
NodeStatus AfterRefusal(NodeStatus status, const NodeRefused& event);

// NodeStatus::refused_jobs after one more refusal, of a member of `job`.
int32_t RefusedJobs(const NodeStatus& status, JobId job);

// The healthy devices of one kind.
struct DeviceKindSet {
  ResourceKind kind;
  DeviceSet devices;
  bool operator==(const DeviceKindSet&) const = default;
};

// "9.0" and 900; nullopt if the text is none. Empty is 0: unknown, or any.
std::optional<int32_t> ComputeCapabilityFrom(absl::string_view text);
std::string ComputeCapabilityText(int32_t capability);

// Equal in all that requests ask for but UUIDs.
bool OfOneMake(const Device& a, const Device& b);

// Healthy devices of one make.
struct AlikeDevices {
  ResourceKind kind;
  size_t first = 0;  // one of them, in NodeSpec::devices
  DeviceSet devices;
};

struct Node {
  NodeId id;
  NodeSpec spec;
  NodeStatus status;
  absl::InlinedVector<HyperNodeId, 1> domains;  // the lowest of each kind that holds it; ascending
  uint64_t revision = 0;
  // Derived.
  Resources capacity;  // healthy devices only
  DeviceSet healthy;
  bool shareable = false;            // tasks may share some healthy device
  std::vector<DeviceKindSet> kinds;  // by first index
  std::vector<AlikeDevices> alike;   // likewise
  // How the devices are connected, shared with all nodes of this make; null: not known.
  const DeviceLayout* layout = nullptr;
  Resources allocated;  // of tasks that occupy
  DeviceUse devices_used;
  // Of tasks that are nominated here, or will be once they are gone elsewhere (Task::moves). While
  // others are still being released these may not be free yet.
  Resources reserved;
  DeviceUse devices_reserved;
  // Of what is allocated and in use: of tasks that are being released.
  Resources leaving;
  DeviceUse devices_leaving;
  int32_t leaving_tasks = 0;
  std::vector<TaskKey> tasks;      // that occupy, in no meaningful order
  std::vector<TaskKey> nominated;  // that reserve, likewise
};

// The device suits by its make, wherever it is; tasks may have shares of it if one is asked for.
bool SuitsByMake(const Device& device, const DeviceRequest& request);
// Of a device that suits, the thousandths that the share takes: where asked for by memory as much
// as that is of the device's; where it may be oversubscribed and the node allows it less than is
// counted, but never less than the memory asked for. 1..1000.
int32_t ShareOn(const Device& device, const DeviceRequest& request);

// What a task of the shape has by having these devices there.
DeviceUse UseOf(const Node& node, const ShapeEntry& shape, const DeviceSet& devices);
// All that it takes of its node with that use of devices. Queues count ShapeEntry::resources.
Resources AmountsOf(const ShapeEntry& shape, const DeviceUse& use);

// Beside what is taken there is room for that: of no device more than there is, and by no more
// tasks than may share it.
bool HasRoom(const Node& node, const DeviceUse& taken, const DeviceUse& more);

// What is free for new tasks: neither allocated nor reserved, negative amounts shown as 0. Devices
// count one by one (of healthy ones what is neither used nor reserved), as an unhealthy one may be
// in use.
Resources FreeOf(const Node& node);
// What new tasks may not have of the devices: in use or reserved.
DeviceUse TakenDevices(const Node& node);

// The same once what is being released is gone: what may be reserved now.
Resources FreeOnceReleased(const Node& node);
DeviceUse TakenOnceReleased(const Node& node);

// How many more tasks the node may have, whatever they ask for: those that occupy and those that
// are to come count. Never negative; many where there is no bound.
int64_t TaskRoom(const Node& node);
// The same of the node when it is empty.
int64_t TaskRoomIfEmpty(const Node& node);

// Ready, and not kept from new tasks by an operator. Back-off depends on the time: FreeIndex::Has.
bool TakesTasks(const NodeStatus& status);

// `fresh`, with the devices that tasks of the node use and that it does not list (by kind and uuid)
// kept as unhealthy ones. May then have more than kMaxDevicesPerNode.
NodeSpec WithUsedDevices(const Node& node, NodeSpec fresh);

// Puts the devices in order, and the topology with them.
void SortDevices(NodeSpec& spec);

// For each device of `before` its index in `after`, found by kind and uuid; -1 if it is not there.
std::vector<int> DeviceMoves(const NodeSpec& before, const NodeSpec& after);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_NODE_H_
