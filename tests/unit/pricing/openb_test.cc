// One seed of one openb list, with and without knowledge of the mix. BERTH_FIXTURES is a folder
// that is not part of the source. docs/developers/sharing.md has the results of all lists.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>

#include "tests/openb/run.h"

namespace berth::openb {
namespace {

std::optional<Trace> TraceOf(const std::string& list) {
  const char* folder = std::getenv("BERTH_FIXTURES");
  if (folder != nullptr) return Load(std::string(folder) + "/traces/openb", list);
  WARN("skipped: BERTH_FIXTURES is not set");
  return std::nullopt;
}

TEST_CASE("openb: prices beat fragmentation, which beats best fit") {
  const auto trace = TraceOf("default");
  if (!trace.has_value()) return;
  CHECK(trace->devices == 6212);
  CHECK(trace->nodes.size() == 1213);
  CHECK(trace->pods.size() == 8152);
  const auto percent = [&](SharingPolicy policy, size_t known) {
    const RunOptions options = {.policy = policy, .seed = 42, .known = known};
    return Run(*trace, options).at_100;
  };
  CHECK(percent(SharingPolicy::kBinpack, 0) > 92.5);
  CHECK(percent(SharingPolicy::kFragmentation, 0) > 94.9);
  CHECK(percent(SharingPolicy::kBidPrice, 400) > 95.8);
}

TEST_CASE("openb: equal inputs give equal decisions") {
  const auto trace = TraceOf("gpushare40");
  if (!trace.has_value()) return;
  const RunOptions options = {
      .policy = SharingPolicy::kBidPrice, .seed = 7, .known = 200, .most_pods = 600};
  const RunResult result = Run(*trace, options);
  CHECK(result.placed == result.arrived);
  CHECK(Run(*trace, options).digest == result.digest);
}

}  // namespace
}  // namespace berth::openb
