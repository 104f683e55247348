// A task as the scheduler keeps it.
#ifndef BERTH_CORE_MODEL_TASK_H_
#define BERTH_CORE_MODEL_TASK_H_

#include <cstddef>
#include <cstdint>

#include "core/model/ids.h"
#include "core/model/resources.h"

namespace berth {

enum class TaskState : uint8_t {
  kPending,
  kNominated,  // reserved on resources that are still being released
  kBound,      // decided and durable; Prepare not answered yet (the API's Bound and Preparing)
  kPrepared,   // its member of the gang is ready
  kStarting,   // Start is decided
  kRunning,
  kReleasing,  // told to stop; still occupies
  kLost,       // its node is silent; still occupies
  kSucceeded,
  kFailed,
};

// Waits for nothing but its place.
constexpr bool Reserves(TaskState state) { return state == TaskState::kNominated; }
// Holds its node's resources.
constexpr bool Occupies(TaskState state) {
  return state >= TaskState::kBound && state <= TaskState::kLost;
}
constexpr bool Ended(TaskState state) { return state >= TaskState::kSucceeded; }
constexpr bool Waits(TaskState state) { return state <= TaskState::kNominated; }
inline constexpr size_t kTaskStates = 10;

// Why the latest attempt ended. Retries count own failures only.
enum class EndCause : uint8_t {
  kNone,      // it has not, or has no attempt
  kExit,      // by itself: exit_code and exit_signal say how
  kStopped,   // released by decision
  kRefused,   // it was not prepared or not executed: Task::own_fault and nobodys_fault say whose
              // fault
  kNodeLost,  // its node was lost, rebooted or fenced it
};

// Plain value: the whole accounting of the cluster follows from these (StateEditor::SetTask). What
// it said when it ended: ClusterState::TaskMessage.
struct Task {
  TaskState state = TaskState::kPending;
  TaskState before_lost =
      TaskState::kPending;               // kLost: the state that it returns to when its node does
  EndCause end_cause = EndCause::kNone;  // also once Pending again; kNone while an attempt lives
  uint8_t exit_signal = 0;
  bool requeue = false;    // kReleasing or kLost: becomes Pending again once gone, instead of ended
  bool own_fault = false;  // with kRefused: for what the job brought along, not the node's fault
  uint16_t rank = 0;  // in its gang, given with each attempt and kept through it (apply_bind.cc)
  int32_t exit_code = 0;       // of the latest attempt that ended
  uint32_t attempt = 0;        // starts decided so far
  NodeId node;                 // meaningful while it occupies, and afterwards for history
  uint16_t port = 0;           // rendezvous port its node reserved, if any
  bool nobodys_fault = false;  // with kRefused: there was no room for it just then
  // While it holds a place and is not told to leave it for good: reclaim gave its job room that the
  // queue is entitled to, and others do not reclaim it back (core/engine/queue_claim.h).
  bool claimed = false;
  DeviceSet devices;  // of that node, while it occupies or is nominated
  // kReleasing or kLost, with `requeue`: where it is nominated once it is gone (a task that is
  // moved). Reserved from the decision on.
  bool moves = false;
  NodeId next_node;
  DeviceSet next_devices;
  Time since = absl::InfinitePast();  // when it came into this state
  Time start = absl::InfinitePast();  // when the latest attempt began to run
  bool operator==(const Task&) const = default;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_H_
