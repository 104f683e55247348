// Ids and the few scalars that the whole core uses.
#ifndef BERTH_CORE_MODEL_IDS_H_
#define BERTH_CORE_MODEL_IDS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "core/base/id.h"

namespace berth {

using JobId = Id<struct JobTag, uint64_t>;    // the job's uid: never used twice
using NodeId = Id<struct NodeTag>;            // never used twice
using QueueId = Id<struct QueueTag>;          // 0 is the root; never used twice
using HyperNodeId = Id<struct HyperNodeTag>;  // 0 is the root of every kind; never used twice
using RunId = Id<struct RunTag, uint64_t>;    // of a run in RunHistory; grows with each
using ShapeId = Id<struct ShapeTag>;          // interned TaskShape; not persistent
using ClassId =
    Id<struct ClassTag>;  // of waiting jobs that ask for the same; 0 = none; not persistent
using ResourceKind = Id<struct ResourceTag, uint8_t>;  // index into Resources; not persistent

inline constexpr QueueId kRootQueue{0};
inline constexpr JobId kLastJobId{(uint64_t{1} << 53) - 1};  // JSON numbers hold it exactly

// Wall time. It orders and explains; leases and fencing are measured on steady clocks outside the
// core.
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
