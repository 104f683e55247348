// The value of rooms, and the scores that policies derive from it.
#include <catch2/catch.hpp>

#include "core/sharing/placement_scorer.h"
#include "core/sharing/room_value.h"
#include "core/sharing/score_board.h"
#include "core/sharing/step_list.h"

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
RequestMix Mix(std::vector<RequestType> types, bool priced) {
  const std::vector<RequestType> given = types;
  RequestMix mix = MixOf({}, std::move(types));
  mix.priced = priced;
  for (RequestType& type : mix.types) {
    for (const RequestType& one : given) {
      if (priced && one.request == type.request) type.value = one.value;
    }
  }
  return mix;
}

TEST_CASE("steps: the best by CPU, sums, the maximum") {
  StepListBuilder builder(10);
  const StepList one = {{0, 0}, {4, 300}};
  builder.Add(one, 0, 0);
  builder.Add(one, 5, 200);  // {5: 200, 9: 500}
  const StepList list = builder.Take();
  CHECK(list == StepList{{0, 0}, {4, 300}, {9, 500}});
  CHECK(StepAt(list, 8) == ValueStep{4, 300});
  CHECK(StepAt(list, 0) == ValueStep{0, 0});
  builder.AddSums(list, one);  // 13 is beyond the maximum
  CHECK(builder.Take() == StepList{{0, 0}, {4, 300}, {8, 600}});
  builder.Add({{0, 7}}, 0, 0);
  CHECK(builder.Take() == StepList{{0, 7}});  // earlier steps are gone
}

TEST_CASE("the value of a room: the best that fits") {
  RoomValue value(
      {{Share(500, 4), 300}, {Whole(1, 8), 700}, {Whole(2, 8), 1500}, {Share(10, 1), 0}});
  CHECK(value.Of(Room(8, {1000, 400})) == 700);
  CHECK(value.Of(Room(6, {1000, 400})) == 300);
  CHECK(value.Of(Room(8, {1000, 600})) == 700);
  CHECK(value.Of(Room(12, {1000, 600})) == 1000);
  CHECK(value.Of(Room(16, {1000, 1000})) == 1500);
  CHECK(value.Of(Room(12, {1000, 1000, 500})) == 1800);
  CHECK(value.Of(Room(3, {1000})) == 0);
  CHECK(value.Of(Room(64, {})) == 0);
  CHECK(value.Best(Room(12, {1000, 1000, 500})) == std::vector<size_t>{0, 2});
  CHECK(value.Best(Room(8, {1000})) == std::vector<size_t>{1});
  CHECK(value.Best(Room(8, {500, 500})) == std::vector<size_t>{0, 0});
  CHECK(value.Best(Room(3, {1000})).empty());
}

TEST_CASE("the value of a room: thirds, models, CPU in steps") {
  RoomValue thirds({{Share(333, 1), 100}});
  CHECK(thirds.Of(Room(9, {1000})) == 300);
  CHECK(thirds.Of(Room(9, {998, 665})) == 300);
  RoomValue models({{Whole(1, 1, 0b01), 5}, {Whole(1, 1), 3}});
  CHECK(models.Of(Room(9, {1000}, 0)) == 5);
  CHECK(models.Of(Room(9, {1000}, 1)) == 3);
  CHECK(models.Of(Room(9, {1000})) == 3);
  RoomValue odd({{{.devices = 1, .share = 0, .cpu_millis = 1001, .models = 0}, 1}});
  CHECK(odd.Of(RoomOf(1249, -1, {1000})) == 0);  // 1001 counts as 1250
  CHECK(odd.Of(RoomOf(1250, -1, {1000})) == 1);
  CHECK(odd.Of(RoomOf(kMaxRoomCpuMillis, -1, {1000})) == 1);
}

TEST_CASE("binpack and spread") {
  PlacementScorer binpack(SharingPolicy::kBinpack, {});
  PlacementScorer spread(SharingPolicy::kSpread, {});
  const NodeRoom empty = Room(64, {1000, 1000});
  const NodeRoom used = Room(64, {1000, 400});
  const Request third = Share(300, 1);
  CHECK(binpack.Score(third, used).score < binpack.Score(third, empty).score);
  CHECK(spread.Score(third, used).score > spread.Score(third, empty).score);
  CHECK(binpack.Score(third, used) ==
        Choice{.fits = true, .from = 400, .score = 63'000 + 1100 * 16});
  CHECK(spread.Score(third, used).from == 1000);
  CHECK_FALSE(binpack.Score(Whole(2, 1), used).fits);
  CHECK(binpack.Score(Whole(0, 1), Room(64, {})) ==
        Choice{.fits = true, .from = 0, .score = 63'000});
}

TEST_CASE("fragmentation: a share is placed where the rest remains usable") {
  const RequestMix mix = Mix({{Share(500, 1), 1}, {Whole(1, 1), 1}}, false);
  for (const SharingPolicy policy : {SharingPolicy::kFgd, SharingPolicy::kFragmentation}) {
    PlacementScorer scorer(policy, mix);
    const Choice choice = scorer.Score(Share(500, 1), Room(2, {1000, 500}));
    CHECK(choice.from == 500);
    // Half of the requests cannot use the 500 left, so using them gains 250.
    CHECK(choice.score < scorer.Score(Share(500, 1), Room(2, {1000})).score);
  }
  PlacementScorer fgd(SharingPolicy::kFgd, mix);
  CHECK(fgd.Score(Share(500, 1), Room(2, {500})).score == -56);  // 100 / (1 + exp(-0.25)) = 56.2
}

TEST_CASE("bid_price: the lost value less the earned value") {
  RequestMix mix = Mix({{Share(500, 1), 1, 100}, {Share(300, 1), 1, 20}}, true);
  mix.cpu_millis_per_device = 0;  // without stranding
  PlacementScorer scorer(SharingPolicy::kBidPrice, mix);
  // Of 500 left: loses 100, earns 20: 0.08. No request can use the 200 left then; before, each half
  // of the mix could use all of it. So fragmentation grows by 0.2, of which a tenth counts. 0.1 is
  // 2.5 steps.
  CHECK(scorer.Score(Share(300, 1), Room(4, {500})).score == 3);
  // Of 300 left: loses what it earns: 0. Fragmentation falls from 0.15 to 0, which counts -0.015.
  CHECK(scorer.Score(Share(300, 1), Room(4, {300})).score == 0);
  CHECK(scorer.Score(Share(300, 1), Room(4, {300, 500})).from == 300);
}

TEST_CASE("bid_price without values equals fragmentation, without types binpack") {
  const RequestMix mix = Mix({{Share(500, 1), 1}}, false);
  CHECK(PlacementScorer(SharingPolicy::kBidPrice, mix).policy() == SharingPolicy::kFragmentation);
  CHECK(PlacementScorer(SharingPolicy::kBidPrice, {}).policy() == SharingPolicy::kBinpack);
  CHECK(PlacementScorer(SharingPolicy::kFgd, {}).policy() == SharingPolicy::kBinpack);
  CHECK(PlacementScorer(SharingPolicy::kSpread, mix).policy() == SharingPolicy::kSpread);
}

TEST_CASE("a board gives the first of the best allowed nodes, and follows changes") {
  ScoreBoard board(PlacementScorer(SharingPolicy::kBinpack, {}));
  for (size_t node = 0; node < 3; ++node) board.Set(node, Room(8, {1000}));
  const auto any = [](size_t) { return true; };
  CHECK(board.Best(Share(500, 1), any)->node == 0);
  CHECK(board.Best(Share(500, 1), [](size_t node) { return node > 0; })->node == 1);
  board.Set(2, Room(7, {500}));
  CHECK(board.Best(Share(500, 1), any)->node == 2);
  CHECK(board.Best(Share(500, 1), any)->from == 500);
  CHECK(board.Best(Share(600, 1), any)->node == 0);
  CHECK_FALSE(board.Best(Whole(2, 1), any).has_value());
  board.Use(PlacementScorer(SharingPolicy::kSpread, {}));
  CHECK(board.Best(Share(500, 1), any)->node == 0);
}

}  // namespace
}  // namespace berth
