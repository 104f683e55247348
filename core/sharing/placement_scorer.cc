#include "core/sharing/placement_scorer.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

constexpr size_t kMaxKnownLosses = 1 << 20;
constexpr int64_t kCpuMillisLikeOneDevice = 16'000;  // for binpack and spread

constexpr int64_t kOneDevice = 100'000'000;  // in the unit of weighted sums
constexpr int64_t kStep = kOneDevice / 25;

// To the nearest; halves are rounded up.
int64_t RoundedQuotient(int64_t amount, int64_t step) {
  const int64_t sum = 2 * amount + step;
  return sum / (2 * step) - (sum % (2 * step) < 0 ? 1 : 0);
}

SharingPolicy Effective(SharingPolicy policy, const RequestMix& mix) {
  if (policy == SharingPolicy::kBidPrice) {
    if (!mix.priced || mix.score == MixScore::kFragmentation) {
      policy = SharingPolicy::kFragmentation;
    } else if (mix.score == MixScore::kFgd) {
      policy = SharingPolicy::kFgd;
    }
  }
  const bool by_mix = policy != SharingPolicy::kSpread && policy != SharingPolicy::kBinpack;
  return by_mix && mix.types.empty() ? SharingPolicy::kBinpack : policy;
}

std::vector<ValuedRequest> Valued(const RequestMix& mix) {
  std::vector<ValuedRequest> valued;
  for (const RequestType& type : mix.types) valued.push_back({type.request, type.value});
  return valued;
}

}  // namespace

PlacementScorer::PlacementScorer(SharingPolicy policy, RequestMix mix)
    : policy_(Effective(policy, mix)),
      mix_(std::move(mix)),
      fragmentation_(mix_),
      value_(Valued(mix_)),
      weights_(WeightsOf(policy_, mix_.score)) {}

PlacementScorer::Weights PlacementScorer::WeightsOf(SharingPolicy policy, MixScore score) {
  if (policy != SharingPolicy::kBidPrice) return {0, 100, 5, kStep};
  return {100, score == MixScore::kPricesAndFragmentation ? 30 : 10, 2, kStep};
}

int64_t PlacementScorer::Loss(const NodeRoom& room) {
  const auto it = losses_.find(room);
  if (it != losses_.end()) return it->second;
  if (losses_.size() >= kMaxKnownLosses) losses_.clear();
  const int64_t loss = ComputeLoss(room);
  losses_.emplace(room, loss);
  return loss;
}

int64_t PlacementScorer::Weighed(const NodeRoom& room) {
  const int64_t value = weights_.value == 0 ? 0 : value_.Of(room) * kMicrosPerThousandth;
  return weights_.fragmentation * fragmentation_.Of(room) +
         weights_.stranding * Stranding(room, mix_.cpu_millis_per_device) - weights_.value * value;
}

int64_t PlacementScorer::ComputeLoss(const NodeRoom& room) {
  const auto left = [&] {
    return room.amount() * (kCpuMillisLikeOneDevice / kWholeDevice) + room.cpu_millis;
  };
  switch (policy_) {
    case SharingPolicy::kSpread:
      return -left();
    case SharingPolicy::kBinpack:
      return left();
    case SharingPolicy::kFgd:
      return fragmentation_.Of(room);
    case SharingPolicy::kFragmentation:
    case SharingPolicy::kBidPrice:
      return Weighed(room);
  }
  return 0;
}

int64_t PlacementScorer::Cost(const Request& request, const NodeRoom& before, int16_t from,
                              int64_t value) {
  const int64_t after = Loss(After(before, request, from));
  switch (policy_) {
    case SharingPolicy::kSpread:
    case SharingPolicy::kBinpack:
      return after;
    case SharingPolicy::kFgd:
      return -FragmentationGain(Loss(before), after);
    case SharingPolicy::kFragmentation:
    case SharingPolicy::kBidPrice:
      const int64_t earned = weights_.value * value * kMicrosPerThousandth;
      return RoundedQuotient(after - Loss(before) - earned, weights_.step);
  }
  return 0;
}

Choice PlacementScorer::Score(const Request& request, const NodeRoom& room) {
  Choice best;
  if (!Fits(request, room)) return best;
  const RequestType* type = mix_.Find(request);
  const int64_t value = type == nullptr ? 0 : type->value;
  const bool widest = policy_ == SharingPolicy::kSpread;
  const auto consider = [&](int16_t from) {  // those with the least left first
    const int64_t score = Cost(request, room, from, value);
    const bool better = !best.fits || score < best.score || (widest && score == best.score);
    if (better) best = {.fits = true, .from = from, .score = score};
  };
  if (request.share == 0) {
    consider(0);
    return best;
  }
  int16_t last = 0;
  for (const int16_t part : room.parts) {
    if (part >= request.share && part != std::exchange(last, part)) consider(part);
  }
  if (room.whole > 0) consider(static_cast<int16_t>(kWholeDevice));
  return best;
}

}  // namespace berth
