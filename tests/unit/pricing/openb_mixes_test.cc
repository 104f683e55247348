// Prices compared with the better of fragmentation and FGD, on some mixes of the family
// (docs/developers/benchmarks.md): where devices run out first, and where CPU or memory does.
// BERTH_FIXTURES is a folder with traces/openb, as in openb_test.cc.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/openb/mixes.h"
#include "tests/openb/run.h"

namespace berth::openb {
namespace {

// The mean over five orders of arrival.
double Percent(const Trace& trace, SharingPolicy policy) {
  double sum = 0;
  for (const uint64_t seed : {42, 43, 44, 45, 46}) {
    sum += Run(trace, {.policy = policy, .seed = seed, .known = 400}).at_100;
  }
  return sum / 5;
}

TEST_CASE("openb: on no mix are prices far below the better of the others") {
  const char* folder = std::getenv("BERTH_FIXTURES");
  if (folder == nullptr) {
    WARN("skipped: BERTH_FIXTURES is not set");
    return;
  }
  for (const std::string text :
       {"default", "default cpu=4", "gpushare40 memory=4", "multigpu20 cpu=2"}) {
    const auto mix = ParseMix(text);
    REQUIRE(mix.ok());
    const Trace trace = Changed(Load(std::string(folder) + "/traces/openb", mix->list), *mix);
    const double prices = Percent(trace, SharingPolicy::kBidPrice);
    const double best = std::max(Percent(trace, SharingPolicy::kFragmentation),
                                 Percent(trace, SharingPolicy::kFgd));
    INFO(text << ": " << prices << ", the better of the others " << best);
    CHECK(prices > best - 0.3);
  }
}

}  // namespace
}  // namespace berth::openb
