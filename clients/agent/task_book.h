// The tasks of one node: what is prepared, runs and has ended, and the reports that the server has
// not acked yet.
//
//   Prepare -> PREPARING -> PREPARED -> STARTING -> RUNNING -> ENDED -> (keep_ended later) gone
//                  |   journal+report     |  journal synced, then exec
//                  '-> waits for devices of tasks that are being killed
//
// At most once: a key is never started again while it is known, and ended keys stay known until the
// server has acked their end and keep_ended has passed. An attempt older than the newest one known
// of its task is ignored.
//
// What is of another store, or of another incarnation of it, than the one that the agent belongs to
// is foreign (Join): it is fenced, its devices and port stay taken until nothing of it is left, its
// directory stays for keep_ended, and nobody is told of it any more.
//
// No thread, clock or IO. Not thread-safe.
#ifndef BERTH_CLIENTS_AGENT_TASK_BOOK_H_
#define BERTH_CLIENTS_AGENT_TASK_BOOK_H_

#include <deque>
#include <map>
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
// What a foreign task has at most to end by itself. The server restarts its jobs once the agent has
// registered, and the agent registers when the foreign tasks are gone.
inline constexpr absl::Duration kForeignGrace = absl::Seconds(30);

// The store that an agent belongs to: of the last Welcome.
struct StoreMembership {
  std::string cluster_id;    // empty: of a server of a version that does not tell
  uint64_t incarnation = 0;  // 0: the store was made by a version that knew none
  uint64_t epoch = 0;        // of the agent's registration there
  uint32_t node_id = 0;      // of its node there; 0: that server does not tell
  bool operator==(const StoreMembership&) const = default;
};

class TaskBook {
 public:
  struct Options {
    // This node's, by uuid, and of how many thousandths shares of one may be together.
    std::map<std::string, int> devices;
    absl::Duration keep_ended = absl::Hours(24);
  };
  using SendReport = absl::AnyInvocable<void(const v1::TaskReport&)>;

  // `send` gets every report once, when it is durable; the owner repeats with Unacked() after a
  // reconnect.
  TaskBook(Options options, Journal& journal, TaskRunner& runner, SendReport send);

  // Of the devices, as they are from now on. Tasks that hold others keep them.
  void SetDevices(std::map<std::string, int> devices) { options_.devices = std::move(devices); }

  // Takes over a journal. rebooted: nothing of before runs any more.
  void Recover(Instant now, const JournalState& state, bool rebooted);

  // The agent registers with this store. What is of another one is foreign from now on: ended,
  // it is forgotten; live, it is killed, with its grace but at most kForeignGrace. Ids that two
  // stores without incarnations may both have given out (of incarnation 0, by clusters of different
  // names) are dropped, with all that ended tasks left.
  void Join(Instant now, const StoreMembership& store);
  const StoreMembership& store() const { return store_; }
  // Foreign tasks that have not ended; those of them whose ids the store may give out, too.
  size_t foreign_live() const { return foreign_live_; }
  bool ForeignIdsLive() const;
  // The greatest uid of the jobs that it has tasks of and knows to be this store's; 0: of none.
  uint64_t GreatestJob() const;

  // strict_allowed: whether the lease holds; without it tasks with fence = true do not start.
  void Prepare(Instant now, const v1::Prepare& message, bool strict_allowed);
  void Start(Instant now, const v1::Start& message);
  void Kill(Instant now, const v1::Kill& message);
  void Forget(Instant now, const TaskId& id);
  void OnEvent(Instant now, const TaskEvent& event);
  // The lease has lapsed: ends every strict task.
  void Fence(Instant now);
  void Ack(uint64_t report_id);

  // Everything that Hello must name: live tasks, and ended ones whose report is not acked.
  std::vector<v1::TaskReport> HelloReports() const;
  std::vector<v1::TaskReport> Unacked() const;  // by report id
  bool Known(const TaskId& id) const { return tasks_.contains(id); }
  bool Ended(const TaskId& id) const;  // or unknown
  bool Running(const TaskId& id) const;
  size_t live() const { return live_; }
  // Some task has the device, or waits for it.
  bool DeviceInUse(const std::string& uuid) const;

  // Drops ended tasks whose time is over, and tries again what the journal had no room for.
  void Tick(Instant now);
  absl::Duration NextWake() const;  // on the steady clock

  // Not OK: the journal failed in a way that leaves only ending the process.
  const absl::Status& fatal() const { return fatal_; }

 private:
  struct Entry {
    agent::v1::TaskRecord record;  // PHASE_UNSPECIFIED = preparing, not in the journal
    bool start_at_once = false;
    bool reserve_port = false;
    bool waiting = false;   // for devices
    bool stopping = false;  // Kill was called
    bool silent = false;    // forgotten: its end is nobody's business
    bool foreign = false;   // of another store: silent, too
    bool unsaved = false;   // the journal had no room
    bool start_wanted = false;
    v1::Start start;
  };
  using Tasks = std::map<TaskId, Entry>;
  enum class Devices { kFree, kWait, kRefused };

  bool IsForeign(const TaskId& id, const Entry& entry) const;
  void MarkForeign(Instant now);
  void MakeForeign(Instant now, const TaskId& id, Entry& entry);
  void Drop(const TaskId& id);
  void SaveIdentity();
  bool SupersededByNewer(const TaskId& id) const;
  Devices CheckDevices(const TaskId& id, const Entry& entry, std::string* why) const;
  void TryPrepare(Instant now, const TaskId& id, Entry& entry);
  void OnPrepared(Instant now, const TaskEvent& event, Entry& entry);
  void DoStart(Instant now, const TaskId& id, Entry& entry);
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
  agent::v1::Identity identity_;  // as the journal has it
  StoreMembership store_;
  Tasks tasks_;
  std::map<uint64_t, TaskId> unacked_;                           // latest report of each task
  std::map<std::string, std::map<TaskId, int>> device_holders_;  // by uuid: thousandths of each
  std::deque<std::pair<absl::Duration, TaskId>> ended_;          // when, in order
  std::set<TaskId> waiting_;
  size_t unsaved_ = 0;
  absl::Duration save_retry_;  // when the next try is due
  size_t live_ = 0;
  size_t foreign_live_ = 0;  // of these
  uint64_t last_report_id_ = 0;
  absl::Status fatal_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_TASK_BOOK_H_
