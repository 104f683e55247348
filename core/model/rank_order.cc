#include "core/model/rank_order.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
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

// One member and its place.
struct Member {
  size_t index = 0;  // in the placements
  uint32_t task = 0;
  uint32_t partition = 0;
  NodeId node;
  size_t place = 0;  // position of its node in the tree's order
  size_t device = 0;
  size_t far = 0;  // distance from the end of the previous group: 0 = on that node
};

class Ranker {
 public:
  Ranker(const ClusterState& state, const Job& job, absl::Span<const Placement> placements)
      : state_(state), job_(job), placements_(placements) {}

  std::vector<size_t> Run();

 private:
  struct Domain {
    HyperNodeId id;  // 0: the root
    Path path;
    size_t place = 0;  // among its siblings, in the tree's order
  };
  struct Spot {  // of a node
    size_t place = 0;
    size_t domain = 0;  // the lowest that contains it, in domains_
  };

  void FindPlaces(const std::string& kind);
  size_t IndexOf(const HyperNode* lowest);
  void OrderDomains();
  size_t FarFromLast(NodeId node, const Spot& spot) const;
  void RankGroup(std::vector<Member> members, std::vector<size_t>* order);

  const ClusterState& state_;
  const Job& job_;
  const absl::Span<const Placement> placements_;
  const std::string* kind_ = nullptr;  // of the data below
  std::vector<Domain> domains_;
  absl::flat_hash_map<HyperNodeId, size_t> index_of_;  // in domains_
  absl::flat_hash_map<NodeId, Spot> spots_;
  NodeId last_;  // where the previous group ended; 0: none
};

// For all used nodes and one kind. Nodes of one domain are usually adjacent.
void Ranker::FindPlaces(const std::string& kind) {
  if (kind_ != nullptr && *kind_ == kind) return;
  kind_ = &kind;
  domains_.clear();
  index_of_.clear();
  spots_.clear();
  struct Used {
    size_t domain;
    absl::string_view name;
    NodeId id;
  };
  std::vector<Used> nodes;
  nodes.reserve(placements_.size());
  for (const Placement& placement : placements_) {
    const Node* node = state_.nodes().Find(placement.node);
    if (node == nullptr || (!nodes.empty() && nodes.back().id == node->id)) continue;
    nodes.push_back({IndexOf(state_.DomainOf(*node, kind)), node->spec.name, node->id});
  }
  OrderDomains();
  std::sort(nodes.begin(), nodes.end(), [&](const Used& a, const Used& b) {
    if (a.domain != b.domain) return domains_[a.domain].place < domains_[b.domain].place;
    return std::tie(a.name, a.id) < std::tie(b.name, b.id);
  });
  spots_.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) spots_[nodes[i].id] = {i, nodes[i].domain};
}

size_t Ranker::IndexOf(const HyperNode* lowest) {
  const HyperNodeId id = lowest == nullptr ? HyperNodeId{} : lowest->id;
  if (!domains_.empty() && domains_.back().id == id) return domains_.size() - 1;
  const auto [known, fresh] = index_of_.try_emplace(id, domains_.size());
  if (fresh) domains_.push_back({.id = id, .path = PathOf(state_, lowest)});
  return known->second;
}

void Ranker::OrderDomains() {
  std::vector<size_t> in_order(domains_.size());
  std::iota(in_order.begin(), in_order.end(), 0);
  std::sort(in_order.begin(), in_order.end(), [&](size_t a, size_t b) {
    return std::tie(domains_[a].path, domains_[a].id) < std::tie(domains_[b].path, domains_[b].id);
  });
  for (size_t i = 0; i < in_order.size(); ++i) domains_[in_order[i]].place = i;
}

size_t Ranker::FarFromLast(NodeId node, const Spot& spot) const {
  if (last_ == NodeId{} || node == last_) return 0;
  const auto last = spots_.find(last_);
  if (last == spots_.end()) return 1;
  const Path& from = domains_[last->second.domain].path;
  return 1 + from.size() - SharedWith(from, domains_[spot.domain].path);
}

void Ranker::RankGroup(std::vector<Member> members, std::vector<size_t>* order) {
  const auto position = [](const Member& m) {
    return std::tie(m.far, m.place, m.node, m.device, m.task);
  };
  std::sort(members.begin(), members.end(),
            [&](const Member& a, const Member& b) { return position(a) < position(b); });
  std::map<uint32_t, size_t> first;  // of a partition: its start
  for (size_t i = 0; i < members.size(); ++i) first.try_emplace(members[i].partition, i);
  if (first.size() > 1) {
    std::stable_sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
      return a.partition != b.partition && first[a.partition] < first[b.partition];
    });
  }
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
      const auto spot = spots_.find(placement.node);
      const bool there = spot != spots_.end();
      members.push_back({.index = i,
                         .task = placement.task,
                         .partition = size == 0 ? 0 : (placement.task - group.first_task) / size,
                         .node = placement.node,
                         .place = there ? spot->second.place : placements_.size(),
                         .device = FirstDevice(placement.devices),
                         .far = there ? FarFromLast(placement.node, spot->second) : 0});
    }
    RankGroup(std::move(members), &order);
  }
  return order;
}

// Ranks stay within a section: groups and partitions remain together.
using Section = std::pair<uint32_t, uint32_t>;  // group, partition

Section SectionOf(const Job& job, uint32_t task) {
  const uint32_t index = GroupOf(job, task);
  const Group& group = job.groups[index];
  const auto size = static_cast<uint32_t>(std::max(group.partition_size, 0));
  return {index, size == 0 ? 0 : (task - group.first_task) / size};
}

// Gives members the ranks that their nodes had, then those of their section that are left over.
void KeepRanks(const Job& job, absl::Span<const Placement> placements,
               absl::Span<const FormerPlace> former, absl::Span<const size_t> members,
               FreeRanks* free, absl::InlinedVector<MemberRank, 1>* ranks) {
  std::map<std::pair<Section, NodeId>, std::set<uint16_t>> on_node;
  std::map<Section, std::set<uint16_t>> of_section;
  for (size_t i : members) {
    if (former[i].node == NodeId{} || former[i].rank >= members.size()) continue;
    const Section section = SectionOf(job, placements[i].task);
    on_node[{section, former[i].node}].insert(former[i].rank);
    of_section[section].insert(former[i].rank);
  }
  if (on_node.empty()) return;  // the first start
  std::vector<std::pair<size_t, uint16_t>> kept;
  for (size_t i : members) {
    const Section section = SectionOf(job, placements[i].task);
    const auto there = on_node.find({section, placements[i].node});
    if (there == on_node.end() || there->second.empty()) continue;
    kept.emplace_back(i, *there->second.begin());
    there->second.erase(there->second.begin());
  }
  if (2 * kept.size() < members.size()) return;
  for (const auto& [i, rank] : kept) {
    if (free->TakeThis(rank)) (*ranks)[i].rank = rank;
  }
  for (size_t i : members) {
    if ((*ranks)[i].rank != kNoRank) continue;
    std::set<uint16_t>& left = of_section[SectionOf(job, placements[i].task)];
    while (!left.empty() && (*ranks)[i].rank == kNoRank) {
      const uint16_t rank = *left.begin();
      left.erase(left.begin());
      if (free->TakeThis(rank)) (*ranks)[i].rank = rank;
    }
  }
}

}  // namespace

std::vector<size_t> RankOrder(const ClusterState& state, const Job& job,
                              absl::Span<const Placement> placements) {
  return Ranker(state, job, placements).Run();
}

absl::InlinedVector<MemberRank, 1> RanksFor(const ClusterState& state, const Job& job, bool gang,
                                            uint32_t epoch, absl::Span<const Placement> placements,
                                            absl::Span<const FormerPlace> former) {
  const auto only = static_cast<uint16_t>(epoch > 0 ? 1 : 0);
  if (job.tasks.size() == 1) return {{.rank = 0, .world = only, .epoch = epoch}};
  FreeRanks free(job, gang, placements);
  const bool all_ranked = std::all_of(job.groups.begin(), job.groups.end(), HasRanks);
  std::vector<size_t> members;  // indexes into the placements, in order of rank
  if (gang && placements.size() > 1) {
    members = RankOrder(state, job, placements);
  } else {
    members.resize(placements.size());
    std::iota(members.begin(), members.end(), 0);
  }
  const auto unranked = [&](size_t i) {
    return !HasRanks(job.groups[GroupOf(job, placements[i].task)]);
  };
  if (!all_ranked) std::erase_if(members, unranked);
  const size_t world = epoch > 0 ? members.size() + free.others() : 0;
  absl::InlinedVector<MemberRank, 1> ranks(
      placements.size(), {.rank = kNoRank, .world = static_cast<uint16_t>(world), .epoch = epoch});
  if (gang && epoch > 0 && members.size() > 1) {
    KeepRanks(job, placements, former, members, &free, &ranks);
  }
  for (size_t i : members) {
    if (ranks[i].rank == kNoRank) ranks[i].rank = free.Take();
  }
  return ranks;
}

}  // namespace berth
