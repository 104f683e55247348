// Supervisor: a task that is frozen, and goes on.
//
//   Freeze   save what it has on its GPUs, if asked to; then freeze; then the status says so
//   Freeze 0 thaw; then restore; then the status says so
//   Thaw     to end: restored only if nobody else can have the devices
#include <algorithm>

#include "clients/agent/supervisor/supervisor.h"

namespace berth {
namespace {

constexpr int64_t kNsOfFreezeMs = 1'000'000;
constexpr int64_t kFreezeLookNs = 10 * kNsOfFreezeMs;   // until all processes are frozen
constexpr int64_t kWriteAgainNs = 250 * kNsOfFreezeMs;  // on a full disk
constexpr int64_t kRestoreAgainNs = 2000 * kNsOfFreezeMs;
constexpr int kRestoreTries = 3;

}  // namespace

void Supervisor::Freeze(int64_t request, bool saves) {
  if (phase_ != Phase::kRunning || kill_at_ns_ != 0 || !group_.exists()) return;
  if (request == freeze_request_) return;
  if (request == 0) devices_lent_ = false;
  freeze_request_ = request;
  freeze_saves_ = saves && request != 0;
  restore_tries_ = 0;
  if (!freeze_saves_) group_.SetFrozen(request != 0);
  freeze_look_ns_ = 1;  // at once
}

void Supervisor::Thaw() {
  if (phase_ != Phase::kRunning || freeze_request_ == 0) return;
  freeze_request_ = 0;
  freeze_saves_ = false;
  group_.SetFrozen(false);
  freeze_look_ns_ = devices_lent_ ? 0 : 1;
}

// The program that saves and restores needs the task to run, and one order after the other.
void Supervisor::CheckFrozen(int64_t now) {
  freeze_look_ns_ = 0;
  if (saver_.Busy()) return;  // OnSaverExit
  if (freeze_request_ == 0) return GoOn(now);
  if (freeze_saves_ && save_tried_ != freeze_request_) {
    save_tried_ = freeze_request_;
    group_.SetFrozen(false);
    saver_.Save();
    if (saver_.Busy()) return;
  }
  if (!group_.IsFrozen()) {
    group_.SetFrozen(true);  // a process was in the way
    freeze_look_ns_ = now + kFreezeLookNs;
    return;
  }
  status_.devices_saved = false;
  status_.kept_devices.clear();
  if (freeze_saves_) {
    const pid_t other = saver_.saved() ? saver_.OtherUser() : 0;
    status_.devices_saved = saver_.saved() && other == 0;
    status_.kept_devices = other == 0 ? saver_.why()
                                      : "its process " + std::to_string(other) +
                                            " has a GPU open that it opened in the meantime";
  }
  if (TellFrozen(now)) devices_lent_ = status_.devices_saved;
}

// The agent learns of it from the status. Without space for it, it is tried again.
bool Supervisor::TellFrozen(int64_t now) {
  status_.frozen = freeze_request_;
  const bool written = ReplaceFile(directory_, "status", EncodeStatus(status_)) == 0;
  freeze_look_ns_ = written ? 0 : now + kWriteAgainNs;
  return written;
}

void Supervisor::GoOn(int64_t now) {
  group_.SetFrozen(false);
  if (saver_.needs_restore() && restore_tries_ < kRestoreTries) {
    saver_.Restore();
    if (saver_.Busy()) return;
  }
  Restored(now);
}

void Supervisor::Restored(int64_t now) {
  if (!saver_.needs_restore()) {
    status_.thawed_ns = now;
    status_.devices_saved = false;
    status_.kept_devices.clear();
    TellFrozen(now);
    return;
  }
  if (++restore_tries_ < kRestoreTries) {
    freeze_look_ns_ = now + kRestoreAgainNs;
    return;
  }
  if (kill_at_ns_ != 0 || stop_cause_ != 0) return;
  failure_ = "what it had on its GPUs could not be restored: " + saver_.why();
  Stop(static_cast<int>(std::max<int64_t>(spec_.stop_signal, 1)), spec_.grace_ms, 0);
}

void Supervisor::OnSaverExit(int wait_status) {
  const bool restores = freeze_request_ == 0 && saver_.needs_restore();
  saver_.OnExit(wait_status);
  if (saver_.Busy() || phase_ != Phase::kRunning) return;
  if (restores && saver_.needs_restore() && !saver_.why().empty()) return Restored(BoottimeNs());
  freeze_look_ns_ = 1;
}

}  // namespace berth
