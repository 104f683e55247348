#include "core/model/rank_order.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "core/model/transitions.h"

namespace berth {
namespace {

// Names of domains, from the highest down; empty: only the root.
using Path = std::vector<absl::string_view>;

Path PathOf(const ClusterState& state, const HyperNode* lowest) {
  Path path;
  for (; lowest != nullptr; lowest = state.hyper_nodes().Find(lowest->parent)) {
    path.push_back(lowest->spec.name);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

size_t SharedWith(const Path& a, const Path& b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(differ.first - a.begin());
}

size_t FirstDevice(const DeviceSet& devices) {
  for (size_t word = 0; word < devices.bits.size(); ++word) {
    if (devices.bits[word] != 0) {
      return 64 * word + static_cast<size_t>(std::countr_zero(devices.bits[word]));
    }
  }
  return kMaxDevicesPerNode;
}

const std::string& KindFor(const Job& job, const Group& group) {
  if (job.topology->Any()) return job.topology->kind;
  return group.topology.Any() ? group.topology.kind : group.partition_topology.kind;
}

// One member, and where it is.
struct Member {
  size_t index = 0;  // in the placements
  uint32_t task = 0;
  uint32_t partition = 0;
  NodeId node;
  size_t place = 0;  // of its node, in the tree's order
  size_t device = 0;
  size_t far = 0;  // from where the group before ended: 0 = on that node
};

class Ranker {
 public:
  Ranker(const ClusterState& state, const Job& job, absl::Span<const Placement> placements)
      : state_(state), job_(job), placements_(placements) {}

  std::vector<size_t> Run();

 private:
  void FindPlaces(const std::string& kind);
  const Path& PathAt(NodeId node) { return paths_[domains_[node]]; }
  size_t FarFromLast(NodeId node);
  void RankGroup(std::vector<Member> members, std::vector<size_t>* order);

  const ClusterState& state_;
  const Job& job_;
  const absl::Span<const Placement> placements_;
  const std::string* kind_ = nullptr;                 // of what is known below
  absl::flat_hash_map<NodeId, HyperNodeId> domains_;  // the lowest
  std::map<HyperNodeId, Path> paths_;
  absl::flat_hash_map<NodeId, size_t> places_;
  NodeId last_;  // where the group before ended; 0: there was none
};

// Of all nodes that are used, for one kind.
void Ranker::FindPlaces(const std::string& kind) {
  if (kind_ != nullptr && *kind_ == kind) return;
  kind_ = &kind;
  paths_.clear();
  std::vector<std::pair<NodeId, absl::string_view>> nodes;
  for (const Placement& placement : placements_) {
    const Node* node = state_.nodes().Find(placement.node);
    if (node == nullptr || (!nodes.empty() && nodes.back().first == node->id)) continue;
    const HyperNode* lowest = state_.DomainOf(*node, kind);
    const HyperNodeId domain = lowest == nullptr ? HyperNodeId{} : lowest->id;
    domains_[node->id] = domain;
    if (!paths_.contains(domain)) paths_.emplace(domain, PathOf(state_, lowest));
    nodes.emplace_back(node->id, node->spec.name);
  }
  std::vector<HyperNodeId> in_order;
  for (const auto& [domain, path] : paths_) in_order.push_back(domain);
  std::sort(in_order.begin(), in_order.end(), [&](HyperNodeId a, HyperNodeId b) {
    return std::tie(paths_[a], a) < std::tie(paths_[b], b);
  });
  absl::flat_hash_map<HyperNodeId, size_t> place_of;
  for (size_t i = 0; i < in_order.size(); ++i) place_of[in_order[i]] = i;
  std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
    const size_t first = place_of[domains_[a.first]], second = place_of[domains_[b.first]];
    return std::tie(first, a.second, a.first) < std::tie(second, b.second, b.first);
  });
  for (size_t i = 0; i < nodes.size(); ++i) places_[nodes[i].first] = i;
}

size_t Ranker::FarFromLast(NodeId node) {
  if (last_ == NodeId{} || node == last_ || !places_.contains(node)) return 0;
  const Path& from = PathAt(last_);
  return 1 + from.size() - SharedWith(from, PathAt(node));
}

void Ranker::RankGroup(std::vector<Member> members, std::vector<size_t>* order) {
  const auto position = [](const Member& m) {
    return std::tie(m.far, m.place, m.node, m.device, m.task);
  };
  std::sort(members.begin(), members.end(),
            [&](const Member& a, const Member& b) { return position(a) < position(b); });
  std::map<uint32_t, size_t> first;  // of a partition: where it begins
  for (size_t i = 0; i < members.size(); ++i) first.emplace(members[i].partition, i);
  std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
    return a.partition != b.partition && first[a.partition] < first[b.partition];
  });
  for (const Member& member : members) order->push_back(member.index);
  last_ = members.back().node;
}

std::vector<size_t> Ranker::Run() {
  std::map<uint32_t, std::vector<size_t>> groups;
  for (size_t i = 0; i < placements_.size(); ++i) {
    groups[GroupOf(job_, placements_[i].task)].push_back(i);
  }
  std::vector<size_t> order;
  order.reserve(placements_.size());
  for (const auto& [index, indexes] : groups) {
    const Group& group = job_.groups[index];
    FindPlaces(KindFor(job_, group));
    const auto size = static_cast<uint32_t>(std::max(group.partition_size, 0));
    std::vector<Member> members;
    members.reserve(indexes.size());
    for (size_t i : indexes) {
      const Placement& placement = placements_[i];
      const auto place = places_.find(placement.node);
      members.push_back({.index = i,
                         .task = placement.task,
                         .partition = size == 0 ? 0 : (placement.task - group.first_task) / size,
                         .node = placement.node,
                         .place = place == places_.end() ? placements_.size() : place->second,
                         .device = FirstDevice(placement.devices),
                         .far = FarFromLast(placement.node)});
    }
    RankGroup(std::move(members), &order);
  }
  return order;
}

}  // namespace

std::vector<size_t> RankOrder(const ClusterState& state, const Job& job,
                              absl::Span<const Placement> placements) {
  return Ranker(state, job, placements).Run();
}

absl::InlinedVector<uint16_t, 1> RanksFor(const ClusterState& state, const Job& job, bool gang,
                                          absl::Span<const Placement> placements) {
  FreeRanks free(job, gang, placements);
  absl::InlinedVector<uint16_t, 1> ranks(placements.size());
  if (!gang || placements.size() == 1) {
    for (uint16_t& rank : ranks) rank = free.Take();
    return ranks;
  }
  for (size_t i : RankOrder(state, job, placements)) ranks[i] = free.Take();
  return ranks;
}

}  // namespace berth
