// The configurable parameters of the stages of a cycle. Plain values; defaults are the product's.
#ifndef BERTH_CORE_ENGINE_PARAMETERS_H_
#define BERTH_CORE_ENGINE_PARAMETERS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/model/ids.h"
#include "core/sharing/sharing_policy.h"

namespace berth {

struct LifecycleParameters {
  int32_t cordon_after_refusals = 5;  // different jobs in a row; 0 = never
  Duration refusal_backoff =
      absl::Seconds(1);  // after the first refusal, doubled by each further one
  Duration refusal_backoff_max = absl::Minutes(5);
  // How long a job that restarts keeps the places that it still has while it looks for the others;
  // 0 = it gives them back.
  Duration restart_hold = absl::Minutes(5);
  // A job that is paused (core/engine/lifecycle/pause.cc) for so long is stopped.
  Duration longest_pause = absl::Hours(1);
};

struct FairShareParameters {
  Duration half_life = absl::ZeroDuration();  // of past usage; 0 = the past does not count
  int32_t usage_weight = 1;                   // how strongly the past counts
};

enum class BackfillMode : uint8_t { kEasy, kConservative };
// Which jobs that may start alongside reservations are tried first.
enum class BackfillOrder : uint8_t {
  kService,        // in service order
  kShortestFirst,  // by walltime; equal walltimes in service order
};
// How long a starting job is assumed to run, when it must not delay a reservation. The reservations
// themselves always use walltimes.
enum class BackfillFit : uint8_t {
  kRequested,            // its walltime
  kPredicted,            // RunPrediction::expected_s; forever for a job without walltime
  kPredictedUnlessAged,  // but its walltime while a job that has aged (kAgedRank) has a reservation
};
struct BackfillParameters {
  BackfillMode mode = BackfillMode::kEasy;
  BackfillOrder order = BackfillOrder::kService;
  BackfillFit fit = BackfillFit::kRequested;
  int32_t reservations_per_queue = 1;  // easy
  int32_t reservations = 16;           // easy: over all queues
  int32_t conservative_depth = 1000;   // conservative: at most this many jobs get one
  // The minimum time between searches for an earlier start, once something has ended.
  Duration refresh = absl::Seconds(10);
};

// docs/developers/prediction.md
struct PredictionParameters {
  // Records the runs of jobs that end, so that later submits get predictions.
  bool enabled = false;
};

// The rank of jobs that were overtaken too far, or have waited longer than
// ShortestFirstParameters::age: before all others, and by age among themselves.
inline constexpr int64_t kAgedRank = std::numeric_limits<int64_t>::min();

// The job order shortest_first. Weights are thousandths of the sum of exponents; the harmonic mean
// has the rest. The parameters for aging apply to all orders by length (JobOrder::Ages).
struct ShortestFirstParameters {
  int32_t requested_weight = 500;
  int32_t expected_weight = 250;
  // Each time a job is overtaken by this many thousandths of its queue's longest line, its length
  // counts as half. At kLineLevels times as much it goes before all others of its priority and
  // deadline (core/engine/order/line_levels.h). 0: never.
  int32_t overtaking = 50;
  // So does a job that has waited longer than this. 0: never.
  Duration age = absl::ZeroDuration();
};

// The job order least_attained: by service so far, in levels (docs/developers/prediction.md).
struct LeastAttainedParameters {
  // The device time (for jobs without devices, core time) at which a job enters the next level.
  // Ascending.
  std::vector<Duration> levels = {absl::Minutes(30), absl::Hours(4), absl::Hours(32),
                                  absl::Hours(256)};
  // A stopped job returns to the first level once it has waited this many times as long as it has
  // run. 0: never.
  int32_t promote_after = 8;
};

struct EvictionParameters {
  Duration min_runtime = absl::ZeroDuration();  // no job is evicted before it has run this long
  Duration cooldown = absl::Minutes(1);         // nor again this soon after an eviction
  Duration min_gain = absl::Minutes(1);  // an eviction must start the gang sooner by more than this
  int32_t max_victims = 10'000;          // tasks per plan
  Duration gang_grace = absl::Minutes(5);       // expire_gangs: how long below the minimum
  Duration checkpoint_wait = absl::Minutes(2);  // at most, for a victim's next reported checkpoint
};

// core/actions/migrate.cc
struct MigrationParameters {
  int32_t max_jobs = 1;                      // that leave at a time
  Duration cooldown = absl::Minutes(30);     // how long a job stays before it leaves a domain
  Duration restart_cost = absl::Minutes(5);  // of one move, besides the work that is not saved
  int32_t slowdown = 20;                     // percent of its time that a degraded domain costs
};

// core/policies/reliable_first.cc
struct ReliableFirstParameters {
  int32_t min_tasks = 64;  // of a group that is kept off nodes that failed lately
};

// core/policies/image_locality.cc
struct ImageLocalityParameters {
  // A node that holds the image of a task is preferred to one that does not, even if that one is
  // the better fit by so many devices.
  int32_t devices = 0;
};

struct SharingParameters {
  // The policy for tasks that are packed onto nodes of which some devices may be shared.
  SharingPolicy policy = SharingPolicy::kBidPrice;
};

// How degraded HyperNodes are treated for gangs with a topology constraint. In either case, running
// gangs stay, and are completed where they are.
enum class DegradedDomains : uint8_t {
  kAvoid,    // chosen after the healthy ones of their tier
  kExclude,  // not chosen for new gangs
};
struct TopologyParameters {
  DegradedDomains degraded = DegradedDomains::kAvoid;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PARAMETERS_H_
