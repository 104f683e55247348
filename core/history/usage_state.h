// The reduced state of the fold (usage_fold.h): only what decides who uses what. Of jobs those that
// have not ended, of tasks those that hold a place or wait for one.
#ifndef BERTH_CORE_HISTORY_USAGE_STATE_H_
#define BERTH_CORE_HISTORY_USAGE_STATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "core/history/capacity_split.h"
#include "core/history/meter.h"
#include "core/history/period_rows.h"
#include "core/history/usage_facts.h"
#include "core/history/usage_keys.h"
#include "core/model/group_of.h"
#include "core/model/interner.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/task.h"

namespace berth {

// Why work of an attempt is lost.
enum class Loss : uint8_t { kNone, kPreemption, kFault };

// A task that occupies its place, or has one reserved.
struct PlacedTask {
  Task task;
  // Its work is lost if it is cut now: since its start or its latest checkpoint, and before it
  // starts since its bind; without the time for which it was frozen since then.
  int64_t work_from_ms = 0;
  int64_t frozen_ms = 0;
  int64_t frozen_since_ms = 0;    // while it is frozen
  Loss stopped_by = Loss::kNone;  // while it is told to stop
  bool operator==(const PlacedTask&) const = default;
};

struct QueueUsage {
  std::string path;
  KeyId key;  // of minutes
};

// What a job has besides while something of it is placed, or was.
struct JobPlaces {
  absl::btree_map<uint32_t, PlacedTask> tasks;
  MeterRow<UsageMeter> meters;  // of the whole job: what it holds, and what is paused of it
};

struct JobUsage {
  QueueId queue;
  KeyId key;                                // of hours
  const JobTemplate* shared = nullptr;      // its groups, without what does not matter here
  absl::InlinedVector<int32_t, 1> pending;  // tasks, parallel to the groups
  JobState state = JobState::kPending;
  NodeLossPolicy on_node_loss = NodeLossPolicy::kFence;
  bool forced = false;           // JobStatus::forced
  bool saves_with_zero = false;  // exit code 0 says that it saved its work
  Loss broken_by = Loss::kNone;  // how an attempt of it was cut last, since its latest bind
  Time submit = absl::InfinitePast();
  JobLife life;
  std::unique_ptr<JobPlaces> places;  // null: nothing of it was ever placed
};

struct NodeUsage : Node {
  std::vector<DeviceKey> devices;  // parallel to spec.devices
  CapacitySplit split;             // as counted
};

// Only what the fold needs of it: what it is called, what it has, and what decides what tasks take.
NodeSpec ReducedSpec(const NodeSpec& spec);
JobSpec ReducedSpec(const JobSpec& spec);

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_USAGE_STATE_H_
