#include "offline/replay/network_map.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/devices/best_set.h"
#include "core/devices/device_layout.h"

namespace berth::replay {
namespace {

constexpr double kGbpsPerMbPerS = 8.0 / 1000;

bool Computes(const Device& device) { return device.kind != kNicKind; }

// Calls `visit` with each device of the set that computes.
template <class Visit>
void ForEachComputing(const Node& node, const DeviceSet& devices, Visit&& visit) {
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    if (devices.Has(i) && Computes(node.spec.devices[i])) visit(i, node.spec.devices[i]);
  }
}

// The part of a job on one node.
struct Stop {
  NodeId node;
  DeviceSet devices;
  int64_t workers = 0;
};

// Sorted by the lowest rank on each node.
std::vector<Stop> StopsOf(const ClusterState& state, const Job& job) {
  std::vector<std::pair<uint16_t, uint32_t>> ranks;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) ranks.emplace_back(job.tasks[i].rank, i);
  std::sort(ranks.begin(), ranks.end());
  std::vector<Stop> stops;
  std::map<NodeId, size_t> at;
  for (const auto& [rank, index] : ranks) {
    const Task& task = job.tasks[index];
    const auto [found, added] = at.try_emplace(task.node, stops.size());
    if (added) stops.push_back({.node = task.node, .devices = {}, .workers = 0});
    Stop& stop = stops[found->second];
    stop.devices |= task.devices;
    stop.workers += WorkersOf(state.nodes().At(task.node), task);
  }
  return stops;
}

// The HyperNodes of the kind that hold the node, lowest first; without the root.
std::vector<HyperNodeId> Above(const ClusterState& state, const Node& node,
                               const std::string& kind) {
  std::vector<HyperNodeId> chain;
  const HyperNode* domain = state.DomainOf(node, kind);
  while (domain != nullptr) {
    chain.push_back(domain->id);
    domain = domain->parent == HyperNodeId{} ? nullptr : &state.hyper_nodes().At(domain->parent);
  }
  return chain;
}

// The lowest HyperNode that holds both; 0: the root.
HyperNodeId CommonOf(const std::vector<HyperNodeId>& a, const std::vector<HyperNodeId>& b) {
  for (HyperNodeId id : a) {
    if (std::find(b.begin(), b.end(), id) != b.end()) return id;
  }
  return {};
}

// The tree through which two nodes communicate: a tree other than the network with a known speed,
// if both nodes are in one of its HyperNodes.
std::string TreeBetween(const ClusterState& state, const Node& a, const Node& b) {
  for (HyperNodeId id : a.domains) {
    const std::string& kind = state.hyper_nodes().At(id).spec.kind;
    if (kind == kNetworkKind) continue;
    const HyperNodeId common = CommonOf(Above(state, a, kind), Above(state, b, kind));
    if (common == HyperNodeId{}) continue;
    if (state.hyper_nodes().At(common).spec.bandwidth_gbps > 0) return kind;
  }
  return kNetworkKind;
}

}  // namespace

int64_t WorkersOf(const Node& node, const Task& task) {
  int64_t workers = 0;
  ForEachComputing(node, task.devices, [&](size_t, const Device&) { ++workers; });
  return std::max<int64_t>(workers, 1);
}

double NetworkMap::InsideOfKind(const Node& node, const std::string& kind,
                                const DeviceSet& devices) const {
  const KindLayout* layout = node.layout == nullptr ? nullptr : node.layout->Of(kind);
  if (layout == nullptr) return defaults_.device_gbps;
  const std::vector<size_t> order = RingOrder(*layout, layout->MaskOf(devices));
  double least = kUnboundedGbps;
  for (size_t i = 0; order.size() > 1 && i < order.size(); ++i) {
    const int64_t stated = layout->MbPerS(order[i], order[(i + 1) % order.size()]);
    const double gbps =
        stated > 0 ? static_cast<double>(stated) * kGbpsPerMbPerS : defaults_.device_gbps;
    least = std::min(least, gbps);
  }
  return least;
}

double NetworkMap::InsideOf(const Node& node, const DeviceSet& devices, int64_t workers) const {
  if (workers < 2) return kUnboundedGbps;
  std::map<std::string, int> kinds;
  ForEachComputing(node, devices, [&](size_t, const Device& device) { ++kinds[device.kind]; });
  // Workers without devices, with several kinds, or that share one: no link class is known.
  if (kinds.size() != 1) return defaults_.device_gbps;
  const auto& [kind, count] = *kinds.begin();
  return count < 2 ? defaults_.device_gbps : InsideOfKind(node, kind, devices);
}

LinkIndex NetworkMap::LinkOf(const ClusterState& state, const Node& node, const std::string& kind,
                             const Up& up, LinkShares* links) {
  const NodeId own = up.from == HyperNodeId{} ? node.id : NodeId{};
  const auto [found, added] = index_.try_emplace({kind, {up.from, own}}, 0);
  if (!added) return found->second;
  const double otherwise = up.from == HyperNodeId{} ? defaults_.node_gbps : defaults_.uplink_gbps;
  const HyperNode* above = state.hyper_nodes().Find(up.to);
  const int64_t stated = above == nullptr ? 0 : above->spec.bandwidth_gbps;
  found->second = links->AddLink(stated > 0 ? static_cast<double>(stated) : otherwise);
  std::string tier = "node";
  if (up.from != HyperNodeId{}) {
    const HyperNodeSpec& spec = state.hyper_nodes().At(up.from).spec;
    tier = spec.tier_name.empty() ? absl::StrCat("tier ", spec.tier) : spec.tier_name;
  }
  tiers_.push_back(kind == kNetworkKind ? tier : absl::StrCat(kind, " ", tier));
  return found->second;
}

void NetworkMap::Cross(const ClusterState& state, const Node& from, const Node& to,
                       LinkShares* links, Counts* counts) {
  const std::string kind = TreeBetween(state, from, to);
  const std::vector<HyperNodeId> above_from = Above(state, from, kind);
  const std::vector<HyperNodeId> above_to = Above(state, to, kind);
  const HyperNodeId common = CommonOf(above_from, above_to);
  const auto climb = [&](const Node& node, const std::vector<HyperNodeId>& above, auto&& count) {
    Up up{.from = {}, .to = {}};
    for (size_t i = 0;; ++i) {
      up.to = i < above.size() ? above[i] : HyperNodeId{};
      count((*counts)[LinkOf(state, node, kind, up, links)]);
      if (up.to == common) return;
      up.from = up.to;
    }
  };
  climb(from, above_from, [](Count& count) { ++count.out; });
  climb(to, above_to, [](Count& count) { ++count.in; });
}

Ring NetworkMap::RingOf(const ClusterState& state, const Job& job, LinkShares* links) {
  Ring ring;
  const std::vector<Stop> stops = StopsOf(state, job);
  Counts counts;
  for (size_t i = 0; i < stops.size(); ++i) {
    const Node& node = state.nodes().At(stops[i].node);
    ring.workers += stops[i].workers;
    ring.device_gbps =
        std::min(ring.device_gbps, InsideOf(node, stops[i].devices, stops[i].workers));
    if (stops.size() < 2) break;
    const Node& next = state.nodes().At(stops[(i + 1) % stops.size()].node);
    Cross(state, node, next, links, &counts);
  }
  for (const auto& [link, count] : counts) {
    ring.crossings.push_back({.link = link, .times = std::max(count.out, count.in)});
  }
  return ring;
}

}  // namespace berth::replay
