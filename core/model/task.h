// A task as the scheduler stores it.
#ifndef BERTH_CORE_MODEL_TASK_H_
#define BERTH_CORE_MODEL_TASK_H_

#include <cstddef>
#include <cstdint>

#include "core/model/ids.h"
#include "core/model/resources.h"

namespace berth {

enum class TaskState : uint8_t {
  kPending,
  kNominated,  // tied to resources that are still being released
  kBound,      // decided and durable; Prepare not yet confirmed (the API's Bound and Preparing)
  kPrepared,   // ready on its node
  kStarting,   // Start is decided
  kRunning,
  kReleasing,  // told to stop; still occupies
  kLost,       // its node is silent; still occupies
  kSucceeded,
  kFailed,
};

// Waits only for its place.
constexpr bool Reserves(TaskState state) { return state == TaskState::kNominated; }
// Holds its node's resources.
constexpr bool Occupies(TaskState state) {
  return state >= TaskState::kBound && state <= TaskState::kLost;
}
constexpr bool Ended(TaskState state) { return state >= TaskState::kSucceeded; }
constexpr bool Waits(TaskState state) { return state <= TaskState::kNominated; }
inline constexpr size_t kTaskStates = 10;

// A task that runs may be frozen where it is (core/engine/lifecycle/pause.cc). While frozen it
// keeps its place, but for its CPU, which others may use (and its devices: Task::devices_lent).
enum class PauseState : uint8_t {
  kRuns,
  kPausing,   // told to freeze
  kPaused,    // reported frozen
  kResuming,  // the same, and waits for what it lends, which is reserved for it
};

// Why the latest attempt ended. Retries count only the job's own failures.
enum class EndCause : uint8_t {
  kNone,      // it has not ended, or there is no attempt
  kExit,      // it ended itself: see exit_code and exit_signal
  kStopped,   // released by decision
  kRefused,   // it was not prepared or not executed: see Task::own_fault and nobodys_fault
  kNodeLost,  // its node was lost, rebooted or fenced it
  kDevice,    // it failed, as one of its devices is bad
};

// Why a task was told to stop.
enum class ReleaseReason : uint8_t {
  kCancelled,
  kSuspended,
  kRestart,
  kGangBroken,
  kDrain,
  kTimeout,
  kCompleted,
  kFailed,
  kPrepareTimeout,
  // Evictions: for the benefit of another job.
  kReclaimed,     // for a job of another queue that is entitled to the room
  kPreempted,     // for a job of the same queue with higher priority
  kConsolidated,  // moved, to create contiguous room
  kGangExpired    // below its minimum for too long
};
constexpr bool IsEviction(ReleaseReason reason) {
  return reason >= ReleaseReason::kReclaimed && reason <= ReleaseReason::kConsolidated;
}

// The rank of a coordinator, which is not one of the gang.
inline constexpr uint16_t kNoRank = UINT16_MAX;

// Plain value, from which the whole accounting of the cluster is derived (StateEditor::SetTask).
// Its message: ClusterState::TaskMessage.
struct Task {
  TaskState state = TaskState::kPending;
  TaskState before_lost =
      TaskState::kPending;               // kLost: the state to which it returns when its node does
  EndCause end_cause = EndCause::kNone;  // kept when Pending again; kNone while an attempt lives
  uint8_t exit_signal = 0;
  bool requeue = false;    // kReleasing or kLost: becomes Pending, not ended, once gone
  bool own_fault = false;  // with kRefused: the job's fault, not the node's
  // Facts of the bind, fixed per attempt (apply_bind.cc).
  uint16_t rank = 0;      // in its gang, or kNoRank
  uint16_t world = 0;     // members of the gang then, this one included: its WORLD_SIZE
  uint32_t epoch = 0;     // TasksBound::epoch; 0: bound by a version without epochs
  int32_t exit_code = 0;  // of the latest attempt that ended
  uint32_t attempt = 0;   // starts decided so far
  NodeId node;            // valid while it occupies, afterwards for history
  uint16_t port = 0;      // rendezvous port its node reserved, if any; while kBound: wanted
  ReleaseReason released = ReleaseReason::kCancelled;  // why it was told to stop, if it was
  bool nobodys_fault = false;  // with kRefused: there was no room for it at the time
  bool ready = false;          // its latest attempt reported that it is ready
  // While it holds a place and is not told to leave it for good: reclaim gave its job room to which
  // the queue is entitled, so others do not reclaim it back (core/engine/shares/queue_claim.h).
  bool claimed = false;
  // Not kRuns: it runs, is lost while it ran, or was frozen when it was told to stop.
  PauseState pause = PauseState::kRuns;
  // Only of a frozen one: it keeps what it has on its devices in its node's memory, and others may
  // use them.
  bool devices_lent = false;
  DeviceSet devices;  // of that node, while it occupies or is nominated
  // kReleasing or kLost, with `requeue`: where it is nominated once it is gone (a task that is
  // moved). Reserved from the decision on.
  bool moves = false;
  NodeId next_node;
  DeviceSet next_devices;
  Time since = absl::InfinitePast();  // when it entered this state
  Time start = absl::InfinitePast();  // when the latest attempt started to run
  Time saved = absl::InfinitePast();  // when the latest attempt reported its latest checkpoint
  bool operator==(const Task&) const = default;
};

// Occupies its place without its CPU.
inline bool Frozen(const Task& task) {
  return task.pause == PauseState::kPaused || task.pause == PauseState::kResuming;
}
// Those of its devices that nobody else may use.
inline DeviceSet DevicesHeld(const Task& task) {
  return task.devices_lent ? DeviceSet{} : task.devices;
}

// Will be without its CPU once its node has reported that it is frozen.
inline bool BeingFrozen(const Task& task) {
  return task.state == TaskState::kRunning && task.pause == PauseState::kPausing;
}

// Its node will have more room soon: it is told to stop, or to freeze.
inline bool GivesRoom(const Task& task) {
  return task.state == TaskState::kReleasing || BeingFrozen(task);
}

}  // namespace berth

#endif  // BERTH_CORE_MODEL_TASK_H_
