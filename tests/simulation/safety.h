// What must always hold, by a model that knows only what clients were told and what ran on the
// nodes. It shares no code with the scheduler.
//
//   once       a (job, task, attempt) starts at most once
//   alone      no two processes of one task at the same time, but for jobs that ask for it
//   whole      a member of a gang that needs all starts only when all are prepared, but for
//              those that have done their work
//   room       what runs on a node has no more CPU, memory and devices than there are, none twice
//   kept       a job that was acknowledged is there after every crash, and what was started was
//              decided; ids of requests give one job
//   blame      a node is never blamed for what a job brought along
//   over       a job that was told to have ended stays so, and nothing of it starts any more, but
//              for REPLACE_NOW and cancels by force, which do not wait for silent nodes
//   own        a job has succeeded only if each of its tasks ran and succeeded, in this incarnation
//              of the store or before the backup that it goes back to
//
// When the server goes back to a backup, so does what clients know; with a new store they know
// nothing. What ran in an incarnation before is foreign: it may go on for a while, and counts for
// the room that it takes; and no job of the backup starts beside it ("alone"), unless it keeps its
// tasks where nobody can end them.
#ifndef BERTH_TESTS_SIMULATION_SAFETY_H_
#define BERTH_TESTS_SIMULATION_SAFETY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

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
  // `wall`: the server's clock of day, by which it forgets jobs that ended `ttl` ago.
  Safety(Scheduler* scheduler, Trace* trace, std::vector<NodeRoom> nodes, absl::Duration ttl,
         std::function<absl::Time()> wall, std::function<void(const std::string&)> fail);

  // Of clients. A job may start once it was asked for, before the answer came.
  void OnSubmitting(const v1::Job& job);
  // Answers of a server of another incarnation tell nothing of this one.
  void OnSubmitted(const std::string& name, uint64_t uid, uint64_t incarnation);
  void OnCancelling(const std::string& name, bool force);
  void OnCancelled(const std::string& name, uint64_t incarnation);
  // A client has read the job; not found: the answer was that there is none.
  struct Read {
    uint64_t incarnation = 0;
    absl::Duration at = absl::ZeroDuration();  // when the server looked; answers may overtake
    bool found = false, ended = false, succeeded = false;
  };
  void OnRead(const std::string& name, const Read& read);

  // The store as it is now can be gone back to; it was, or a new one took its place.
  void OnBackup();
  void OnRestored(uint64_t incarnation, bool anew);

  void OnPrepared(size_t node, const TaskId& id) override;
  void OnStarted(size_t node, const TaskId& id, const v1::TaskLaunch& launch) override;
  void OnEnded(size_t node, const TaskId& id, bool succeeded) override;
  void OnFrozen(size_t node, bool frozen) override;

  // No node backs off, or is cordoned, for a directory that a job named wrongly.
  void CheckBlame(const ClusterState& state);
  // What a server begins with.
  void CheckLoaded(const ClusterState& state);

  struct Job {
    std::string name;
    uint64_t uid = 0;
    int tasks = 1;
    bool rigid = true;  // all of them or none
    bool alone = true;  // not REPLACE_NOW
    bool keeps = false;
    bool near = false;  // all in one rack
    std::string after;  // another job, until that has ended
    bool after_ok = false;
    int first_group = 0;                 // tasks of the first group, if the second waits for it
    bool after_group_completed = false;  // until all of it has succeeded, not only begun
    bool acked = false, cancelling = false, cancelled = false, ended = false;
    absl::Duration ended_at = absl::ZeroDuration();  // of the read that told so
    bool forced = false;                             // it is cancelled by force
    bool lost = false;     // acknowledged, and not in the backup that the server went back to
    bool asks_all = true;  // succeeds only when every task has
    std::optional<absl::Time> may_end_since;          // not before then
    std::set<std::pair<uint32_t, uint32_t>> started;  // task, attempt
    std::set<TaskId> starts;                          // each once, of all incarnations
    std::set<uint32_t> succeeded;
  };
  const std::map<std::string, Job>& jobs() const { return jobs_; }
  uint64_t starts() const { return starts_; }
  // What runs, and on which node.
  std::map<TaskId, size_t> running() const;

 private:
  struct Process {
    size_t node = 0;
    v1::TaskLaunch launch;
  };
  void Fail(absl::string_view rule, const std::string& what);
  // Null also for what is foreign.
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
  void CheckRoom(size_t node);

  Scheduler* const scheduler_;
  Trace* const trace_;
  const std::vector<NodeRoom> nodes_;
  const absl::Duration ttl_;
  const std::function<absl::Time()> wall_;
  Time latest_ =
      absl::InfinitePast();  // of it: what was forgotten stays so when clocks are set back
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
