// What the running tasks of one node have reported, and what of it the server has.
//
// The state of a task is sent when it differs from the one sent last on this stream: what it
// reported has changed, or its watchdog has become due, or is due no longer. The state of a task
// that hangs is sent each time. The time without progress is part of what is sent, but grows all
// the time and is no change.
//
// No thread, clock or IO. Not thread-safe.
#ifndef BERTH_CLIENTS_AGENT_PROGRESS_SENDER_H_
#define BERTH_CLIENTS_AGENT_PROGRESS_SENDER_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "clients/agent/interfaces.h"

namespace berth {

inline constexpr int kMaxProgressTasks = 1000;  // of a message

class ProgressSender {
 public:
  using Reported = absl::AnyInvocable<bool(const TaskId&)>;
  using Send = absl::AnyInvocable<void(v1::Progress)>;

  // `reported`: whether anything about the task is reported to the server.
  ProgressSender(Reported reported, Send send);
  // Before all others: without a source, nothing is sent.
  void SetSource(NoticeSource* source) { source_ = source; }

  // What is done to prepare a task, for people; until it runs.
  void SetPreparing(const TaskId& id, const std::string& what);
  // A task runs (`running`: kRunning).
  void Add(Instant now, const TaskEvent& running, const v1::TaskLaunch& launch);
  // A task is frozen (kPaused), or goes on (kResumed): in the meantime it neither hangs nor is idle
  // or unused, and after that each of these begins anew.
  void SetPaused(Instant now, const TaskEvent& event);
  // How busy each GPU is now, in percent, by UUID. GPUs that are not named are not idle.
  void SetDeviceUse(Instant now, const std::map<std::string, int64_t>& percent);
  // The running tasks, not frozen, whose jobs are interactive, and which of these nobody and
  // nothing uses, apart from their GPUs.
  std::vector<TaskId> Interactive() const;
  void SetUnused(Instant now, const std::set<TaskId>& unused);
  // A task has ended. Sends its last state first, if `send`.
  void Remove(Instant now, const TaskId& id, bool send);

  // On a new stream: sends the states of running tasks that are watched or have reported something.
  void SendAll(Instant now);
  void SendChanges(Instant now);
  // Sends the last states of tasks that have ended before this stream.
  void SendEnded(const std::vector<TaskId>& ended);

 private:
  struct Watch {
    absl::Duration timeout, start;
  };
  struct Idle {
    std::vector<std::string> gpus;
    int32_t most_percent;
    absl::Duration after;
    std::optional<absl::Duration> since = {};  // on the steady clock; absent: they are in use
  };
  struct Unused {
    std::vector<std::string> gpus;
    absl::Duration after;
    v1::Interactive::Action action = v1::Interactive::END;
    bool gpus_idle = false;
    std::optional<absl::Duration> since = {};  // on the steady clock; absent: it is used
  };
  struct Entry {
    std::optional<Watch> watch;
    std::optional<Idle> idle;
    std::optional<Unused> unused;
    absl::Duration began;  // on the steady clock
    bool paused = false;
    absl::Duration resumed;  // on the steady clock, the last time; 0: never
    NoticesVersion version;
    std::optional<TaskNotices> notices;
    std::string preparing;  // empty: it is prepared
    std::string sent;       // the last state on this stream, without `still`; empty: none
  };

  static std::optional<absl::Duration> IdleTime(Instant now, const Entry& entry);
  static std::optional<absl::Duration> UnusedTime(Instant now, const Entry& entry);
  // The state to send; nothing if there is none or it was sent.
  std::optional<v1::TaskProgress> News(Instant now, const TaskId& id, Entry& entry);
  void AddTo(v1::Progress* message, v1::TaskProgress state);
  void Flush(v1::Progress* message);

  Reported reported_;
  Send send_;
  NoticeSource* source_ = nullptr;
  std::map<TaskId, Entry> entries_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_PROGRESS_SENDER_H_
