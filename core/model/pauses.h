// Jobs that are paused, and whether they can go on (core/engine/lifecycle/pause.cc).
#ifndef BERTH_CORE_MODEL_PAUSES_H_
#define BERTH_CORE_MODEL_PAUSES_H_

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/model/cluster_state.h"

namespace berth {

// After a decision to freeze a task, its node has this long to report that it is frozen. Then the
// pause is given up.
inline constexpr Duration kFreezeTimeout = absl::Seconds(30);
// The same if what the task has on its devices is copied to memory before; agents give that up
// earlier (clients/agent/supervisor/device_saver.h).
inline constexpr Duration kCheckpointTimeout = absl::Minutes(10);
Duration FreezeTimeout(const Job& job);

// ClusterState::paused_jobs.
inline bool ListedAsPaused(const JobStatus& status) {
  return IsPaused(status) && !Ended(status.state);
}
// It makes room for another job (Pause::beneficiary).
inline bool Yields(const JobStatus& status) {
  return ListedAsPaused(status) && status.pause.beneficiary != JobId{};
}
// Since then it has run without a pause.
inline Time TurnBegan(const JobStatus& status) {
  return std::max(status.start, status.pause.resumed);
}

// A node of the job's tasks whose agent cannot freeze them; null: there is none.
const Node* NodeWithoutFreezer(const ClusterState& state, const Job& job);

// CPU of the node that nobody uses, whoever waits for it. Negative if its capacity has shrunk.
int64_t UnusedCpu(const Node& node);
// What the task of the job uses when it runs.
int64_t CpuOf(const ClusterState& state, const Job& job, uint32_t task);

// What the node has more once the task is gone: what it holds there, and what is reserved for it.
Resources FreedBy(const Node& node, const ShapeEntry& shape, const Task& task);

// The job can make room by a pause, as it asks to: all of it is frozen where it is, or waits for
// its CPU and stops waiting.
bool CanYield(const ClusterState& state, const Job& job);

// The job's places are still to become free, or it restarts and keeps them: tasks that are paused
// for it do not wait for their CPU.
bool AwaitsPlaces(const Job& beneficiary);
// It is frozen, and some of it waits for its CPU.
bool AwaitsCpu(const Job& job);

// It takes turns with jobs of its queue (QueueSpec::slice): it may be paused, and as a whole only.
bool TakesTurns(const ClusterState& state, const Job& job);

// The task may lend its devices while it is frozen: all of them, none in part.
bool MayLend(const Job& job, const ShapeEntry& shape, const Task& task);
bool MayLend(const ClusterState& state, const Job& job, uint32_t task);
// It is being frozen, and its devices will be free, if its node can do that.
inline bool LendsSoon(const Job& job, const ShapeEntry& shape, const Task& task) {
  return BeingFrozen(task) && MayLend(job, shape, task);
}

// What nodes have left for frozen tasks that go on, one after the other, whoever else waits for it.
class ResumeRoom {
 public:
  explicit ResumeRoom(const ClusterState& state) : state_(state) {}
  // Takes what the frozen task lends, in any case. False if some of that was not left.
  bool Take(const Job& job, uint32_t task);

 private:
  struct Left {
    int64_t cpu = 0;
    DeviceUse used;
  };
  const ClusterState& state_;
  std::map<NodeId, Left> left_;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_PAUSES_H_
