#include "pricing/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "pricing/rehearsal.h"
#include "support/random.h"

namespace berth {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<double, kDemands> kScales = {0.94, 0.97, 0.98, 1.01, 1.02, 1.05,
                                                  1.06, 1.10, 1.15, 1.20, 1.25, 1.30};
constexpr double kVariation = 0.3;

// The Box-Muller method.
double Normal(Random* random) {
  const double radius = std::sqrt(-2 * std::log(1 - random->Unit()));
  return radius * std::cos(2 * std::numbers::pi * random->Unit());
}

// The part of the mix that requests devices.
struct Demand {
  std::vector<size_t> types;  // indexes into the mix
  std::vector<Request> requests;
  std::vector<double> counts;  // in total as much as the rooms have
  bool any = false;            // there are both requests and devices
};

Demand DemandOf(const RequestMix& mix, const std::vector<RoomKind>& kinds) {
  Demand demand;
  double wanted = 0;
  for (size_t i = 0; i < mix.types.size(); ++i) {
    const RequestType& type = mix.types[i];
    if (type.request.amount() == 0) continue;
    demand.types.push_back(i);
    demand.requests.push_back(type.request);
    demand.counts.push_back(static_cast<double>(type.weight));
    wanted += static_cast<double>(type.weight * type.request.amount());
  }
  double room = 0;
  for (const RoomKind& kind : kinds) room += static_cast<double>(kind.count * kind.room.amount());
  demand.any = room > 0 && wanted > 0;
  for (double& count : demand.counts) count *= demand.any ? room / wanted : 0;
  return demand;
}

// The mean prices over all demands, in devices.
absl::StatusOr<std::vector<double>> MeanPrices(const std::vector<RoomKind>& kinds,
                                               const Demand& demand, const PriceOptions& options) {
  const Clock::time_point deadline = Clock::now() + options.time_limit;
  const auto stop = [&] {
    return (options.cancelled != nullptr && options.cancelled->load()) || Clock::now() > deadline;
  };
  ConfigurationLp lp(kinds, demand.requests);
  Random random(options.seed);
  std::vector<double> mean(demand.counts.size());
  for (const double scale : kScales) {
    std::vector<double> counts = demand.counts;
    for (double& count : counts) count *= scale * std::exp(kVariation * Normal(&random));
    const auto solution = lp.Solve(counts, stop);
    if (absl::IsCancelled(solution.status()) && Clock::now() > deadline) {
      return absl::DeadlineExceededError("no prices within the time limit");
    }
    if (!solution.ok()) return solution.status();
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += solution->prices[i] / kDemands;
  }
  return mean;
}

auto KeyOf(const NodeRoom& room) {
  return std::tie(room.model, room.whole, room.cpu_millis, room.parts);
}

}  // namespace

absl::StatusOr<RequestMix> PricedMix(const std::vector<RoomKind>& kinds, RequestMix mix,
                                     const PriceOptions& options) {
  if (const absl::Status status = CheckMix(mix); !status.ok()) return status;
  for (RequestType& type : mix.types) type.value = 0;
  mix.priced = true;
  const Demand demand = DemandOf(mix, kinds);
  if (!demand.any)
    return absl::FailedPreconditionError("no devices are requested, or there are none");
  const auto prices = MeanPrices(kinds, demand, options);
  if (!prices.ok()) return prices.status();
  for (size_t i = 0; i < demand.types.size(); ++i) {
    RequestType& type = mix.types[demand.types[i]];
    const int64_t price = std::llround((*prices)[i] * static_cast<double>(kWholeDevice));
    type.value = std::clamp<int64_t>(type.request.amount() - price, 0, type.request.amount());
  }
  return mix;
}

namespace {

std::vector<RoomKind> KindsBy(const std::vector<NodeRoom>& rooms, int64_t cpu_step) {
  std::vector<RoomKind> kinds;
  kinds.reserve(rooms.size());
  for (const NodeRoom& room : rooms) {
    kinds.push_back({room, 1});
    kinds.back().room.cpu_millis -= room.cpu_millis % cpu_step;
  }
  std::sort(kinds.begin(), kinds.end(),
            [](const RoomKind& a, const RoomKind& b) { return KeyOf(a.room) < KeyOf(b.room); });
  size_t last = 0;
  for (size_t i = 1; i < kinds.size(); ++i) {
    if (kinds[i].room == kinds[last].room) {
      ++kinds[last].count;
    } else {
      kinds[++last] = kinds[i];
    }
  }
  kinds.resize(std::min(kinds.size(), last + 1));
  return kinds;
}

}  // namespace

std::vector<RoomKind> KindsOf(const std::vector<NodeRoom>& rooms) {
  std::vector<RoomKind> kinds = KindsBy(rooms, kCpuStepMillis);
  for (int64_t step = 2 * kCpuStepMillis; kinds.size() > kMaxRoomKinds; step *= 2) {
    if (step > kMaxRoomCpuMillis) break;  // they differ in more than CPU
    kinds = KindsBy(rooms, step);
  }
  return kinds;
}

absl::StatusOr<RequestMix> PricedFor(const DeviceDemand& demand, const PriceOptions& options) {
  const Clock::time_point deadline = Clock::now() + options.time_limit;
  absl::StatusOr<RequestMix> priced = PricedMix(KindsOf(demand.rooms), demand.mix, options);
  if (!priced.ok() || !HostRunsOut(demand)) return priced;
  const auto stop = [&] {
    return (options.cancelled != nullptr && options.cancelled->load()) || Clock::now() > deadline;
  };
  priced->score = BestScore({*priced, demand.rooms}, stop);
  if (options.cancelled != nullptr && options.cancelled->load()) {
    return absl::CancelledError("stopped");
  }
  return priced;
}

}  // namespace berth
