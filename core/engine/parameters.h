// What the configuration may tell the stages of a cycle. Plain values; defaults are the product's.
#ifndef BERTH_CORE_ENGINE_PARAMETERS_H_
#define BERTH_CORE_ENGINE_PARAMETERS_H_

#include <cstdint>
#include <vector>

#include "core/model/ids.h"
#include "core/sharing/sharing_policy.h"

namespace berth {

struct LifecycleParameters {
  int32_t cordon_after_refusals = 5;  // of different jobs, in a row; 0 = never
  Duration refusal_backoff =
      absl::Seconds(1);  // after the first refusal, doubled by each further one
  Duration refusal_backoff_max = absl::Minutes(5);
};

struct FairShareParameters {
  Duration half_life = absl::ZeroDuration();  // of past usage; 0 = the past does not count
  int32_t usage_weight = 1;                   // how strongly it does
};

enum class BackfillMode : uint8_t { kEasy, kConservative };
// Of those that may start beside what is kept for others: who is tried first.
enum class BackfillOrder : uint8_t {
  kService,        // as they would be served
  kShortestFirst,  // by walltime; those of one walltime as they would be served
};
// How long a job that starts is taken to run, where places are kept for others. These others are
// kept places by walltimes in any case.
enum class BackfillFit : uint8_t {
  kRequested,            // its walltime
  kPredicted,            // RunPrediction::expected_s; of a job without walltime: without end
  kPredictedUnlessAged,  // but its walltime while a job that has aged (kAgedRank) is kept a place
};
struct BackfillParameters {
  BackfillMode mode = BackfillMode::kEasy;
  BackfillOrder order = BackfillOrder::kService;
  BackfillFit fit = BackfillFit::kRequested;
  int32_t reservations_per_queue = 1;  // easy
  int32_t reservations = 16;           // easy: of all queues together
  int32_t conservative_depth = 1000;   // conservative: at most so many jobs are kept a place
  // Once something has ended, an earlier start is looked for, not sooner after the last look.
  Duration refresh = absl::Seconds(10);
};

// docs/prediction.md
struct PredictionParameters {
  // Runs of jobs that end are recorded: those submitted later get predictions.
  bool enabled = false;
};

// The job order shortest_first. Weights are thousandths of the exponents' sum, the rest being that
// of the harmonic mean. How jobs age goes for all orders by length (JobOrder::Ages).
struct ShortestFirstParameters {
  int32_t requested_weight = 500;
  int32_t expected_weight = 250;
  // For every so many thousandths of the queue's longest line by which a job was overtaken, it is
  // taken for half as long; at kLineLevels times as much it goes before all others of its priority
  // and deadline (core/engine/line_levels.h). 0: none does.
  int32_t overtaking = 50;
  // So does one that has waited longer than this. 0: none does.
  Duration age = absl::ZeroDuration();
};

// The job order least_attained: by service so far, in levels (docs/prediction.md).
struct LeastAttainedParameters {
  // Device time (of jobs without devices, core time) from which on a job is in the next level.
  // Ascending.
  std::vector<Duration> levels = {absl::Minutes(30), absl::Hours(4), absl::Hours(32),
                                  absl::Hours(256)};
  // A job that was stopped goes back to the first level once it has waited so many times as long as
  // it has run. 0: never.
  int32_t promote_after = 8;
};

struct EvictionParameters {
  Duration min_runtime = absl::ZeroDuration();  // no job is evicted before it has run so long
  Duration cooldown = absl::Minutes(1);         // nor again so soon after an eviction
  Duration min_gain = absl::Minutes(1);  // an eviction must start the gang sooner by more than this
  int32_t max_victims = 10'000;          // tasks in one plan
  Duration gang_grace = absl::Minutes(5);  // expire_gangs: how long below the minimum
};

struct SharingParameters {
  // How tasks are laid out over nodes of which some devices may be shared, where they are packed.
  SharingPolicy policy = SharingPolicy::kBidPrice;
};

// What degraded HyperNodes are to gangs with a topology constraint. What runs stays, and is
// completed where it is, in either case.
enum class DegradedDomains : uint8_t {
  kAvoid,    // chosen after the healthy ones of their tier
  kExclude,  // not chosen for new gangs
};
struct TopologyParameters {
  DegradedDomains degraded = DegradedDomains::kAvoid;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PARAMETERS_H_
