// Rooms, mixes and the formulas of fragmentation, for cases computed by hand.
#include <catch2/catch.hpp>

#include "core/sharing/fragmentation.h"
#include "core/sharing/mix_learner.h"
#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"

namespace berth {
namespace {

Request Whole(int32_t devices, int64_t cpus, uint64_t models = 0) {
  return {.devices = devices, .share = 0, .cpu_millis = cpus * 1000, .models = models};
}
Request Share(int32_t share, int64_t cpus, uint64_t models = 0) {
  return {.devices = 0, .share = share, .cpu_millis = cpus * 1000, .models = models};
}
NodeRoom Room(int64_t cpus, std::vector<int16_t> left, int32_t model = -1) {
  return RoomOf(cpus * 1000, model, left);
}

TEST_CASE("a room counts what is left, whichever device has it") {
  const NodeRoom room = Room(64, {1000, 400, 0, 1000, 200});
  CHECK(room.whole == 2);
  CHECK(room.parts == absl::InlinedVector<int16_t, 8>{200, 400});
  CHECK(room.amount() == 2600);
  CHECK(room == Room(64, {200, 1000, 1000, 400, 0}));
}

TEST_CASE("which requests fit into a room") {
  const NodeRoom room = Room(8, {1000, 400}, 1);
  CHECK(Fits(Whole(1, 8), room));
  CHECK_FALSE(Fits(Whole(1, 9), room));
  CHECK_FALSE(Fits(Whole(2, 1), room));
  CHECK(Fits(Share(900, 1), room));
  CHECK_FALSE(Fits(Share(500, 1), Room(8, {400, 400})));
  CHECK(Fits(Share(400, 1, 0b10), room));
  CHECK_FALSE(Fits(Share(400, 1, 0b01), room));
  CHECK_FALSE(Fits(Share(400, 1, 0b01), Room(8, {1000})));
  CHECK(Fits(Whole(0, 8, 0b01), room));  // models do not matter for CPU alone
}

TEST_CASE("the room left after a placement") {
  const NodeRoom room = Room(16, {1000, 1000, 400});
  CHECK(After(room, Whole(2, 4), 0) == Room(12, {400}));
  CHECK(After(room, Share(400, 1), 400) == Room(15, {1000, 1000}));
  CHECK(After(room, Share(300, 1), 400) == Room(15, {100, 1000, 1000}));
  CHECK(After(room, Share(300, 1), 1000) == Room(15, {400, 700, 1000}));
}

TEST_CASE("a mix is canonical, whatever the order of arrivals") {
  const RequestMix mix =
      MixOf({"a"}, {{Share(500, 4), 2}, {Whole(1, 12), 1}, {Share(500, 4), 3}, {Whole(0, 8), 1}});
  REQUIRE(mix.types.size() == 3);
  CHECK(mix.types[0].request == Whole(0, 8));
  CHECK(mix.types[1].request == Share(500, 4));
  CHECK(mix.types[1].weight == 5);
  CHECK(mix.TotalWeight() == 7);
  CHECK(mix.cpu_millis_per_device == 40'000 * 1000 / 3500);
  CHECK(mix.Find(Whole(1, 12))->weight == 1);
  CHECK(mix.Find(Whole(1, 13)) == nullptr);
  CHECK(CheckMix(mix).ok());
  CHECK(mix == MixOf({"a"}, {{Whole(0, 8), 1}, {Share(500, 4), 5}, {Whole(1, 12), 1}}));
}

TEST_CASE("invalid mixes are rejected") {
  const RequestMix good = MixOf({"a"}, {{Share(500, 4), 2}, {Whole(1, 12, 1), 1}});
  const auto message = [&](auto change) {
    RequestMix mix = good;
    change(mix);
    return std::string(CheckMix(mix).message());
  };
  CHECK(message([](RequestMix& mix) { mix.types[1].request.models = 2; }) ==
        "types[1]: not a valid request");
  CHECK(message([](RequestMix& mix) { mix.types[0].request.devices = 1; }) ==
        "types[0]: not a valid request");
  CHECK(message([](RequestMix& mix) { std::swap(mix.types[0], mix.types[1]); }) ==
        "types[1]: not in order");
  CHECK(message([](RequestMix& mix) { mix.types[0].weight = 0; }) ==
        "types[0]: weight out of range");
  CHECK(message([](RequestMix& mix) { mix.types[0].value = 1; }) ==
        "types[0]: value in a mix that is not priced");
  CHECK(message([](RequestMix& mix) {
          mix.priced = true;
          mix.types[0].value = 501;
        }) == "types[0]: value out of range");
  CHECK(message([](RequestMix& mix) { mix.types[0].request.memory_mib = 1; }) ==
        "types[0]: not a valid request");
  CHECK(message([](RequestMix& mix) { mix.mib_per_core = -1; }) == "mib_per_core out of range");
  CHECK(message([](RequestMix& mix) { mix.score = static_cast<MixScore>(kMixScores); }) ==
        "unknown score");
  CHECK(message([](RequestMix& mix) { mix.models = {"a", "a"}; }) == "duplicate model");
  CHECK(message([](RequestMix& mix) { mix.types[1].weight = kMaxMixWeight; }) == "too much weight");
}

TEST_CASE("fragmentation: resources that the next request cannot use") {
  const Fragmentation halves(MixOf({}, {{Share(500, 1), 1}, {Whole(1, 1), 1}}));
  CHECK(halves.Of(Room(8, {400, 1000})) == 400'000);    // both can use 1000 of 1400
  CHECK(halves.Of(Room(8, {600})) == 300'000);          // one can use all of it, the other nothing
  CHECK(halves.Of(Room(0, {400, 1000})) == 1'400'000);  // without CPU neither can use any
  CHECK(halves.Of(Room(8, {})) == 0);
  // Two in four request CPU alone, which uses no device; one requests another model.
  const Fragmentation mixed(
      MixOf({"a", "b"}, {{Whole(0, 1), 2}, {Whole(2, 1), 1}, {Whole(1, 1, 2), 1}}));
  CHECK(mixed.Of(Room(8, {1000, 1000}, 0)) == 1'500'000);
  CHECK(mixed.Of(Room(8, {1000, 1000}, 1)) == 1'000'000);
  CHECK(Fragmentation(RequestMix{}).Of(Room(8, {1000})) == 0);
}

TEST_CASE("stranding: CPU without devices, devices without CPU") {
  CHECK(Stranding(Room(30, {1000}), 12'000) == 1'500'000);
  CHECK(Stranding(Room(6, {1000}), 12'000) == 500'000);
  CHECK(Stranding(Room(6, {500}), 12'000) == 0);
  CHECK(Stranding(Room(6, {500}), 0) == 0);
}

TEST_CASE("FGD's gain in whole hundredths") {
  CHECK(FragmentationGain(0, 0) == 50);
  CHECK(FragmentationGain(40'005, 0) == 50);  // 50.99998
  CHECK(FragmentationGain(40'006, 0) == 51);  // ln(51/49) = 0.0400053
  CHECK(FragmentationGain(0, 1) == 49);
  CHECK(FragmentationGain(0, 40'005) == 49);
  CHECK(FragmentationGain(0, 40'006) == 48);
  CHECK(FragmentationGain(1'000'000, 0) == 73);  // 100 / (1 + 1/e) = 73.1
  CHECK(FragmentationGain(0, 1'000'000) == 26);
  CHECK(FragmentationGain(100'000'000, 0) == 99);
  CHECK(FragmentationGain(0, 100'000'000) == 0);
}

TEST_CASE("a learner returns a mix after 5, 10, 20 arrivals") {
  MixLearner learner;
  std::vector<int> due;
  for (int arrival = 1; arrival <= 10'000; ++arrival) {
    learner.Observe(arrival % 4 == 0 ? Whole(1, 8) : Share(500, 2));
    if (!learner.Due()) continue;
    due.push_back(arrival);
    const RequestMix mix = learner.Give({"a"});
    CHECK(mix.TotalWeight() == arrival);
    CHECK(mix.Find(Share(500, 2))->weight == arrival - arrival / 4);
    CHECK_FALSE(learner.Due());
  }
  CHECK(due == std::vector<int>{5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 8320});
}

TEST_CASE("a learner forgets slowly") {
  MixLearner learner;
  for (int64_t i = 0; i < kMixMemory; ++i) learner.Observe(i == 7 ? Whole(2, 8) : Whole(1, 8));
  const RequestMix mix = learner.Give({});
  CHECK(mix.Find(Whole(2, 8)) == nullptr);
  CHECK(mix.Find(Whole(1, 8))->weight == (kMixMemory - 1) / 2);
}

TEST_CASE("too many types: the frequent ones stay, the rest are rounded up") {
  MixLearner learner;
  for (int i = 0; i < 2000; ++i) learner.Observe(Share(950, 0));
  for (int cpu = 1; cpu <= 1000; ++cpu) {
    learner.Observe({.devices = 0, .share = 250, .cpu_millis = cpu, .models = 0});
  }
  const RequestMix mix = learner.Give({});
  CHECK(CheckMix(mix).ok());
  CHECK(mix.types.size() == kMaxMixTypes / 4 * 3 + 1);
  CHECK(mix.TotalWeight() == 3000);  // none are left out here
  CHECK(mix.Find(Share(950, 0))->weight == 2000);
  CHECK(mix.Find(Share(300, 8))->weight == 1001 - kMaxMixTypes / 4 * 3);
}

}  // namespace
}  // namespace berth
