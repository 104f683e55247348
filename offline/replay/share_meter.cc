#include "offline/replay/share_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace berth::replay {
namespace {

constexpr int64_t kUnit = 1'000'000'000;  // of shares

double Ratio(int64_t part) { return static_cast<double>(part) / static_cast<double>(kUnit); }

}  // namespace

ShareMeter::ShareMeter(std::vector<int32_t> weights, const Resources& capacity)
    : capacity_(capacity), owners_(weights.size()) {
  for (size_t i = 0; i < weights.size(); ++i) owners_[i].weight = std::max(weights[i], 1);
}

int64_t ShareMeter::Dominant(const Resources& held) const {
  double most = 0;
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (held.amount[i] <= 0 || capacity_.amount[i] <= 0) continue;
    most = std::max(most,
                    static_cast<double>(held.amount[i]) / static_cast<double>(capacity_.amount[i]));
  }
  return std::llround(most * static_cast<double>(kUnit));
}

ShareSum ShareMeter::SumOf(const Owner& owner) const {
  ShareSum sum = owner.sum;
  const double seconds = now_ - owner.since;
  sum.share_seconds += Ratio(owner.share) * seconds;
  sum.held.Add(owner.held, seconds);
  if (seconds > 0) sum.max = std::max(sum.max, Ratio(owner.share));
  return sum;
}

void ShareMeter::Count(const Owner& owner, int sign) {
  if (owner.jobs == 0) return;
  const absl::uint128 square = absl::uint128(owner.weighted) * absl::uint128(owner.weighted);
  present_ += sign;
  sum_ += sign * owner.weighted;
  squares_ = sign > 0 ? squares_ + square : squares_ - square;
}

void ShareMeter::Hold(size_t index, const Resources& amounts, int64_t times) {
  Owner& owner = owners_[index];
  owner.sum = SumOf(owner);
  owner.since = now_;
  Count(owner, -1);
  owner.held += amounts.Times(times);
  owner.share = Dominant(owner.held);
  owner.weighted = owner.share / owner.weight;
  Count(owner, 1);
}

void ShareMeter::Demand(size_t index, int jobs, int waiting) {
  Owner& owner = owners_[index];
  Count(owner, -1);
  owner.jobs += jobs;
  waiting_ += waiting;
  Count(owner, 1);
}

void ShareMeter::Pass(double seconds) {
  now_ += seconds;
  if (present_ < 2 || waiting_ == 0 || squares_ == 0) return;
  const auto sum = static_cast<double>(sum_);
  const double index = sum * sum / (static_cast<double>(present_) * static_cast<double>(squares_));
  index_seconds_ += index * seconds;
  index_time_ += seconds;
}

std::vector<ShareSum> ShareMeter::Sums() const {
  std::vector<ShareSum> sums;
  for (const Owner& owner : owners_) sums.push_back(SumOf(owner));
  return sums;
}

double ShareMeter::ShareOf(size_t owner) const { return Ratio(owners_[owner].share); }

std::optional<double> ShareMeter::Fairness() const {
  if (index_time_ <= 0) return std::nullopt;
  return index_seconds_ / index_time_;
}

}  // namespace berth::replay
