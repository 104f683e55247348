#include "server/controllers/mix_keeper.h"

#include <utility>

#include "pricing/prices.h"
#include "support/log.h"

namespace berth {

// The next mix replaces the one being priced, and includes the requests since.
Effect MixKeeper::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                const ColdParts&) {
  for (const Event& event : events) {
    const auto* submitted = std::get_if<JobSubmitted>(&event.body);
    if (submitted == nullptr) continue;
    for (const GroupSpec& group : submitted->spec.groups) {
      watch_.Observe(group.shape, group.replicas);
    }
  }
  if (state.shareable_nodes() == 0 || !watch_.Due() || busy_.exchange(true)) return nullptr;
  auto learned = std::make_shared<const DeviceDemand>(watch_.Give(state));
  return [this, learned = std::move(learned)]() mutable {
    Post([this, learned = std::move(learned)](Turn& turn) { Give(turn, *learned); });
  };
}

void MixKeeper::Post(Command command) {
  const absl::Status posted = loop_->Post(std::move(command), CommandClass::kEssential);
  if (!posted.ok()) busy_ = false;  // the next mix will be used
}

void MixKeeper::Give(Turn& turn, const DeviceDemand& learned) {
  const SharingPolicy policy = turn.policies().sharing().policy;
  auto due = std::make_shared<const DeviceDemand>(CountedFor(policy, learned));
  const bool learns = policy != SharingPolicy::kBinpack && policy != SharingPolicy::kSpread;
  const bool prices = policy == SharingPolicy::kBidPrice;
  if (learns && !(prices && turn.state().request_mix().priced)) {
    const absl::Status emitted = turn.Emit(RequestMixChanged{due->mix});
    if (!emitted.ok()) LogWarn("a request mix was refused", {{"error", emitted}});
  }
  if (!prices) {
    busy_ = false;
    return;
  }
  turn.OnDurable([this, due = std::move(due)] { worker_->Run([this, due] { FindPrices(*due); }); });
}

void MixKeeper::FindPrices(const DeviceDemand& due) {
  auto priced = PricedFor(due, {.cancelled = &stopped_});
  if (!priced.ok()) {
    busy_ = false;
    const bool wrong = !stopped_ && !absl::IsFailedPrecondition(priced.status());
    if (wrong) LogWarn("device requests cannot be priced", {{"error", priced.status()}});
    return;
  }
  Post([this, mix = *std::move(priced)](Turn& turn) mutable {
    busy_ = false;
    const absl::Status emitted = turn.Emit(RequestMixChanged{std::move(mix)});
    if (!emitted.ok()) LogWarn("a request mix was refused", {{"error", emitted}});
  });
}

}  // namespace berth
