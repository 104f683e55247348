#include "core/model/drains.h"

#include <algorithm>

namespace berth {

Time DrainOfTask(const ClusterState& state, const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  if (!job.saves_before_drain || Waits(task.state)) return absl::InfiniteFuture();
  const Node* node = state.nodes().Find(task.node);  // that of an ended task may be deleted
  if (node == nullptr || DrainModeOf(node->status) != DrainMode::kCheckpoint) {
    return absl::InfiniteFuture();
  }
  // An ended task has no devices any more.
  const bool leaves = Ended(task.state) || MustLeave(node->status, task.devices);
  const Time begin = node->status.drain.begin;
  return leaves && begin >= task.start ? begin : Time(absl::InfiniteFuture());
}

Time DrainOfGang(const ClusterState& state, const Job& job) {
  Time first = absl::InfiniteFuture();
  if (!job.saves_before_drain) return first;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (!RunsAlone(job, i)) first = std::min(first, DrainOfTask(state, job, i));
  }
  return first;
}

Time AskedByDrain(const ClusterState& state, const Job& job, uint32_t index, Time of_gang) {
  if (RunsAlone(job, index)) return DrainOfTask(state, job, index);
  return of_gang >= job.tasks[index].start ? of_gang : Time(absl::InfiniteFuture());
}

Time AskedByDrain(const ClusterState& state, const Job& job, uint32_t index) {
  const Time of_gang = RunsAlone(job, index) ? absl::InfiniteFuture() : DrainOfGang(state, job);
  return AskedByDrain(state, job, index, of_gang);
}

}  // namespace berth
