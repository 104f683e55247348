// The configuration LP on clusters with a known optimum, and the resulting values.
#include "pricing/prices.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "pricing/configuration_lp.h"

namespace berth {
namespace {

Request Whole(int32_t devices, int64_t cpus) {
  return {.devices = devices, .share = 0, .cpu_millis = cpus * 1000, .models = 0};
}
Request Share(int32_t share, int64_t cpus) {
  return {.devices = 0, .share = share, .cpu_millis = cpus * 1000, .models = 0};
}
NodeRoom Room(int64_t cpus, std::vector<int16_t> left) { return RoomOf(cpus * 1000, -1, left); }

bool Never() { return false; }

TEST_CASE("one device is filled by 600 and 400") {
  ConfigurationLp lp({{Room(8, {1000}), 1}}, {Share(600, 1), Share(400, 1)});
  const auto solution = lp.Solve({2, 2}, Never);
  REQUIRE(solution.ok());
  CHECK(solution->devices == Approx(1.0));
  CHECK(solution->bound == Approx(1.0).margin(0.001));
}

TEST_CASE("too little of one: only the scarce request has a price") {
  // Ten devices, plenty of 600, five of 400: five devices are full, five have 600. One more 400
  // would use another 400 thousandths; one more 600 nothing.
  ConfigurationLp lp({{Room(8, {1000}), 10}}, {Share(600, 1), Share(400, 1)});
  const auto solution = lp.Solve({100, 5}, Never);
  REQUIRE(solution.ok());
  CHECK(solution->devices == Approx(8.0));
  CHECK(solution->prices[0] == Approx(0.0).margin(0.01));
  CHECK(solution->prices[1] == Approx(0.4).margin(0.01));
}

TEST_CASE("a fraction of configurations: three thirds of CPU") {
  // Two devices and 9 CPUs a node; 700 with 6 CPUs, 500 with 3. {700, 500} uses 9 CPUs and 1200;
  // {500, 500, 500} 9 and 1500.
  ConfigurationLp lp({{Room(9, {1000, 1000}), 4}}, {Share(700, 6), Share(500, 3)});
  CHECK(lp.Solve({100, 100}, Never)->devices == Approx(6.0));
  CHECK(lp.Solve({100, 6}, Never)->devices == Approx(1.5 + 3 * 1.2));
  CHECK(lp.Solve({0, 0}, Never)->devices == Approx(0.0).margin(1e-6));
  CHECK(lp.Solve({100, 100}, Never)->devices == Approx(6.0));  // earlier solutions leave no trace
}

TEST_CASE("the rest of used nodes counts as rooms, too") {
  ConfigurationLp lp({{Room(4, {500, 1000}), 1}, {Room(2, {300}), 2}},
                     {Share(300, 1), Whole(1, 2)});
  CHECK(lp.Solve({10, 10}, Never)->devices == Approx(1.3 + 2 * 0.3));
}

TEST_CASE(
    "values: a plentiful request earns its size, a rare one that only fills gaps earns nothing") {
  const RequestMix mix = MixOf({"x"}, {{Share(600, 1), 10}, {Share(400, 1), 2}, {Whole(0, 4), 3}});
  const auto priced = PricedMix({{Room(8, {1000}), 50}}, mix, {});
  REQUIRE(priced.ok());
  CHECK(priced->priced);
  CHECK(CheckMix(*priced).ok());
  CHECK(priced->Find(Whole(0, 4))->value == 0);
  CHECK(priced->Find(Share(600, 1))->value > 400);
  CHECK(priced->Find(Share(400, 1))->value < 100);
  CHECK(*PricedMix({{Room(8, {1000}), 50}}, mix, {}) == *priced);
}

TEST_CASE("errors: cancelled, out of time, invalid mix") {
  const RequestMix mix = MixOf({}, {{Share(600, 1), 10}});
  const std::vector<RoomKind> kinds = {{Room(8, {1000}), 50}};
  const std::atomic<bool> cancelled = true;
  CHECK(absl::IsCancelled(PricedMix(kinds, mix, {.cancelled = &cancelled}).status()));
  CHECK(absl::IsDeadlineExceeded(
      PricedMix(kinds, mix, {.time_limit = std::chrono::milliseconds(-1)}).status()));
  RequestMix bad = mix;
  bad.types[0].weight = 0;
  CHECK(absl::IsInvalidArgument(PricedMix(kinds, bad, {}).status()));
}

TEST_CASE("without devices, or without demand for them, there are no prices") {
  const RequestMix cpu_only = MixOf({}, {{Whole(0, 1), 1}});
  const auto no_demand = PricedMix({{Room(8, {1000}), 50}}, cpu_only, {});
  CHECK(absl::IsFailedPrecondition(no_demand.status()));
  const auto no_room = PricedMix({{Room(8, {}), 50}}, MixOf({}, {{Share(600, 1), 10}}), {});
  CHECK(absl::IsFailedPrecondition(no_room.status()));
}

TEST_CASE("equal rooms are one kind") {
  const auto kinds = KindsOf({Room(8, {1000}), Room(4, {500}), Room(8, {1000})});
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].room == Room(4, {500}));
  CHECK(kinds[1].count == 2);
  CHECK(KindsOf({}).empty());
}

}  // namespace
}  // namespace berth
