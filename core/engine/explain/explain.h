// Why a job is pending, what would start it, and when it will start.
//
// Everything here uses the engine itself. A remedy is offered only if a dry run with it started the
// job. An estimate is the start of a reservation behind all jobs before it. Runs on the state's
// thread; all trials are undone.
#ifndef BERTH_CORE_ENGINE_EXPLAIN_EXPLAIN_H_
#define BERTH_CORE_ENGINE_EXPLAIN_EXPLAIN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/explain/constraints.h"
#include "core/engine/explain/dry_run.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"
#include "core/topology/topology_verdict.h"

namespace berth {

// When a pending job will start.
struct StartEstimate {
  // If running jobs and those before it use their whole walltimes; InfiniteFuture if unknown
  // (`unknown` says why).
  Time latest = absl::InfiniteFuture();
  // If they run as long as expected, and no longer than the least likely tenth (RunPrediction). If
  // no running job is predicted: if they use the share of their walltimes that ended jobs of the
  // cluster used, the median and the smallest tenth; `latest` if no job has ended.
  Time likely = absl::InfiniteFuture();
  Time earliest = absl::InfiniteFuture();
  int64_t jobs_before = 0;   // that were placed first
  int64_t history_jobs = 0;  // ended jobs that this is based on
  bool predicted = false;    // by RunPrediction
  std::string unknown;       // why the start is unknown, for people
  bool operator==(const StartEstimate&) const = default;
};

// A job that holds much of the missing resource.
struct Holder {
  JobId job;
  int64_t amount = 0;                  // of the resource of the first reason
  Time ends = absl::InfiniteFuture();  // by its walltime
  bool operator==(const Holder&) const = default;
};

enum class RemedyKind : uint8_t {
  kFewerTasks,       // `group`, `value` = its new minimum, and its replicas if these were the same
  kDeviceModel,      // `group`, `device_kind`, `text` = a model that would fit
  kShorterWalltime,  // `time` = the longest that fits before what is reserved
  kOtherQueue,       // `queue`
  kPreemptible,      // may be evicted, and borrow
  kSmallerTasks,     // `group`, `text` = a resource, `value` = the amount that a node has, or, with
                     // `within_quota`, that keeps the gang within the rest of `queue`
  kWiderTier,     // `level`, `group`, `value` = the highest tier that would fit, `text` = its name
  kSoftTopology,  // `level`, `group`: makes the hard constraint soft
  kAnyLinks,      // `group`, `device_kind`: without a link and bandwidth floor
  kWait,          // until `time`; nothing to change
};
// One change that alone starts the job: at once (a dry run did), or with kWait at that time.
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
  // False: not at once, but it makes a job that can never fit able to start on an empty cluster.
  bool starts_now = false;
  bool operator==(const Remedy&) const = default;
};

struct Explanation {
  std::vector<WaitReason> reasons;       // most important first; empty if it is not pending
  int64_t position = 0;                  // in its queue, by priority, deadline and age; 1 = first
  int64_t queue_jobs = 0;                // pending jobs in its queue, including itself
  std::vector<GroupConstraints> groups;  // pending groups that request places
  std::vector<ScopeFit> topology;        // its constraints, and how much their domains can hold
  std::vector<Holder> holders;           // largest first, at most kMaxHolders
  std::vector<Remedy> remedies;          // cheapest first
  StartEstimate estimate;
};
inline constexpr size_t kMaxHolders = 5;

// The job must exist. Work: about kQuestionBudget for the estimate and again for all remedies, of
// which at most kMaxTrials are tried, and O(nodes) per group.
Explanation Explain(ClusterState& state, const Policies& policies, JobId job, Time now);
inline constexpr int kMaxTrials = 40;

StartEstimate EstimateStart(ClusterState& state, const Policies& policies, JobId job, Time now);

// The job changed by the remedy. Not for kWait, which changes nothing.
JobSpec Applied(const Remedy& remedy, JobSpec spec);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EXPLAIN_EXPLAIN_H_
