// Which of CPU and memory counts besides devices, and how.
#include "core/sharing/host_resource.h"

#include <catch2/catch.hpp>

#include "core/sharing/placement_scorer.h"

namespace berth {
namespace {

constexpr int64_t kGib = 1024;  // in MiB

Request One(int64_t cpus, int64_t gib) {
  return {.devices = 1, .cpu_millis = cpus * 1000, .memory_mib = gib * kGib};
}

NodeRoom Room(int64_t cpus, int64_t gib) {
  NodeRoom room = RoomOf(cpus * 1000, -1, {1000, 1000});
  room.memory_mib = gib * kGib;
  return room;
}

RequestMix Mix(std::vector<RequestType> types) { return MixOf({}, std::move(types)); }

TEST_CASE("host resource: the one of which the mix requests the greater part") {
  const std::vector<NodeRoom> rooms = {Room(16, 64), Room(16, 64)};
  CHECK(MibPerCore(Mix({{One(4, 16), 1}}), rooms) == 0);  // equal parts: CPU
  CHECK(MibPerCore(Mix({{One(4, 17), 1}}), rooms) == 4 * kGib);
  CHECK(MibPerCore(Mix({{One(5, 17), 1}}), rooms) == 0);
  // By weight: 3 x 4 + 1 x 1 = 13 of 16 CPUs, 3 x 16 + 1 x 8 = 56 of 64 GiB.
  CHECK(MibPerCore(Mix({{One(4, 16), 3}, {One(1, 8), 1}}), rooms) == 4 * kGib);
  CHECK(MibPerCore(Mix({{One(4, 16), 1}}), {}) == 0);
  // Nodes that report no memory, jobs that request none.
  CHECK(MibPerCore(Mix({{One(4, 0), 1}}), rooms) == 0);
  CHECK(MibPerCore(Mix({{One(4, 16), 1}}), std::vector<NodeRoom>{Room(16, 0)}) == 1);
}

TEST_CASE("host resource: memory counts as if it were CPU, rounded up on both sides") {
  CHECK(Counted(One(1, 8), 4 * kGib) == Request{.devices = 1, .cpu_millis = 2000});
  CHECK(Counted(One(1, 8), 0) == Request{.devices = 1, .cpu_millis = 1000});
  const NodeRoom room = Counted(Room(16, 64), 4 * kGib);
  CHECK(room.cpu_millis == 16'000);
  CHECK(room.memory_mib == 0);
  for (int64_t mib = 1; mib < 50; ++mib) {  // an exact fit still fits
    Request request = One(1, 0);
    NodeRoom tight = Room(16, 0);
    request.memory_mib = tight.memory_mib = mib;
    CHECK(Fits(Counted(request, 7), Counted(tight, 7)));
  }
}

TEST_CASE("host resource: types that are equal once counted are merged") {
  const RequestMix counted =
      Counted(Mix({{One(1, 8), 2}, {One(7, 8), 3}, {One(1, 4), 5}}), 4 * kGib);
  REQUIRE(counted.types.size() == 2);
  CHECK(counted.types[0] == RequestType{{.devices = 1, .cpu_millis = 1000}, 5});
  CHECK(counted.types[1] == RequestType{{.devices = 1, .cpu_millis = 2000}, 5});
  CHECK(counted.cpu_millis_per_device == 1500);
  CHECK(counted.mib_per_core == 4 * kGib);
  CHECK(CheckMix(counted).ok());
  // And back, where the counted form allows it.
  CHECK(Uncounted(counted.types[1].request, 4 * kGib) == One(0, 8));
  CHECK(Uncounted({.devices = 1, .cpu_millis = 3000}, 0) == One(3, 0));
}

TEST_CASE("host resource: FGD's own score uses CPU") {
  const DeviceDemand short_of_memory = {Mix({{One(1, 32), 1}}), {Room(16, 64)}};
  CHECK(CountedFor(SharingPolicy::kFgd, short_of_memory).mix.mib_per_core == 0);
  const DeviceDemand counted = CountedFor(SharingPolicy::kBidPrice, short_of_memory);
  CHECK(counted.mix.mib_per_core == 4 * kGib);
  CHECK(counted.rooms[0].cpu_millis == 16'000);
}

TEST_CASE("the score of a mix: selects the policy of bid_price") {
  RequestMix mix = Mix({{{.share = 500, .cpu_millis = 1000}, 1, 0}});
  mix.priced = true;
  const auto policy = [&](MixScore score) {
    mix.score = score;
    return PlacementScorer(SharingPolicy::kBidPrice, mix).policy();
  };
  CHECK(policy(MixScore::kPrices) == SharingPolicy::kBidPrice);
  CHECK(policy(MixScore::kPricesAndFragmentation) == SharingPolicy::kBidPrice);
  CHECK(policy(MixScore::kFragmentation) == SharingPolicy::kFragmentation);
  CHECK(policy(MixScore::kFgd) == SharingPolicy::kFgd);
  mix.score = MixScore::kFgd;
  CHECK(PlacementScorer(SharingPolicy::kFragmentation, mix).policy() ==
        SharingPolicy::kFragmentation);
  CHECK(PlacementScorer(SharingPolicy::kBinpack, mix).policy() == SharingPolicy::kBinpack);
}

TEST_CASE("the score of a mix: three times the fragmentation") {
  // Before, all types can use the 500 left of a device; after placing 200, none can use the 300.
  RequestMix mix = MixOf({}, {{{.share = 400, .cpu_millis = 1000}, 1}});
  mix.cpu_millis_per_device = 0;  // without stranding
  mix.priced = true;              // all values 0
  const Request request = {.share = 200, .cpu_millis = 1000};
  const NodeRoom room = RoomOf(8000, -1, {500});
  const auto score = [&](MixScore by) {
    mix.score = by;
    return PlacementScorer(SharingPolicy::kBidPrice, mix).Score(request, room).score;
  };
  CHECK(score(MixScore::kPrices) == 1);                  // 0.3 x 10 % in steps of 0.04
  CHECK(score(MixScore::kPricesAndFragmentation) == 2);  // 0.3 x 30 %
  CHECK(score(MixScore::kFragmentation) == 8);           // 0.3, halves upward
}

}  // namespace
}  // namespace berth
