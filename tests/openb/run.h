// One list, one policy, one order of arrivals, on the sharing libraries alone.
#ifndef BERTH_TESTS_OPENB_RUN_H_
#define BERTH_TESTS_OPENB_RUN_H_

#include <cstddef>
#include <cstdint>

#include "core/sharing/placement_scorer.h"
#include "tests/openb/trace.h"

namespace berth::openb {

struct RunOptions {
  SharingPolicy policy = SharingPolicy::kBidPrice;
  uint64_t seed = 1;
  size_t known = 0;         // requests of the list that the policy has seen before: warm start
  int64_t rooms_every = 0;  // price what is left after so many arrivals; 0: the empty cluster
  int64_t most_pods = -1;   // stop after so many arrivals; -1: all
};

struct RunResult {
  double at_100 = 0;  // devices allocated in percent, when 100 % of the cluster had been requested
  double at_130 = 0;  // at the end
  double cpu_at_100 = 0, memory_at_100 = 0;  // used, at the same time
  int64_t placed = 0;
  int64_t arrived = 0;
  int mixes = 0;               // mixes that the learner returned
  double decide_seconds = 0;   // CPU time, including scores
  double pricing_seconds = 0;  // CPU time, the longest of one mix
  uint64_t digest = 0;         // over all decisions
};

// Does not look at pods before they arrive, except the `known` ones.
RunResult Run(const Trace& trace, const RunOptions& options);

}  // namespace berth::openb

#endif  // BERTH_TESTS_OPENB_RUN_H_
