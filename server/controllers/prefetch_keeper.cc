#include "server/controllers/prefetch_keeper.h"

#include <utility>
#include <vector>

#include "server/controllers/launch.h"

namespace berth {

void PrefetchKeeper::Tick() {
  if (posted_) return;
  const bool any = loop_->Read(
      [](const ClusterState& state, uint64_t) { return !state.reservations().empty(); });
  if (!any) return told_.clear();
  posted_ = loop_->Post([this](Turn& turn) { Look(turn); }, CommandClass::kEssential).ok();
}

void PrefetchKeeper::Look(Turn& turn) {
  posted_ = false;
  const ClusterState& state = turn.state();
  LaunchCapture capture(state);
  Told told;
  size_t messages = 0;
  for (const auto& [id, reservation] : state.reservations()) {
    const Job* job = state.jobs().Find(id);
    if (job == nullptr || reservation.start > turn.now() + kAhead) continue;
    const std::set<Place> before = told_.contains(id) ? told_.at(id) : std::set<Place>();
    for (const Placement& placement : reservation.places) {
      const Node* node = state.nodes().Find(placement.node);
      if (node == nullptr || node->status.state != NodeState::kReady) continue;
      const Place place{placement.node, GroupOf(*job, placement.task)};
      if (told[id].contains(place)) continue;
      if (!before.contains(place)) {
        if (messages == kMaxMessages) continue;
        ++messages;
        capture.AddPrefetch(*job, placement.task, *node);
      }
      told[id].insert(place);
    }
  }
  told_ = std::move(told);
  if (messages == 0) return;
  turn.OnDurable(
      [this, orders = capture.Take()]() mutable { dispatcher_->Send(std::move(orders)); });
}

}  // namespace berth
