// Whether frozen tasks can go on (core/engine/place/resume_stage.cc).
#ifndef BERTH_CORE_MODEL_PAUSES_H_
#define BERTH_CORE_MODEL_PAUSES_H_

#include <cstdint>
#include <vector>

#include "core/model/cluster_state.h"

namespace berth {

// After a decision to freeze a task, its node has this long to report that it is frozen. Then the
// pause is given up.
inline constexpr Duration kFreezeTimeout = absl::Seconds(30);

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

// The task's node has the CPU for all frozen ones of these tasks of the job that are there.
bool HasCpuToResume(const ClusterState& state, const Job& job, const std::vector<uint32_t>& tasks,
                    uint32_t task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_PAUSES_H_
