#include "pricing/rehearsal.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/sharing/score_board.h"
#include "support/random.h"

namespace berth {
namespace {

std::vector<NodeRoom> Part(const std::vector<NodeRoom>& rooms) {
  const size_t step = (rooms.size() + kRehearsedNodes - 1) / kRehearsedNodes;
  std::vector<NodeRoom> part;
  for (size_t i = 0; i < rooms.size(); i += step) part.push_back(rooms[i]);
  return part;
}

// Requests of each type in proportion to its weight, which together request all devices.
std::vector<Request> RequestsFor(const RequestMix& mix, const std::vector<NodeRoom>& rooms) {
  int64_t devices = 0;
  for (const NodeRoom& room : rooms) devices += room.amount();
  absl::int128 asked = 0;
  for (const RequestType& type : mix.types) asked += type.weight * type.request.amount();
  const auto total = absl::int128(mix.TotalWeight());
  std::vector<Request> requests;
  if (asked == 0) return requests;
  const absl::int128 count = std::min<absl::int128>(devices * total / asked, kRehearsedRequests);
  absl::int128 before = 0;  // weight of earlier types
  for (const RequestType& type : mix.types) {
    const absl::int128 after = before + type.weight;
    const auto copies = static_cast<size_t>(after * count / total - before * count / total);
    requests.insert(requests.end(), copies, type.request);
    before = after;
  }
  return requests;
}

// Allocated devices, in thousandths.
int64_t Filled(const std::vector<NodeRoom>& rooms, const std::vector<Request>& requests,
               const RequestMix& mix, const std::function<bool()>& stop) {
  ScoreBoard board(PlacementScorer(SharingPolicy::kBidPrice, mix));
  for (size_t i = 0; i < rooms.size(); ++i) board.Set(i, rooms[i]);
  int64_t given = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (i % 256 == 0 && stop()) break;
    const auto place = board.Best(requests[i], [](size_t) { return true; });
    if (!place.has_value()) continue;
    given += requests[i].amount();
    board.Set(place->node, After(board.rooms()[place->node], requests[i], place->from));
  }
  return given;
}

}  // namespace

bool HostRunsOut(const DeviceDemand& demand) {
  absl::int128 host_asked = 0, devices_asked = 0, host = 0, devices = 0;
  for (const RequestType& type : demand.mix.types) {
    host_asked += absl::int128(type.weight) * type.request.cpu_millis;
    devices_asked += absl::int128(type.weight) * type.request.amount();
  }
  for (const NodeRoom& room : demand.rooms) {
    host += room.cpu_millis;
    devices += room.amount();
  }
  return host_asked * devices > devices_asked * host;
}

MixScore BestScore(const DeviceDemand& demand, const std::function<bool()>& stop) {
  const std::vector<NodeRoom> rooms = Part(demand.rooms);
  std::vector<Request> requests = RequestsFor(demand.mix, rooms);
  std::vector<int64_t> given(kMixScores);
  Random random(1);
  for (int order = 0; order < kRehearsedOrders; ++order) {
    for (size_t i = requests.size(); i > 1; --i) {
      std::swap(requests[i - 1], requests[random.Below(i)]);
    }
    for (size_t score = 0; score < kMixScores; ++score) {
      RequestMix mix = demand.mix;
      mix.score = static_cast<MixScore>(score);
      given[score] += Filled(rooms, requests, mix, stop);
    }
    if (stop()) break;
  }
  const auto best = std::max_element(given.begin(), given.end());
  return static_cast<MixScore>(best - given.begin());
}

}  // namespace berth
