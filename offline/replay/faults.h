// Turns strikes (fault_file.h) into what happens to a cluster: a job stands still from the fault
// on; the scheduler learns of it after `detection`; a node comes back after `repair`.
//
// A strike on a node that is down, or is known to be about to go down, has no effect, and neither
// has one of a task on a node without tasks.
#ifndef BERTH_OFFLINE_REPLAY_FAULTS_H_
#define BERTH_OFFLINE_REPLAY_FAULTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/model/cluster_state.h"
#include "offline/replay/fault_file.h"

namespace berth::replay {

// What the replay has to do.
struct FaultAct {
  enum class What : uint8_t {
    kNodeStands,  // the jobs with tasks on the node stand still, now and as long as it is so
    kTaskStands,  // the job of the task stands still
    kNodeDown,    // the scheduler learns that the node is lost
    kTaskFails,   // that the task has failed
    kTaskHangs,   // that the job makes no progress
    kNodeUp,
  };
  What what = What::kNodeStands;
  NodeId node;
  TaskKey task;          // kTask*
  uint32_t attempt = 0;  // likewise
  Duration still;        // since the fault
};

class Faults {
 public:
  // All nodes are registered, at least one. Both must outlive this.
  Faults(const FaultModel& model, uint64_t seed, const ClusterState& state, Time begin);

  // When something is to be done next; always finite.
  Time Next() const;
  // A node or a job that a fault has stopped will change by itself.
  bool Pending() const { return !due_.empty(); }
  // The next thing to do at this time or before; nullopt: nothing more. Call it again after each.
  std::optional<FaultAct> Take(Time now);

  int64_t strikes() const { return strikes_; }
  // Faults because of which a job was stopped, by cause.
  const std::map<std::string, int64_t>& interruptions() const { return interruptions_; }

 private:
  struct Due {
    Time time;
    FaultAct act;
    size_t cause = 0;
    uint64_t number = 0;  // in order of creation
    friend bool operator<(const Due& a, const Due& b) {
      return std::tie(a.time, a.number) < std::tie(b.time, b.number);
    }
  };
  std::optional<FaultAct> Begin(const Strike& strike, Time now);
  // False: it no longer applies.
  bool Applies(const Due& due) const;
  void Add(Time time, FaultAct act, size_t cause);

  const FaultModel& model_;
  const ClusterState& state_;
  const Time begin_;
  std::vector<NodeId> nodes_;
  std::set<NodeId> bad_;  // down, or soon
  StrikeSequence strikes_to_come_;
  std::set<Due> due_;
  uint64_t numbers_ = 0;
  int64_t strikes_ = 0;
  std::map<std::string, int64_t> interruptions_;
};

// INVALID_ARGUMENT if faults would be more frequent than one a second on this many nodes, or
// there are no nodes.
absl::Status CheckFrequency(const FaultModel& model, int64_t nodes);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_FAULTS_H_
