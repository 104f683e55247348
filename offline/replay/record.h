// What a replay records for plots: every change of resources in use, sorted by time.
#ifndef BERTH_OFFLINE_REPLAY_RECORD_H_
#define BERTH_OFFLINE_REPLAY_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/model/cluster_state.h"

namespace berth::replay {

// Values from `time` on, in seconds since the first submit.
struct Moment {
  double time = 0;
  double held = 0;      // of the main resource, 0..1
  double unusable = 0;  // free GPUs that no request of the workload can use, 0..1 of all
  int64_t waiting = 0;  // jobs
};
enum class OwnerKind : uint8_t { kQueue, kUser };
struct ShareMoment {
  double time = 0;
  size_t owner = 0;  // in ReplayRun::queues, ReplayRun::users
  double share = 0;  // dominant
};
struct NodeMoment {
  double time = 0;
  size_t node = 0;  // in Record::nodes
  double held = 0;  // of the main resource, 0..1
  bool ready = true;
};
// The time during which a task had a device.
struct DeviceUseSpan {
  size_t node = 0;
  size_t device = 0;  // among the node's GPUs
  size_t job = 0;     // in Workload::jobs
  double start = 0, end = 0;
};
struct NodeOfRecord {
  std::string name;
  std::string domain;  // the lowest network HyperNode with this node; empty: none
  int64_t gpus = 0;
};

struct Record {
  std::string resource;             // the main one: "gpu" if the cluster has any, else "cpu"
  std::vector<NodeOfRecord> nodes;  // in order of domain, then as registered
  std::vector<Moment> moments;
  std::vector<ShareMoment> queue_shares, user_shares;
  std::vector<NodeMoment> node_moments;
  std::vector<DeviceUseSpan> spans;  // of clusters of at most kMaxSpanDevices GPUs
};
inline constexpr int64_t kMaxSpanDevices = 64;

// Writes a record. Does nothing unless `on`.
class Recorder {
 public:
  Recorder(const ClusterState& state, bool on);

  bool on() const { return on_; }
  void Happens(const Moment& moment);
  void Share(double time, OwnerKind kind, size_t owner, double share);
  void Look(double time, const Node& node);
  // Tasks of the job got these places.
  void Bound(double time, size_t job, const TasksBound& bound);
  // Closes the spans of tasks that no longer have their places; null: the job is gone.
  void LookAtJob(double time, size_t job, const Job* now);
  // The used part of the main resource.
  double HeldPart(const Resources& held) const;
  Record Take();

 private:
  const ClusterState& state_;
  const bool on_;
  ResourceKind main_ = kCpu;
  int64_t capacity_ = 0;  // of it, of all nodes
  bool spans_ = false;
  std::vector<size_t> index_;                // by node id
  std::vector<std::vector<size_t>> gpu_of_;  // by node, of its devices
  struct OpenSpan {
    DeviceUseSpan span;
    uint32_t task = 0, attempt = 0;
  };
  void Close(double time, const OpenSpan& open);
  absl::flat_hash_map<size_t, std::vector<OpenSpan>> open_;  // by job; never iterated
  Record record_;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_RECORD_H_
