// The value of a room compared with exhaustive search; scores compared with a scorer without cache.
#include "core/sharing/room_value.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "core/sharing/placement_scorer.h"
#include "core/sharing/score_board.h"

namespace berth {
namespace {

// Small numbers for an exhaustive search. CPU in whole steps: the oracle does not round.
class World {
 public:
  explicit World(uint32_t seed) : random_(seed) {}

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint32_t>(bound));
  }

  Request AnyRequest() {
    Request request;
    request.cpu_millis = (1 + Below(5)) * kCpuStepMillis;
    request.models = static_cast<uint64_t>(Below(4));
    if (Below(3) == 0) {
      request.devices = static_cast<int32_t>(1 + Below(3));
    } else {
      request.share = static_cast<int32_t>(230 + Below(12) * 61);
    }
    return request;
  }

  NodeRoom AnyRoom() {
    std::vector<int16_t> left;
    for (int64_t i = Below(4); i > 0; --i) {
      left.push_back(Below(2) == 0 ? 1000 : static_cast<int16_t>(Below(1000)));
    }
    return RoomOf(Below(14) * kCpuStepMillis, static_cast<int32_t>(Below(3)) - 1, left);
  }

 private:
  std::mt19937 random_;
};

// From request `first` on: place it once more, in any way, or no more.
int64_t TryAll(const std::vector<ValuedRequest>& requests, const NodeRoom& room, size_t first) {
  if (first == requests.size()) return 0;
  const auto& [request, value] = requests[first];
  int64_t best = TryAll(requests, room, first + 1);
  if (value <= 0 || !Fits(request, room)) return best;
  std::vector<int16_t> froms = {static_cast<int16_t>(0)};
  if (request.share > 0) {
    froms.assign(room.parts.begin(), room.parts.end());
    if (room.whole > 0) froms.push_back(static_cast<int16_t>(kWholeDevice));
  }
  for (const int16_t from : froms) {
    if (from < request.share) continue;
    best = std::max(best, value + TryAll(requests, After(room, request, from), first));
  }
  return best;
}

// Checks that the chosen requests fit together. Placing the largest first on the tightest device is
// not always possible, so all ways are tried.
bool FitTogether(const std::vector<ValuedRequest>& requests, std::vector<size_t> placed,
                 const NodeRoom& room) {
  if (placed.empty()) return true;
  const Request& request = requests[placed.back()].request;
  placed.pop_back();
  if (!Fits(request, room)) return false;
  if (request.share == 0) return FitTogether(requests, placed, After(room, request, 0));
  std::vector<int16_t> froms(room.parts.begin(), room.parts.end());
  if (room.whole > 0) froms.push_back(static_cast<int16_t>(kWholeDevice));
  return std::any_of(froms.begin(), froms.end(), [&](int16_t from) {
    return from >= request.share && FitTogether(requests, placed, After(room, request, from));
  });
}

TEST_CASE("the value of a room is the value of the best way to fill it") {
  int64_t worth_something = 0;
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    std::vector<ValuedRequest> requests;
    for (int i = 0; i < 4; ++i) requests.push_back({world.AnyRequest(), world.Below(500) - 50});
    RoomValue value(requests);
    for (int i = 0; i < 5; ++i) {
      const NodeRoom room = world.AnyRoom();
      CAPTURE(seed, i);
      const int64_t best = TryAll(requests, room, 0);
      REQUIRE(value.Of(room) == best);
      const std::vector<size_t> placed = value.Best(room);
      int64_t sum = 0;
      for (const size_t index : placed) sum += requests[index].value;
      REQUIRE(sum == best);
      REQUIRE(FitTogether(requests, placed, room));
      worth_something += best > 0 ? 1 : 0;
    }
  }
  CHECK(worth_something > 100);
}

RequestMix AnyMix(World* world) {
  std::vector<RequestType> types;
  for (int i = 0; i < 6; ++i) types.push_back({world->AnyRequest(), 1 + world->Below(20), 0});
  RequestMix mix = MixOf({"a", "b"}, types);
  mix.priced = true;
  for (RequestType& type : mix.types) type.value = world->Below(type.request.amount());
  return mix;
}

TEST_CASE("scores do not depend on earlier requests, nor mixes on the order of arrivals") {
  for (uint32_t seed = 1; seed <= 15; ++seed) {
    World world(seed);
    const RequestMix mix = AnyMix(&world);
    REQUIRE(CheckMix(mix).ok());
    RequestMix shuffled = MixOf(mix.models, {mix.types.rbegin(), mix.types.rend()});
    shuffled.priced = true;
    for (size_t i = 0; i < mix.types.size(); ++i) shuffled.types[i].value = mix.types[i].value;
    REQUIRE(shuffled == mix);
    for (const SharingPolicy policy :
         {SharingPolicy::kSpread, SharingPolicy::kBinpack, SharingPolicy::kFragmentation,
          SharingPolicy::kFgd, SharingPolicy::kBidPrice}) {
      PlacementScorer used(policy, mix);
      for (int i = 0; i < 40; ++i) {
        const Request request = world.AnyRequest();
        const NodeRoom room = world.AnyRoom();
        PlacementScorer fresh(policy, mix);
        REQUIRE(used.Score(request, room) == fresh.Score(request, room));
        REQUIRE(used.Score(request, room).fits == Fits(request, room));
      }
    }
  }
}

TEST_CASE("a board gives the same result as scoring every node") {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    const RequestMix mix = AnyMix(&world);
    PlacementScorer scorer(SharingPolicy::kBidPrice, mix);
    ScoreBoard board(PlacementScorer(SharingPolicy::kBidPrice, mix));
    for (size_t node = 0; node < 8; ++node) board.Set(node, world.AnyRoom());
    for (int i = 0; i < 60; ++i) {
      const Request request =
          mix.types[static_cast<size_t>(world.Below(static_cast<int64_t>(mix.types.size())))]
              .request;
      Choice best;
      size_t best_node = 0;
      for (size_t node = 0; node < 8; ++node) {
        const Choice choice = scorer.Score(request, board.rooms()[node]);
        if (!choice.fits || (best.fits && choice.score >= best.score)) continue;
        best = choice;
        best_node = node;
      }
      const auto found = board.Best(request, [](size_t) { return true; });
      REQUIRE(found.has_value() == best.fits);
      if (found.has_value()) {
        REQUIRE(found->node == best_node);
        REQUIRE(found->from == best.from);
        board.Set(best_node, After(board.rooms()[best_node], request, found->from));
      } else {
        board.Set(static_cast<size_t>(world.Below(8)), world.AnyRoom());
      }
    }
  }
}

}  // namespace
}  // namespace berth
