// Ids and basic scalars of the whole core.
#ifndef BERTH_CORE_MODEL_IDS_H_
#define BERTH_CORE_MODEL_IDS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/base/id.h"

namespace berth {

using JobId = Id<struct JobTag, uint64_t>;    // the job's uid: never reused
using NodeId = Id<struct NodeTag>;            // never reused
using QueueId = Id<struct QueueTag>;          // 0 is the root; never reused
using HyperNodeId = Id<struct HyperNodeTag>;  // 0 is the root of every kind; never reused
using RunId = Id<struct RunTag, uint64_t>;    // of a run in RunHistory; increasing
using ShapeId = Id<struct ShapeTag>;          // interned TaskShape; not persistent
using ClassId =
    Id<struct ClassTag>;  // of pending jobs with equal requests; 0 = none; not persistent
using ImageId = Id<struct ImageTag, uint64_t>;  // of its name (core/model/image_id.h); 0 = none
using ResourceKind = Id<struct ResourceTag, uint8_t>;  // index into Resources; not persistent

inline constexpr QueueId kRootQueue{0};
inline constexpr JobId kLastJobId{(uint64_t{1} << 53) - 1};  // JSON numbers hold it exactly

// Wall time, for ordering and explanations. Leases and fencing use steady clocks outside the core.
using Time = absl::Time;
using Duration = absl::Duration;

struct TaskKey {
  JobId job;
  uint32_t task = 0;  // index in Job::tasks

  auto operator<=>(const TaskKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const TaskKey& key) {
    return H::combine(std::move(h), key.job, key.task);
  }
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_IDS_H_
