// A cluster of a busy company, for the rows that measure only the core: Apply and PlanCycle,
// without berthd.
//
// Nodes of 8 GPUs in blocks of one model, with labels, some of them tainted. Queues in two levels,
// with weights and deserved resources. Users who repeatedly submit the same few kinds of jobs. All
// randomness comes from a fixed seed: two runs do the same.
#ifndef BERTH_TESTS_BENCH_CORE_CLUSTER_H_
#define BERTH_TESTS_BENCH_CORE_CLUSTER_H_

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

// Specs use designated initialisers; omitted fields are meant to be empty.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace berth::bench {

inline constexpr int64_t kGpusPerNode = 8;
inline constexpr uint64_t kNoBudget = std::numeric_limits<int64_t>::max();

// The same numbers on every machine (splitmix64).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t Roll();
  size_t Below(size_t bound) { return static_cast<size_t>(Roll() % bound); }
  bool Percent(size_t chance) { return Below(100) < chance; }

 private:
  uint64_t state_;
};

// A plan, and the duration of PlanAndAdopt. Not applied yet unless stated otherwise.
struct TimedPlan {
  Plan plan;
  double seconds = 0;
};

// The state, the policies and the time. An event that cannot be applied ends the program.
class CoreCluster {
 public:
  CoreCluster() : CoreCluster(Policies::Default()) {}  // as in berthd
  explicit CoreCluster(Policies policies) : policies_(std::move(policies)) {}

  // Nodes of three models, with labels and taints; or all of them equal.
  void AddNodes(int64_t count, bool alike = false);
  // Each node holds one of so many images, 1, 2, ...
  void HoldImages(uint64_t images);
  // HyperNodes over all nodes: racks of 16 (tier 1), pods of 16 racks, spines of 8 pods, halls of 4
  // spines (tier 4), with these tier names.
  void AddTree();
  QueueId AddQueue(QueueSpec spec);
  JobId Submit(JobSpec spec);
  void Apply(EventBody body);

  TimedPlan PlanTimed(uint64_t budget = kNoBudget);
  // Returns the duration in seconds; 0 if the plan is already applied.
  double ApplyTimed(const Plan& plan);
  // Runs and applies cycles until nothing more is decided.
  void Settle();
  // Sends reports of agents until there are none: bound tasks run, released ones exit.
  void RunAll();
  // The same for one job, without planning. Returns whether there was anything to report.
  bool ReportOf(JobId job);
  // All running tasks of the job succeed.
  void EndTasks(JobId job);
  // The same; cycles follow.
  void Finish(JobId job);
  void Advance(Duration duration) { now_ += duration; }
  void CordonAll(bool cordoned);
  // All pending and running jobs run, succeed and are deleted: the state of a cluster that has been
  // in use.
  void RunThrough();

  // Checks against the tasks, not against sums that the state keeps: no node over its capacity, no
  // device allocated twice, no queue over its limit, no gang below its minimum. Then all sums of
  // the state are rebuilt and compared.
  void Check() const;

  const ClusterState& state() const { return state_; }
  Time now() const { return now_; }
  int64_t GpusHeld() const;
  int64_t Gpus() const;
  // 48 bits of its fingerprint: equal for two builds that decide the same.
  double StateDigest() const;

 private:
  HyperNodeId AddDomain(HyperNodeSpec spec);
  bool ReportAll();
  static void AddReports(JobId id, const Job& job, std::vector<TaskReported>* reports);
  bool Send(const std::vector<TaskReported>& reports);
  void Report(JobId id, TaskState in, ReportState what);
  void FinishAll();

  ClusterState state_;
  const Policies policies_;
  Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// 8 departments with 4 teams each. Departments differ in weight; each team deserves `deserved`
// GPUs; in every second team users share fairly, and every eighth team is limited to six times what
// it deserves. Returns the teams.
std::vector<QueueId> AddTeams(CoreCluster& cluster, int64_t deserved);

// Jobs of the users of those queues: one task with 1, 2, 4 or 8 GPUs. About 400 kinds, some of them
// much more frequent than others.
class Workload {
 public:
  // Each user of each queue submits this many kinds of jobs.
  Workload(std::vector<QueueId> queues, uint64_t seed, int kinds = 2);
  JobSpec Next();
  // Submits until the jobs request this many GPUs together. Returns the number of jobs.
  int64_t SubmitGpus(CoreCluster& cluster, int64_t gpus);

 private:
  struct Habit {
    QueueId queue;
    std::string user;
    GroupSpec group;
    int32_t priority = 0;
    bool preemptible = false;
    Duration walltime;
  };
  Habit MakeHabit(QueueId queue, const std::string& user);

  Dice dice_;
  std::vector<Habit> habits_;
  int64_t submitted_ = 0;
};

// A gang of `nodes` tasks with all GPUs of a node each, of models that five of eight nodes have.
JobSpec WholeNodeGang(std::string name, QueueId queue, int32_t nodes);

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_CORE_CLUSTER_H_
