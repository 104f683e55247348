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
  size_t known = 0;         // requests of the list that the policy may have seen before: warm start
  int64_t rooms_every = 0;  // price what is left now, after so many arrivals; 0: the empty cluster
  int64_t most_pods = -1;   // stop after so many arrivals; -1: all
};

struct RunResult {
  double at_100 = 0;  // devices given out in per cent, when 100 % of the cluster had been asked for
  double at_130 = 0;  // at the end
  double cpu_at_100 = 0, memory_at_100 = 0;  // in use, likewise
  int64_t placed = 0;
  int64_t arrived = 0;
  int mixes = 0;               // that were given out
  double decide_seconds = 0;   // of CPU time, scores included
  double pricing_seconds = 0;  // likewise: the longest of one mix
  uint64_t digest = 0;         // of all decisions
};

// Never looks at pods that have not arrived, but for those `known`.
RunResult Run(const Trace& trace, const RunOptions& options);

}  // namespace berth::openb

#endif  // BERTH_TESTS_OPENB_RUN_H_
