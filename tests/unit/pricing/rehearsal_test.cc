// Which score fills a cluster best if CPU runs out first.
#include "pricing/rehearsal.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "pricing/prices.h"
#include "tests/openb/mixes.h"
#include "tests/openb/run.h"

namespace berth {
namespace {

Request Share(int32_t share, int64_t cpus) {
  return {.devices = 0, .share = share, .cpu_millis = cpus * 1000, .models = 0};
}

// `nodes` nodes with two devices each.
DeviceDemand Demand(int64_t cpus, size_t nodes, std::vector<RequestType> types) {
  const NodeRoom room = RoomOf(cpus * 1000, -1, {1000, 1000});
  return {MixOf({}, std::move(types)), std::vector<NodeRoom>(nodes, room)};
}

bool Never() { return false; }

TEST_CASE("rehearsal: only if CPU runs out before devices") {
  CHECK_FALSE(HostRunsOut(Demand(16, 3, {{Share(500, 4), 1}})));
  CHECK_FALSE(HostRunsOut(Demand(16, 3, {{Share(500, 2), 1}})));
  CHECK(HostRunsOut(Demand(16, 3, {{Share(500, 5), 1}})));
  // If some requests are for CPU alone: 2 x 4 + 9 for two devices.
  const Request cpu_alone = {.cpu_millis = 9000};
  const Request whole = {.devices = 1, .cpu_millis = 4000};
  CHECK(HostRunsOut(Demand(16, 3, {{whole, 2}, {cpu_alone, 1}})));
  const auto priced = PricedFor(Demand(16, 40, {{Share(600, 2), 3}, {Share(300, 1), 2}}), {});
  REQUIRE(priced.ok());
  CHECK(priced->score == MixScore::kPrices);
}

TEST_CASE("rehearsal: repeatable, and the first score if all are equal") {
  const DeviceDemand equal = Demand(16, 20, {{Share(500, 8), 1}});
  const auto priced = PricedFor(equal, {});
  REQUIRE(priced.ok());
  CHECK(priced->score == MixScore::kPrices);
  DeviceDemand demand =
      Demand(20, 50, {{Share(500, 9), 5}, {Share(300, 7), 4}, {Share(100, 1), 3}});
  demand.mix = *PricedFor(demand, {});
  CHECK(CheckMix(demand.mix).ok());
  CHECK(BestScore(demand, Never) == demand.mix.score);
  CHECK(BestScore(demand, [] { return true; }) == MixScore::kPrices);  // nothing is measured
}

TEST_CASE("rehearsal: a cancelled rehearsal gives no result") {
  const std::atomic<bool> cancelled = true;
  CHECK(absl::IsCancelled(
      PricedFor(Demand(16, 20, {{Share(500, 9), 1}}), {.cancelled = &cancelled}).status()));
}

TEST_CASE("openb: where CPU or memory is short, prices allocate as much as the best other policy") {
  const char* folder = std::getenv("BERTH_FIXTURES");
  if (folder == nullptr) {
    WARN("skipped: BERTH_FIXTURES is not set");
    return;
  }
  for (const std::string text : {"cpu100 cpu=2", "gpushare40 memory=2"}) {
    const auto mix = openb::ParseMix(text);
    REQUIRE(mix.ok());
    const openb::Trace trace =
        openb::Changed(openb::Load(std::string(folder) + "/traces/openb", mix->list), *mix);
    const auto percent = [&](SharingPolicy policy) {
      return openb::Run(trace, {.policy = policy, .seed = 42, .known = 400}).at_100;
    };
    const double best =
        std::max(percent(SharingPolicy::kFragmentation), percent(SharingPolicy::kFgd));
    INFO(text << ", the best other policy " << best);
    CHECK(percent(SharingPolicy::kBidPrice) > best - 0.3);  // one order of arrival: chance counts
  }
}

TEST_CASE("openb: mixes are parsed from text") {
  CHECK(openb::ParseMix("default")->cpu == 1);
  CHECK(openb::ParseMix("cpu100 cpu=0.5 several=3")->several == 3);
  for (const char* text : {"", "other", "default cpu", "default x=1", "default cpu=-1"}) {
    CHECK_FALSE(openb::ParseMix(text).ok());
  }
  for (const std::string& text : openb::Family()) CHECK(openb::ParseMix(text).ok());
}

}  // namespace
}  // namespace berth
