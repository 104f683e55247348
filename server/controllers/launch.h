// LaunchOrder: one message to one agent about one task, as seen by the turn that decided it. Plain
// data, so that it can wait for the disk while the state changes.
#ifndef BERTH_SERVER_CONTROLLERS_LAUNCH_H_
#define BERTH_SERVER_CONTROLLERS_LAUNCH_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "core/devices/handover.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "server/controllers/image_book.h"
#include "server/controllers/ranks.h"

namespace berth {

// Shared by all orders of one job and turn; for a rigid gang, by those of one epoch.
struct LaunchJob {
  JobId id;
  JobId cold_of;  // whose cold part it has: its series', or its own
  std::string name, queue;
  std::vector<v1::EnvVar> env;  // of a member of a series
  std::vector<std::string> group_names;
  std::vector<int32_t> group_sizes;
  std::vector<bool> group_rigid;
  std::optional<uint32_t> coordinator;      // its group
  int32_t least_world = 0, most_world = 0;  // members: without them it does not run; all of them
  bool fence = true;
  absl::Duration kill_grace, walltime, watchdog;
  bool forced = false;  // cancelled by force: no grace
  int32_t restart_count = 0;
  size_t task_count = 0;
  Ranks ranks;
  std::vector<std::string> node_names, node_addresses;  // by node rank
  std::string master_address;                           // of Ranks::master
  int32_t master_port = 0;                              // 0: not reserved yet
  ImageDigests images = {};                             // what its live tasks have
};

enum class OrderKind : uint8_t {
  kPrepare,
  kStart,
  kKill,
  kAskCheckpoint,
  kAskStacks,
  kPrefetch,
  kFreeze,
  kThaw,
};

struct LaunchOrder {
  OrderKind kind = OrderKind::kPrepare;
  NodeId node;
  uint64_t epoch = 0;  // of the node, at the time of the decision
  uint32_t task = 0;
  uint32_t attempt = 0;
  uint32_t group = 0;
  uint32_t gang_epoch = 0;  // Task::epoch
  int32_t world = 0;        // Task::world
  std::shared_ptr<const LaunchJob> job;
  // Prepare only.
  int64_t cpu_millis = 0, memory_bytes = 0, scratch_bytes = 0;
  std::vector<std::string> device_uuids = {}, device_kinds = {};
  std::vector<int32_t> device_shares = {};         // parallel to the devices; empty: all are whole
  std::vector<int32_t> device_memory_shares = {};  // the same
  NearbyHost near = {};
  int32_t preferred_port = 0;
  absl::Time asked = absl::InfinitePast();  // when a checkpoint, stacks, or a pause were asked for
  bool lends_devices = false;               // kFreeze
  // Kill, and kAskCheckpoint: kDrain or kTimeout.
  ReleaseReason reason = ReleaseReason::kCancelled;
  std::string detail = {};  // of an eviction: for which job, and why
};

// Collects the orders of one turn; computes data shared by a job's orders once. The state must not
// change in the meantime.
class LaunchCapture {
 public:
  // `images`: which images tasks have already; null: not known.
  explicit LaunchCapture(const ClusterState& state, const ImageBook* images = nullptr)
      : state_(state), images_(images) {}

  // Adds the orders that follow from a decision; other events have none.
  void Add(const Event& event);
  // Adds what one task's agent should be doing now according to the state: Prepare for Bound, Start
  // for Starting, Kill for Releasing, the request of a checkpoint or of stacks for Running, if
  // there was one; Freeze while it is to be frozen, Thaw if its job was paused before.
  void AddByState(TaskKey key);

  // Adds the order to get the image of a task's group, which may start on this node.
  void AddPrefetch(const Job& job, uint32_t task, const Node& node);

  std::vector<LaunchOrder> Take() { return std::move(orders_); }

 private:
  void AddTasks(OrderKind kind, JobId job, const std::vector<uint32_t>& tasks);
  void AddForced(JobId id);
  // The node drains by checkpoint: asks those that must leave it, and their gangs.
  void AskLeaving(NodeId id);
  void AskLeaving(NodeId id, const Job& job);
  // When the task was asked to save its work, latest; InfinitePast if it was not.
  absl::Time AskedToSaveAt(const Job& job, uint32_t task);
  void AskRunning(OrderKind kind, const Job& job, bool (*test)(const Job& job, uint32_t task));
  void AddTask(OrderKind kind, const Job& job, uint32_t task, ReleaseReason reason);
  std::string EvictionDetail(const Job& job) const;
  HostUse UseOf(TaskKey key) const;
  std::vector<HostUse> UsesOfOthers(const Node& node, TaskKey self) const;
  void FillPrepare(const Job& job, const Node& node, LaunchOrder* order);
  std::shared_ptr<const LaunchJob> Shared(const Job& job, uint32_t epoch);
  const std::vector<size_t>& OrderOf(const Node& node, const DeviceSet& devices);

  const ClusterState& state_;
  const ImageBook* const images_;
  std::map<std::pair<JobId, uint32_t>, std::shared_ptr<const LaunchJob>> jobs_;  // 0: no rigid gang
  std::map<JobId, absl::Time> gang_drains_;                                      // DrainOfGang
  // Results of OrderOfDevices, which searches: members of a gang have the same devices of the same
  // models.
  std::map<std::pair<const DeviceLayout*, std::array<uint64_t, 2>>, std::vector<size_t>> orders_of_;
  std::vector<size_t> order_;  // for a node without topology
  std::vector<LaunchOrder> orders_;
};

// The message, completed with the cold part of the job (command, environment, signal). No grace in
// it exceeds `greatest_grace`.
v1::ServerMessage ToMessage(const LaunchOrder& order, const v1::JobSpec& cold,
                            absl::Duration greatest_grace = absl::InfiniteDuration());

// Why a task is being released, derived from its job.
ReleaseReason ReasonByState(const Job& job, const Task& task);

// For people: "cancelled", "restart", ...
std::string ReleaseReasonText(ReleaseReason reason);

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_LAUNCH_H_
