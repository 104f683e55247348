#include "offline/replay/mix_feed.h"

#include <utility>

#include "pricing/prices.h"

namespace berth::replay {

absl::Status MixFeed::Come(const TaskShape& shape, int64_t tasks) {
  if (!learns() || cluster_.state().shareable_nodes() == 0) return absl::OkStatus();
  watch_.Observe(shape, tasks);
  return watch_.Due() ? Give() : absl::OkStatus();
}

absl::Status MixFeed::Give() {
  if (!learns()) return absl::OkStatus();
  const DeviceDemand demand = CountedFor(policy_, watch_.Give(cluster_.state()));
  RequestMix mix = demand.mix;
  if (policy_ == SharingPolicy::kBidPrice) {
    auto priced = PricedFor(demand, {});
    const bool nothing = absl::IsFailedPrecondition(priced.status());  // no requests yet
    if (!priced.ok() && !nothing) return priced.status();
    if (priced.ok()) mix = *std::move(priced);
  }
  ++given_;
  return cluster_.Happen(RequestMixChanged{std::move(mix)});
}

}  // namespace berth::replay
