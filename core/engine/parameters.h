// What the configuration may tell the stages of a cycle. Plain values; defaults are the product's.
#ifndef BERTH_CORE_ENGINE_PARAMETERS_H_
#define BERTH_CORE_ENGINE_PARAMETERS_H_

#include <cstdint>

#include "core/model/ids.h"
#include "core/sharing/sharing_policy.h"

namespace berth {

struct LifecycleParameters {
  int32_t drain_after_refusals = 5;  // of different jobs, in a row; 0 = never
  Duration refusal_backoff =
      absl::Seconds(1);  // after the first refusal, doubled by each further one
  Duration refusal_backoff_max = absl::Minutes(5);
};

struct FairShareParameters {
  Duration half_life = absl::ZeroDuration();  // of past usage; 0 = the past does not count
  int32_t usage_weight = 1;                   // how strongly it does
};

enum class BackfillMode : uint8_t { kEasy, kConservative };
struct BackfillParameters {
  BackfillMode mode = BackfillMode::kEasy;
  int32_t reservations_per_queue = 1;  // easy
  int32_t reservations = 16;           // easy: of all queues together
  int32_t conservative_depth = 1000;   // conservative: at most so many jobs are kept a place
  // Once something has ended, an earlier start is looked for, not sooner after the last look.
  Duration refresh = absl::Seconds(10);
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
