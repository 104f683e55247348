// The tasks of one node: prepared, running and ended ones, and the reports that the server has not
// acknowledged yet.
//
//   Prepare -> PREPARING -> PREPARED -> STARTING -> RUNNING -> ENDED -> (keep_ended later) gone
//                  |   journal+report     |  journal synced, then exec
//                  '-> waits for devices of tasks that are being killed
//
// At most once: a key is never started again while it is known, and ended keys stay known until the
// server has acknowledged their end and keep_ended has passed. An attempt older than the newest
// known one of its task is ignored.
//
// Tasks of a store, or incarnation of it, other than the agent's own are foreign (Join): they are
// fenced, their devices and ports stay taken until no process of them remains, their directories
// stay for keep_ended, and nothing more is reported about them.
//
// No thread, clock or IO. Not thread-safe.
#ifndef BERTH_CLIENTS_AGENT_TASK_BOOK_H_
#define BERTH_CLIENTS_AGENT_TASK_BOOK_H_

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/agent/interfaces.h"
#include "clients/agent/journal_state.h"

namespace berth {

inline constexpr size_t kMaxLiveTasks = 4096;
inline constexpr size_t kMaxEndedTasks = 10000;
// The maximum grace of a foreign task. The server restarts its jobs once the agent has registered,
// and the agent registers when the foreign tasks are gone.
inline constexpr absl::Duration kForeignGrace = absl::Seconds(30);

// The store that an agent belongs to, from the last Welcome.
struct StoreMembership {
  std::string cluster_id;    // empty: the server's version does not send it
  uint64_t incarnation = 0;  // 0: the store's version had none
  uint64_t epoch = 0;        // of the agent's registration there
  uint32_t node_id = 0;      // of its node there; 0: not sent by the server
  uint64_t term = 0;         // the greatest that a server of this incarnation has named
  bool operator==(const StoreMembership&) const = default;
};

class TaskBook {
 public:
  struct Options {
    // This node's devices by uuid, each with its capacity in thousandths.
    std::map<std::string, int> devices;
    absl::Duration keep_ended = absl::Hours(24);
  };
  using SendReport = absl::AnyInvocable<void(const v1::TaskReport&)>;

  // Calls `send` once for every report, when it is durable; the owner resends Unacked() after a
  // reconnect.
  TaskBook(Options options, Journal& journal, TaskRunner& runner, SendReport send);

  // The devices from now on. Tasks keep devices that are no longer listed.
  void SetDevices(std::map<std::string, int> devices) { options_.devices = std::move(devices); }

  // Recovers from a journal. rebooted: no earlier task runs.
  void Recover(Instant now, const JournalState& state, bool rebooted);

  // The agent registers with this store. Tasks of another store become foreign: ended ones are
  // forgotten; live ones are killed, with their grace but at most kForeignGrace. Ids that two
  // stores without incarnations may both have assigned (of incarnation 0, by clusters of different
  // names) are dropped, with all data of ended tasks. A new term is durable before any of this: not
  // OK if it could not be written, and nothing has happened.
  absl::Status Join(Instant now, const StoreMembership& store);
  // FAILED_PRECONDITION: a server of this store is not obeyed, because another has led after it, or
  // because it was restored since. For people.
  absl::Status CheckTerm(const StoreMembership& store) const;
  // The same for a later message from the store that the agent belongs to; a greater term is
  // durable on return.
  absl::Status NoteTerm(uint64_t term);
  const StoreMembership& store() const { return store_; }
  // Foreign tasks that have not ended; and those of them whose ids the store may assign, too.
  size_t foreign_live() const { return foreign_live_; }
  bool ForeignIdsLive() const;
  // The greatest job uid among tasks known to belong to this store; 0: none.
  uint64_t GreatestJob() const;

  // strict_allowed: whether the lease holds; without it tasks with fence = true do not start.
  void Prepare(Instant now, const v1::Prepare& message, bool strict_allowed);
  void Start(Instant now, const v1::Start& message);
  void Kill(Instant now, const v1::Kill& message);
  void Signal(const v1::SignalTask& message);
  void Freeze(const v1::FreezeTask& message);
  void Forget(Instant now, const TaskId& id);
  void OnEvent(Instant now, const TaskEvent& event);
  // The lease has lapsed: ends every strict task.
  void Fence(Instant now);
  void Ack(uint64_t report_id);

  // Everything that Hello must list: live tasks, and ended ones with an unacknowledged report.
  std::vector<v1::TaskReport> HelloReports() const;
  std::vector<v1::TaskReport> Unacked() const;  // by report id
  bool Known(const TaskId& id) const { return tasks_.contains(id); }
  bool Ended(const TaskId& id) const;  // or unknown
  bool Running(const TaskId& id) const;
  // Of a live task that is reported to the server; null for others. Valid until the next call.
  const v1::TaskLaunch* ReportedLaunch(const TaskId& id) const;
  size_t live() const { return live_; }
  // Whether a task of this job lives; `task` and `attempt` are 0.
  bool HasLive(const TaskId& job) const {
    for (auto it = tasks_.lower_bound(job); it != tasks_.end(); ++it) {
      if (it->first.job_uid != job.job_uid || it->first.incarnation != job.incarnation) break;
      if (it->second.record.phase() != agent::v1::TaskRecord::ENDED) return true;
    }
    return false;
  }
  // Whether a task has the device, or waits for it, or lends it.
  bool DeviceInUse(const std::string& uuid) const;
  std::vector<std::string> DevicesOf(const TaskId& id) const {
    const auto found = tasks_.find(id);
    if (found == tasks_.end()) return {};
    const auto& uuids = found->second.record.launch().device_uuids();
    return {uuids.begin(), uuids.end()};
  }

  // Drops expired ended tasks, and retries records that the journal had no space for.
  void Tick(Instant now);
  absl::Duration NextWake() const;  // on the steady clock

  // Not OK: the journal failed so that the process must end.
  const absl::Status& fatal() const { return fatal_; }

 private:
  struct Entry {
    agent::v1::TaskRecord record;  // PHASE_UNSPECIFIED = preparing, not in the journal
    bool start_at_once = false;
    std::optional<int> port;  // wanted; 0 = any
    bool waiting = false;     // for devices
    bool stopping = false;    // Kill was called
    bool silent = false;      // forgotten: its end is not reported
    bool foreign = false;     // of another store: also silent
    bool unsaved = false;     // the journal had no space
    bool start_wanted = false;
    v1::Start start;
  };
  using Tasks = std::map<TaskId, Entry>;
  enum class Devices { kFree, kWait, kRefused };

  bool IsForeign(const TaskId& id, const Entry& entry) const;
  void MarkForeign(Instant now);
  void MakeForeign(Instant now, const TaskId& id, Entry& entry);
  void Drop(const TaskId& id);
  absl::Status TakeStore(const StoreMembership& store);
  bool SupersededByNewer(const TaskId& id) const;
  bool OfOlderEpoch(const TaskId& id, const v1::TaskLaunch& launch) const;
  Devices CheckDevices(const TaskId& id, const Entry& entry, std::string* why) const;
  void TryPrepare(Instant now, const TaskId& id, Entry& entry);
  bool WantsOtherImage(const Entry& entry, const v1::Prepare& message) const;
  void PrepareAgain(Instant now, const TaskId& id, const v1::Prepare& message);
  void OnPrepared(Instant now, const TaskEvent& event, Entry& entry);
  void DoStart(Instant now, const TaskId& id, Entry& entry);
  void OnFrozen(Instant now, const TaskEvent& event, Entry& entry);
  void Thaw(const TaskId& id);
  void StopRunning(const TaskId& id, Entry& entry, const std::string& signal, absl::Duration grace,
                   v1::TaskReport::Cause cause);
  void AddEnded(Instant now, const TaskId& id, v1::TaskReport report);
  void End(Instant now, const TaskId& id, Entry& entry, v1::TaskReport report);
  void RetryWaiting(Instant now);
  void Report(Instant now, const TaskId& id, Entry& entry, v1::TaskReport report);
  void Resend(const Entry& entry);
  absl::Status Save(const Entry& entry);
  void TakeDevices(const TaskId& id, const Entry& entry);
  void ReleaseDevices(const TaskId& id);

  Options options_;
  Journal& journal_;
  TaskRunner& runner_;
  SendReport send_;
  agent::v1::Identity identity_;  // as in the journal
  StoreMembership store_;
  Tasks tasks_;
  std::map<uint64_t, TaskId> unacked_;                           // latest report of each task
  std::map<std::string, std::map<TaskId, int>> device_holders_;  // by uuid: thousandths per task
  std::deque<std::pair<absl::Duration, TaskId>> ended_;          // by time, in order
  std::set<TaskId> waiting_;
  std::set<TaskId> lending_;   // frozen, and others may use their devices
  std::set<TaskId> resuming_;  // of these: shall go on, and wait for their devices
  size_t unsaved_ = 0;
  absl::Duration save_retry_;  // when to retry
  size_t live_ = 0;
  size_t foreign_live_ = 0;  // among the tasks
  uint64_t last_report_id_ = 0;
  absl::Status fatal_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_BOOK_H_
