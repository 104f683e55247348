// Safety rules, checked by a model that knows only the answers to clients and what ran on the
// nodes. It shares no code with the scheduler.
//
//   once       a (job, task, attempt) starts at most once
//   alone      a task never runs twice at the same time, unless its job allows it
//   whole      a member of a gang that needs all starts only when all are prepared, except those
//              that have succeeded
//   world      the members of a rigid gang that run at one time were launched to meet each other:
//   with
//              one world size, one rendezvous endpoint and one epoch
//   room       no CPU, memory or device of a node is allocated twice; a paused task uses no CPU,
//              nor devices that it lends
//   kept       an acknowledged job exists after every crash, and what was started had been decided;
//              one request id gives one job
//   blame      a node is never blamed for a fault of a job
//   over       a job that was reported as ended stays ended, and none of its tasks starts. Exempt
//              are REPLACE_NOW and forced cancels, which do not wait for silent nodes
//   still      a task that makes steps does not hang (World::CheckHang), whatever links are cut;
//              that one that hangs is found follows from the end of all jobs
//   own        a job succeeds only if each of its tasks ran and succeeded, in this incarnation of
//              the store or before the backup that was restored
//
// When the server is restored from a backup, the knowledge of clients is also reset to it; with a
// new store they know nothing. Tasks of an earlier incarnation are foreign: they may run for a
// while, and count for "room". No job of the backup starts while its foreign tasks run ("alone"),
// unless it has KEEP, whose tasks may continue where the server cannot end them.
#ifndef BERTH_TESTS_SIMULATION_SAFETY_H_
#define BERTH_TESTS_SIMULATION_SAFETY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"
#include "tests/simulation/observer.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/trace.h"

namespace berth::simulation {

struct NodeRoom {
  int64_t cpu_millis = 0, memory_bytes = 0;
  int max_tasks = 1;  // that may share a device
  size_t rack = 0;
};

class Safety final : public Observer {
 public:
  // `wall`: the wall clock of the server, which deletes jobs that ended `ttl` ago.
  Safety(Scheduler* scheduler, Trace* trace, std::vector<NodeRoom> nodes, absl::Duration ttl,
         std::function<absl::Time()> wall, std::function<void(const std::string&)> fail);

  // Calls of clients. A job may start once it was sent, before its answer arrived.
  void OnSubmitting(const v1::Job& job);
  // Before and after the wall clock is set. Jobs were deleted by its latest time;
  // after it was set back, and the server restarted, they end at times from before.
  void NoteTime();
  // Answers from a server of another incarnation say nothing about this one.
  void OnSubmitted(const std::string& name, uint64_t uid, uint64_t incarnation);
  void OnCancelling(const std::string& name, bool force);
  void OnCancelled(const std::string& name, uint64_t incarnation);
  // A client has read the job; `found` is false if the answer was that it does not exist.
  struct Read {
    uint64_t incarnation = 0;
    absl::Duration at = absl::ZeroDuration();  // server time; answers may be reordered
    bool found = false, ended = false, succeeded = false;
  };
  void OnRead(const std::string& name, const Read& read);

  // The store was backed up; it was restored from the backup, or replaced by a new one.
  void OnBackup();
  void OnRestored(uint64_t incarnation, bool fresh);

  void OnPrepared(size_t node, const TaskId& id) override;
  void OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch,
                 const v1::Start& start) override;
  void OnEnded(size_t node, const TaskId& id, bool succeeded) override;
  void OnTaskFrozen(size_t node, const TaskId& id, bool frozen, bool lends) override;
  void OnFrozen(size_t node, bool frozen) override;

  // No node backs off or is cordoned because of a wrong directory in a job.
  void CheckBlame(const ClusterState& state);
  // The state with which a server starts.
  void CheckLoaded(const ClusterState& state);

  struct Job {
    std::string name;
    uint64_t uid = 0;
    int tasks = 1;
    bool rigid = true;       // all or none
    std::vector<int> gangs;  // of each task: see GangsOf
    bool alone = true;       // not REPLACE_NOW
    bool keeps = false;
    bool near = false;  // all in one rack
    std::string after;  // a job that must end first
    bool after_ok = false;
    int first_group = 0;                 // size of the first group, if the second depends on it
    bool after_group_completed = false;  // the whole group must have succeeded, not only started
    bool acked = false, cancelling = false, cancelled = false, ended = false;
    absl::Duration ended_at = absl::ZeroDuration();  // time of the read that reported it
    bool forced = false;                             // cancelled by force
    bool lost = false;     // acknowledged, and missing in the backup that was restored
    bool asks_all = true;  // succeeds only if every task does
    std::optional<absl::Time> may_end_since;          // earliest time at which it may have ended
    std::set<std::pair<uint32_t, uint32_t>> started;  // task, attempt
    std::set<TaskId> starts;                          // unique, of all incarnations
    std::set<uint32_t> succeeded;
  };
  const std::map<std::string, Job>& jobs() const { return jobs_; }
  uint64_t starts() const { return starts_; }
  // The running tasks, and their nodes.
  std::map<TaskId, size_t> running() const;

 private:
  // Name and value of everything that the members of a gang must have in common.
  using Terms = std::vector<std::pair<absl::string_view, std::string>>;
  struct Process {
    size_t node = 0;
    v1::TaskLaunch launch;
    Terms terms;
    bool frozen = false;  // paused by the server; until it goes on, even if it is stopped before
    bool lends = false;   // likewise: others may use its devices
  };
  static Terms TermsOf(const v1::TaskLaunch& launch, const v1::Start& start);
  void Fail(absl::string_view rule, const std::string& what);
  // Also null for foreign tasks.
  Job* Find(const TaskId& id);
  TaskId IdOf(uint64_t uid, uint32_t task, uint32_t attempt = 0) const {
    return {uid, task, attempt, incarnation_};
  }
  void CheckOwn(const Job& job);
  void MayEnd(Job& job);
  bool MayBeForgotten(const Job& job) const;
  void CheckAlone(const TaskId& id);
  void CheckNoneOfBefore(const Job& job, const TaskId& id);
  bool WasThereSince(const TaskId& task, absl::Duration time) const;
  void CheckWhole(const Job& job, const TaskId& id);
  void CheckOrder(const Job& job, const TaskId& id);
  void CheckNear(const Job& job, const TaskId& id);
  bool MayBeOutlived(const Job& job, const TaskId& id) const;
  void CheckWorld(const TaskId& id);
  void CheckRoom(size_t node);

  Scheduler* const scheduler_;
  Trace* const trace_;
  const std::vector<NodeRoom> nodes_;
  const absl::Duration ttl_;
  const std::function<absl::Time()> wall_;
  Time latest_ = absl::InfinitePast();  // of wall_(), which may be set back
  const std::function<void(const std::string&)> fail_;
  const ActorPtr self_ = std::make_shared<Actor>();
  uint64_t incarnation_ = 0;
  std::map<std::string, Job> jobs_, backup_;
  std::map<uint64_t, std::string> names_, backup_names_;  // by uid
  std::map<TaskId, absl::Duration> prepared_, ended_;     // when
  std::map<TaskId, Process> running_;
  std::vector<std::set<TaskId>> on_node_;
  std::vector<bool> frozen_;
  uint64_t starts_ = 0;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SAFETY_H_
