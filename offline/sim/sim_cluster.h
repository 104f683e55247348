// A cluster in simulated time: the state, the engine that plans for it, and agents that follow
// decisions at once. Scenarios, replays and what-if forecasts run on it.
//
// Between two cycles the agents report: bound tasks are prepared, started tasks run, released tasks
// are gone after `release_delay`, tasks with a run time end after it. Nodes that are not ready do
// not report.
//
// Everything that happens is an event and goes through Apply. No thread safety, no clock.
#ifndef BERTH_OFFLINE_SIM_SIM_CLUSTER_H_
#define BERTH_OFFLINE_SIM_SIM_CLUSTER_H_

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
  // Not movable: the agents refer to the state.
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  const ClusterState& state() const { return state_; }
  Time now() const { return now_; }
  uint64_t cycles() const { return cycles_; }
  int64_t tasks() const;  // of all jobs
  const Policies& policies() const { return policies_; }
  // Like a reload of the configuration of berthd: blocked jobs are re-evaluated.
  void SetPolicies(Policies policies);

  // Continues from the state of another cluster. Call it before any event. Agents of ready nodes
  // know their tasks.
  void Adopt(ClusterState state);

  // Applies the event at `now` and notes the resulting work of agents. Returns the errors of Apply.
  // A node that registers joins its HyperNodes.
  absl::Status Happen(EventBody body);
  absl::Status ApplyAt(Time time, EventBody body);
  // Called with every event, right after it is applied.
  void SetObserver(std::function<void(const EventBody&)> observer) {
    observer_ = std::move(observer);
  }
  // HyperNodes as in Membership::Plan, with its errors.
  absl::Status ChangeHyperNodes(absl::Span<const HyperNodeSpec> changed,
                                absl::Span<const std::string> deleted);
  // The tasks of this job end by themselves after this time.
  void SetRunTime(JobId job, Duration run_time) { run_times_[job] = run_time; }
  void ForgetRunTime(JobId job) {
    run_times_.erase(job);
    ends_.erase(job);
  }
  // The tasks of this job that run now or start until the next call end at `end`, which is after
  // now; InfiniteFuture: they do not end by themselves. Takes precedence over a run time.
  void RunsUntil(JobId job, Time end);
  // Sets the decayed past usage of a queue. Events only contain its continuation.
  void SetUsage(QueueId queue, std::vector<NamedAmount> usage);
  // Recomputes everything derived: loads the facts into a new state in an order drawn from `seed`.
  // INTERNAL if the result differs.
  absl::Status Reload(uint64_t seed);

  // Agents report, unless nothing has been decided before; then one planning cycle runs. INTERNAL
  // if a decision is refused or the state is inconsistent. `tell` is called with each decision
  // before it is applied.
  absl::StatusOr<Plan> Cycle(absl::FunctionRef<void(const EventBody&)> tell);
  // The last cycle decided nothing, and no agent has a report to send about earlier decisions.
  bool quiet() const { return quiet_; }
  void Advance(Duration duration) { now_ += duration; }
  // The next time, after now, at which agents or the engine have something to do.
  Time NextDue() const;
  // The agent of this node has come back and resumes its work.
  void ResumeAgent(NodeId node);

 private:
  enum class Duty : uint8_t { kPrepare, kRun, kStop, kEnd, kFreeze };
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

#endif  // BERTH_OFFLINE_SIM_SIM_CLUSTER_H_
