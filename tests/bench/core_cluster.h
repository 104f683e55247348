// A cluster as a busy company has it, for the rows that measure the core alone: its two doors,
// Apply and PlanCycle, and nothing of berthd around them.
//
// Nodes of 8 GPUs in blocks of one model, with labels, some of them tainted. Queues in two levels,
// with weights and deserved amounts. Users who submit the same few kinds of jobs again and again.
// Nothing is random but by a fixed seed: two runs do the same.
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

// Specs are written with designated initialisers; what is left out is meant to be empty.
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

// A plan, and how long PlanAndAdopt took. Not applied yet, unless it says so.
struct TimedPlan {
  Plan plan;
  double seconds = 0;
};

// The state, the policies and the time. Whatever cannot be applied ends the program.
class CoreCluster {
 public:
  CoreCluster() : CoreCluster(Policies::Default()) {}  // as berthd's
  explicit CoreCluster(Policies policies) : policies_(std::move(policies)) {}

  // Of three models, with labels and taints; or all of them the same.
  void AddNodes(int64_t count, bool alike = false);
  // HyperNodes over all nodes: racks of 16 (tier 1), pods of 16 racks, spines of 8 pods, halls of 4
  // spines (tier 4), each by its tier's name.
  void AddTree();
  QueueId AddQueue(QueueSpec spec);
  JobId Submit(JobSpec spec);
  void Apply(EventBody body);

  TimedPlan PlanTimed(uint64_t budget = kNoBudget);
  // Seconds that it took; 0 if it is applied already.
  double ApplyTimed(const Plan& plan);
  // Cycles, applied, until nothing more is decided.
  void Settle();
  // What agents report until nothing more happens: bound tasks run, released ones are gone.
  void RunAll();
  // All tasks of the job end well; cycles follow.
  void Finish(JobId job);
  void Advance(Duration duration) { now_ += duration; }
  void CordonAll(bool cordoned);
  // All that waits and runs has its turn, ends well and is forgotten: what a cluster looks like
  // that has been in use.
  void RunThrough();

  // By the tasks alone, not by any sum that the state keeps: nobody over the capacity of a node,
  // no device given twice, no queue over its limit, no gang below its minimum. Then all that the
  // state keeps is built anew and compared.
  void Check() const;

  const ClusterState& state() const { return state_; }
  Time now() const { return now_; }
  int64_t GpusHeld() const;
  int64_t Gpus() const;
  // 48 bits of its fingerprint: the same of two builds that decide the same.
  double StateDigest() const;

 private:
  HyperNodeId AddDomain(HyperNodeSpec spec);
  bool ReportAll();
  void Report(JobId id, TaskState in, ReportState what);
  void FinishAll();

  ClusterState state_;
  const Policies policies_;
  Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// 8 departments with 4 teams each. Departments differ in weight; each team deserves `deserved`
// GPUs; in every second one users share fairly, every eighth may not have more than six times what
// it deserves. Returns the teams.
std::vector<QueueId> AddTeams(CoreCluster& cluster, int64_t deserved);

// What the users of those queues submit: jobs of one task of 1, 2, 4 or 8 GPUs. About 400 kinds,
// some much more frequent than others.
class Workload {
 public:
  // Each user of each queue submits so many kinds of jobs.
  Workload(std::vector<QueueId> queues, uint64_t seed, int kinds = 2);
  JobSpec Next();
  // Submits until the jobs ask for so many GPUs together. Returns how many jobs.
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
