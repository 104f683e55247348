// A cluster in simulated time: the state, the engine that plans for it, and agents that do at once
// what they are told. Scenarios, replays and what-if questions run on it.
//
// Between two cycles the agents answer: what is bound gets prepared, what is started runs, what was
// told to stop is gone after `release_delay`, what has a run time ends when it is over. Nodes that
// are not ready do not answer.
//
// Everything that happens is an event and goes through Apply. No thread safety, no clock.
#ifndef BERTH_CLIENTS_SIM_SIM_CLUSTER_H_
#define BERTH_CLIENTS_SIM_SIM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "server/planning/membership.h"

namespace berth {

struct SimOptions {
  bool auto_start = true;
  Duration release_delay = absl::ZeroDuration();
  uint64_t budget = UINT64_MAX;    // counted work of a cycle
  bool check_consistency = false;  // after every cycle
};

class SimCluster {
 public:
  SimCluster(Policies policies, Time start, SimOptions options)
      : policies_(std::move(policies)), options_(options), now_(start) {}
  // Not movable: agents know the state.
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  const ClusterState& state() const { return state_; }
  Time now() const { return now_; }
  uint64_t cycles() const { return cycles_; }
  int64_t tasks() const;  // of all jobs
  const Policies& policies() const { return policies_; }
  // As a reload of berthd's configuration: who was blocked by the old ones is looked at again.
  void SetPolicies(Policies policies);

  // Goes on from another cluster's state; before anything has happened here. Agents of nodes that
  // are ready know what they were told.
  void Adopt(ClusterState state);

  // Applied at `now`; what agents must do because of it is noted. The errors of Apply.
  // A node that registers joins its HyperNodes.
  absl::Status Happen(EventBody body);
  absl::Status HappenAt(Time time, EventBody body);
  // Called with everything that has happened, right after it is applied.
  void SetObserver(std::function<void(const EventBody&)> observer) {
    observer_ = std::move(observer);
  }
  // HyperNodes as in Membership::Plan, with its errors.
  absl::Status ChangeHyperNodes(absl::Span<const HyperNodeSpec> changed,
                                absl::Span<const std::string> deleted);
  // The tasks of this job end by themselves after that long.
  void SetRunTime(JobId job, Duration run_time) { run_times_[job] = run_time; }
  void ForgetRunTime(JobId job) {
    run_times_.erase(job);
    ends_.erase(job);
  }
  // The tasks of this job that run, and those that come to run until it is said again, end at that
  // moment, which is after now; InfiniteFuture: not by themselves. Goes before a run time.
  void RunsUntil(JobId job, Time end);
  // A queue's decayed past, of which events tell only how it goes on.
  void SetUsage(QueueId queue, std::vector<NamedAmount> usage);
  // A fresh start of everything derived: the facts loaded into a new state in an order drawn from
  // `seed`. INTERNAL if that makes a difference.
  absl::Status Reload(uint64_t seed);

  // Agents answer, unless nothing has been decided before; then one planning cycle. INTERNAL if a
  // decision is refused or the state is not consistent.
  // `tell` is called with each decision before it is applied.
  absl::StatusOr<Plan> Cycle(absl::FunctionRef<void(const EventBody&)> tell);
  // The last cycle decided nothing, and no agent has anything to say about what was before.
  bool quiet() const { return quiet_; }
  void Advance(Duration duration) { now_ += duration; }
  // When agents or the engine have something to do next, after now.
  Time NextDue() const;
  // The agent of this node has come back and goes on.
  void NodeAnswers(NodeId node);

 private:
  enum class Duty : uint8_t { kPrepare, kRun, kStop, kEnd };
  struct Errand {
    Time due;
    TaskKey task;
    Duty duty;
    uint32_t attempt;
    auto Key() const { return std::tie(due, task, duty, attempt); }
    friend bool operator<(const Errand& a, const Errand& b) { return a.Key() < b.Key(); }
  };
  void Note(const EventBody& body);
  void NoteTask(TaskKey key);
  // When a running task ends by itself; InfiniteFuture if it does not.
  Time EndOf(const Task& task, JobId job) const;
  bool Valid(const Errand& errand) const;
  absl::Status Answer();

  ClusterState state_;
  Membership membership_;
  Policies policies_;
  SimOptions options_;
  std::function<void(const EventBody&)> observer_;
  Time now_;
  Time wake_at_ = absl::InfiniteFuture();
  uint64_t cycles_ = 0;
  bool quiet_ = false;
  std::map<JobId, Duration> run_times_;
  std::map<JobId, Time> ends_;
  std::set<Errand> errands_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_SIM_CLUSTER_H_
