#include "core/model/taints.h"

#include <algorithm>

namespace berth {

bool Selects(const TaskShape& shape, const NodeSpec& node) {
  for (const auto& [key, value] : shape.match_labels) {
    const auto found = node.labels.find(key);
    if (found == node.labels.end() || found->second != value) return false;
  }
  return !std::binary_search(shape.exclude_nodes.begin(), shape.exclude_nodes.end(), node.name);
}

bool IsKeptOut(const JobStatus& status, NodeId node) {
  return Avoids(status.refusals, node) || Avoids(status.avoided, node);
}

bool Tolerated(const Taint& taint, const std::vector<Toleration>& tolerations) {
  return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& one) {
    return (one.key.empty() || one.key == taint.key) &&
           (one.value.empty() || one.value == taint.value);
  });
}

bool HasEvictingTaint(const NodeSpec& spec) {
  return std::any_of(spec.taints.begin(), spec.taints.end(),
                     [](const Taint& taint) { return taint.evicts; });
}

bool MayExpel(const Node& node) {
  const auto unhealthy = [](const Device& device) { return device.unhealthy; };
  return node.status.draining || !node.status.drain.devices.Empty() ||
         HasEvictingTaint(node.spec) ||
         std::any_of(node.spec.devices.begin(), node.spec.devices.end(), unhealthy);
}

const Taint* EvictingTaint(const NodeSpec& spec, const std::vector<Toleration>& tolerations) {
  for (const Taint& taint : spec.taints) {
    if (taint.evicts && !Tolerated(taint, tolerations)) return &taint;
  }
  return nullptr;
}

}  // namespace berth
