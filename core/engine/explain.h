// Why a job waits, what would start it, and when it will.
//
// Everything here asks the engine itself: a remedy is offered only after a dry run with it has
// started the job, and an estimate is the start that a reservation behind all jobs before it would
// have. One thread, the state's; nothing remains of what was tried.
#ifndef BERTH_CORE_ENGINE_EXPLAIN_H_
#define BERTH_CORE_ENGINE_EXPLAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/constraints.h"
#include "core/engine/dry_run.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "core/topology/topology_verdict.h"

namespace berth {

// When a waiting job will start.
struct StartEstimate {
  // If the jobs that run, and those before it, use up their walltimes; InfiniteFuture if it cannot
  // be said (`unknown` says why).
  Time latest = absl::InfiniteFuture();
  // If they run as long as expected, and no longer than the least likely tenth (RunPrediction).
  // Where none of those that run is predicted: if they use of their walltimes what jobs of the
  // cluster that have ended used, the median and the smallest tenth; `latest` without such jobs.
  Time likely = absl::InfiniteFuture();
  Time earliest = absl::InfiniteFuture();
  int64_t jobs_before = 0;   // that were given their places first
  int64_t history_jobs = 0;  // ended jobs that this rests on
  bool predicted = false;    // by RunPrediction
  std::string unknown;       // "job x, which goes first, has no walltime", ...
  bool operator==(const StartEstimate&) const = default;
};

// A job that holds much of what is missing.
struct Holder {
  JobId job;
  int64_t amount = 0;                  // of the resource of the first reason
  Time ends = absl::InfiniteFuture();  // by its walltime
  bool operator==(const Holder&) const = default;
};

enum class RemedyKind : uint8_t {
  kFewerTasks,       // `group`, `value` = its minimum then, and its replicas if these were the same
  kDeviceModel,      // `group`, `device_kind`, `text` = a model that would do
  kShorterWalltime,  // `time` = the longest that fits before what is reserved
  kOtherQueue,       // `queue`
  kPreemptible,      // may be evicted, and borrow
  kSmallerTasks,  // `group`, `text` = a resource, `value` = as much of it as a node has, or, with
                  // `within_quota`, as keeps the gang within what `queue` has left
  kWiderTier,     // `level`, `group`, `value` = the highest tier that would do, `text` = its name
  kSoftTopology,  // `level`, `group`: the hard constraint as a soft one
  kAnyLinks,      // `group`, `device_kind`: without a least link and bandwidth
  kWait,          // until `time`; nothing to change
};
// One change, alone, that starts the job: at once (a dry run did), or with kWait then.
struct Remedy {
  RemedyKind kind = RemedyKind::kWait;
  uint32_t group = 0;
  ScopeFit::Level level = ScopeFit::Level::kJob;  // of a topology constraint
  int64_t value = 0;
  std::string text;
  std::string device_kind;
  QueueId queue;
  bool within_quota = false;
  Time time = absl::InfiniteFuture();
  Duration walltime = absl::InfiniteDuration();
  // False: not at once, but it could start on an empty cluster, which it cannot as it is (of a job
  // that can never fit).
  bool starts_now = false;
  bool operator==(const Remedy&) const = default;
};

struct Explanation {
  std::vector<WaitReason> reasons;       // most important first; empty: it does not wait
  int64_t position = 0;                  // in its queue, by priority, deadline and age; 1 = first
  int64_t queue_jobs = 0;                // that wait in its queue, itself included
  std::vector<GroupConstraints> groups;  // that wait now and ask for places
  std::vector<ScopeFit> topology;        // its constraints, and what their domains have room for
  std::vector<Holder> holders;           // largest first, at most kMaxHolders
  std::vector<Remedy> remedies;          // cheapest first
  StartEstimate estimate;
};
inline constexpr size_t kMaxHolders = 5;

// The job must exist. Work: about kQuestionBudget each for the estimate and for all remedies, of
// which at most kMaxTrials are tried, and O(nodes) for each group.
Explanation Explain(ClusterState& state, const Policies& policies, JobId job, Time now);
inline constexpr int kMaxTrials = 40;

StartEstimate EstimateStart(ClusterState& state, const Policies& policies, JobId job, Time now);

// The job as the remedy has it. Not for kWait, which changes nothing.
JobSpec Applied(const Remedy& remedy, JobSpec spec);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EXPLAIN_H_
