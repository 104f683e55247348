// Keeps what a task has on its GPUs in its memory while it is frozen, with NVIDIA's cuda-checkpoint
// (docs/developers/pauses.md, "Devices"). The task must run meanwhile: the driver works in a thread
// of its process. One command of the program at a time is a child of this process.
//
//   Save     lock, checkpoint        of the one process with open GPUs; none: nothing to be saved
//   Restore  restore, unlock
//   either is asked for its state (--get-state) first or after, so that a command that was killed,
//   or had no effect, is noticed; a Save that fails is undone
#ifndef BERTH_CLIENTS_AGENT_SUPERVISOR_DEVICE_SAVER_H_
#define BERTH_CLIENTS_AGENT_SUPERVISOR_DEVICE_SAVER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/spec.h"

namespace berth {

// Together less than kCheckpointTimeout (core/model/pauses.h).
inline constexpr int64_t kGpuLockMs = 30'000;   // for work that was given to the GPU to end
inline constexpr int64_t kGpuAskMs = 20'000;    // get-state, unlock
inline constexpr int64_t kGpuCopyMs = 240'000;  // checkpoint, restore

class DeviceSaver {
 public:
  // Not owned, and outlive this. Uses cuda_checkpoint, gpu_files and gpu_bytes of the spec.
  DeviceSaver(const SupervisorSpec& spec, const ControlGroup& group) : spec_(spec), group_(group) {}

  // Neither while Busy. Done, at once or later, when it is not Busy any more.
  void Save();
  void Restore();
  bool Busy() const { return child_ > 0; }
  // Nothing of the task is on its GPUs.
  bool saved() const { return state_ == State::kSaved; }
  // Something may be in memory that belongs on the GPUs: Restore must succeed before it can go on.
  bool needs_restore() const { return state_ != State::kLive; }
  // Why the last Save or Restore failed; empty: it did not.
  const std::string& why() const { return why_; }

  // A process of the group that has a GPU open, other than the one that was saved; 0: none.
  pid_t OtherUser() const;

  bool Owns(pid_t pid) const { return pid > 0 && pid == child_; }
  void OnExit(int wait_status);
  // Of its child, on CLOCK_BOOTTIME; 0: none.
  int64_t deadline_ns() const { return child_ > 0 ? deadline_ns_ : 0; }
  void CheckTime(int64_t now_ns);
  // The task ends: its child is not waited for.
  void Abandon() { child_ = 0; }

 private:
  enum class State { kLive, kSaved, kUnknown };
  enum class Step { kLock, kCheckpoint, kConfirm, kAsk, kRestore, kUnlock };

  std::vector<pid_t> Users() const;
  void Begin(Step step);
  void Fail(const std::string& why);
  void OnAnswer(const std::string& answer);
  void Undo();
  bool HasMemory();

  const SupervisorSpec& spec_;
  const ControlGroup& group_;
  State state_ = State::kLive;
  Step step_ = Step::kAsk;
  pid_t user_ = 0;  // the process that is, or will be, saved; 0: none had a GPU open
  pid_t child_ = 0;
  int output_ = -1;  // of the child
  int64_t deadline_ns_ = 0;
  bool expired_ = false;
  bool saving_ = false;  // or undoing a Save; false: restoring
  int turns_ = 0;        // commands since Restore or Undo began
  std::string why_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SUPERVISOR_DEVICE_SAVER_H_
