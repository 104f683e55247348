#include "server/controllers/health_brake.h"

#include <algorithm>
#include <optional>
#include <string>

#include "server/controllers/conditions.h"
#include "support/log.h"

namespace berth {
namespace {

// It takes more from the node than was taken before.
bool TakesMore(const NodeStatus& now, const NodeSteered& wish) {
  return (wish.cordoned && !now.cordoned) || (wish.draining && !now.draining);
}

}  // namespace

void HealthBrake::Note(Turn& turn, NodeId node, uint64_t epoch,
                       const v1::NodeConditions& conditions) {
  bool held_before = false;
  {
    absl::MutexLock lock(&mutex_);
    held_before = held_.erase(node) > 0;
  }
  if (Steer(turn, node, epoch, conditions)) return;
  {
    absl::MutexLock lock(&mutex_);
    held_[node] = {epoch, conditions};
  }
  if (held_before) return;
  LogWarn(
      "a condition that would cordon or drain its node is only noted for now: agents have "
      "cordoned or drained too many nodes within 5 minutes (health_brake)",
      {{"node", turn.state().nodes().At(node).spec.name}, {"steered", steered_.size()}});
}

void HealthBrake::Retry(Turn& turn, NodeId node) {
  Held held;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = held_.find(node);
    if (found == held_.end()) return;
    held = found->second;
  }
  if (Steer(turn, node, held.epoch, held.conditions)) Forget(node, held.epoch);
}

void HealthBrake::Forget(NodeId node, uint64_t epoch) {
  absl::MutexLock lock(&mutex_);
  const auto found = held_.find(node);
  if (found != held_.end() && found->second.epoch == epoch) held_.erase(found);
}

bool HealthBrake::Holds(NodeId node) const {
  absl::MutexLock lock(&mutex_);
  return held_.contains(node);
}

size_t HealthBrake::held() const {
  absl::MutexLock lock(&mutex_);
  return held_.size();
}

// A node that was steered within the window counts once.
bool HealthBrake::HasRoom(size_t nodes, NodeId node, Time now) {
  std::erase_if(steered_, [&](const auto& one) { return one.second + kWindow <= now; });
  if (steered_.contains(node)) return true;
  const size_t share = nodes * static_cast<size_t>(limits_.percent) / 100;
  return steered_.size() < std::max(share, static_cast<size_t>(limits_.least));
}

bool HealthBrake::Steer(Turn& turn, NodeId id, uint64_t epoch,
                        const v1::NodeConditions& conditions) {
  const Node* node = turn.state().nodes().Find(id);
  if (node == nullptr || node->status.epoch != epoch) return true;
  const std::optional<NodeSteered> event = SteeringFor(*node, conditions);
  if (!event.has_value()) return true;
  const bool counts = TakesMore(node->status, *event);
  if (counts && !HasRoom(turn.state().nodes().size(), id, turn.now())) return false;
  const std::string name = node->spec.name;
  const absl::Status status = turn.Emit(*event);
  if (counts && status.ok()) steered_.emplace(id, turn.now());
  LogWarn("an agent changed the cordon or drain of its node",
          {{"node", name},
           {"cordoned", event->cordoned ? "yes" : "no"},
           {"draining", event->draining ? "yes" : "no"},
           {"reason", event->reason},
           {"status", status}});
  return true;
}

}  // namespace berth
