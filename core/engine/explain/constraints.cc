#include "core/engine/explain/constraints.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/engine/search/device_choice.h"
#include "core/engine/search/job_affinity.h"
#include "core/engine/search/node_search.h"

namespace berth {
namespace {

// A set of constraints, by position in the order.
using Mask = uint32_t;
constexpr size_t kMostConstraints = 16;

// Nodes that are rejected by the same constraints.
struct Alike {
  int64_t nodes = 0;
  int64_t devices = 0;
  // Tasks that they hold: empty, ignoring links; empty; with the running tasks; and also with
  // reservations of others.
  int64_t fit_unlinked = 0, fit_empty = 0, fit_free = 0, fit_left = 0;
};

ShapeEntry WithAnyLinks(ShapeEntry entry) {
  for (DeviceRequest& request : entry.shape.devices) {
    request.min_link = LinkClass::kUnknown;
    request.min_bandwidth_gbps = 0;
  }
  return entry;
}

class Counter {
 public:
  Counter(const ClusterState& state, const Policies& policies, Reservations& reservations,
          const Job& job, uint32_t group, int64_t needed, Time now,
          const std::optional<TopologyLimit>& limit);

  void Look(const Node& node);
  GroupConstraints Finish();

 private:
  struct Filter {
    Mask bit = 0;
    NodeTest test;
  };
  Mask Name(absl::string_view name);
  Mask Rejects(const Node& node, const Offer& empty) const;
  bool Passes(const Offer& offer) const;
  int64_t FitsIn(const Offer& offer) const { return FitsIn(offer, devices_); }
  int64_t FitsIn(const Offer& offer, const DeviceChoice& devices) const;
  int64_t FreeDevices(const Node& node) const;
  int64_t Holds(const Alike& alike, Mask chosen) const;
  int64_t HoldsTogether(Mask chosen) const;
  void RejectByTopology();
  std::vector<int64_t> InDomains(const std::function<int64_t(Mask, const Alike&)>& of) const;
  std::vector<std::string> Blocking() const;
  Mask FewestBlocking() const;

  const ClusterState& state_;
  Reservations& reservations_;
  const Job& job_;
  const ShapeEntry& entry_;
  const int64_t needed_;
  const Window window_;
  const DeviceChoice devices_;
  const ShapeEntry unlinked_;  // the same without a link floor
  const DeviceChoice unlinked_devices_;
  const bool one_per_node_;  // the group's tasks have anti-affinity to each other
  std::vector<std::string> names_;
  std::vector<Filter> filters_;
  Mask ready_, schedulable_, size_, links_ = 0, topology_ = 0, affinity_ = 0, avoided_ = 0;
  Mask free_, reserved_;
  TopologyTrees trees_;
  const JobAffinity others_;
  // By the domain that the node is in, if a topology limit applies, and by what rejects the node.
  std::map<std::pair<DomainIndex, Mask>, Alike> alike_;
  const std::optional<TopologyLimit>& limit_;
  int64_t largest_block_ = 0;
  const uint32_t group_;
};

Counter::Counter(const ClusterState& state, const Policies& policies, Reservations& reservations,
                 const Job& job, uint32_t group, int64_t needed, Time now,
                 const std::optional<TopologyLimit>& limit)
    : state_(state),
      reservations_(reservations),
      job_(job),
      entry_(state.interner().Shape(job.groups[group].shape)),
      needed_(needed),
      window_(WindowFrom(job, now)),
      devices_(ShapeRequest{entry_, state.interner()}),
      unlinked_(WithAnyLinks(entry_)),
      unlinked_devices_(ShapeRequest{unlinked_, state.interner()}),
      one_per_node_(KeepsApart(job.groups[group], group)),
      others_(state, trees_, job),
      limit_(limit),
      group_(group) {
  ready_ = Name("ready");
  schedulable_ = Name("schedulable");
  std::vector<NodeTest> sizes;
  for (const auto& filter : policies.filters()) {
    NodeTest test = filter->Prepare(ShapeRequest{unlinked_, state.interner()});
    if (test == nullptr) continue;
    // Its demand on the node is counted separately, as "size" and "free".
    if (filter->name() == "resources/devices") {
      sizes.push_back(std::move(test));
    } else {
      filters_.push_back({Name(filter->name()), std::move(test)});
    }
  }
  size_ = Name("size");
  for (NodeTest& test : sizes) filters_.push_back({size_, std::move(test)});
  if (!(unlinked_.shape == entry_.shape)) links_ = Name("links");
  if (limit_.has_value()) topology_ = Name("topology");
  if (!others_.empty()) affinity_ = Name("affinity");
  if (!job.status.avoided.empty()) avoided_ = Name("avoided");
  free_ = Name("free");
  reserved_ = Name("reserved");
}

Mask Counter::Name(absl::string_view name) {
  BERTH_CHECK(names_.size() < kMostConstraints);
  names_.emplace_back(name);
  return Mask{1} << (names_.size() - 1);
}

// By properties of the node, whatever runs there.
Mask Counter::Rejects(const Node& node, const Offer& empty) const {
  Mask rejects = 0;
  if (node.status.state != NodeState::kReady) rejects |= ready_;
  const bool takes = node.status.state != NodeState::kReady || state_.free().Has(node.id) ||
                     (TaskRoom(node) == 0 && TakesTasks(node.status));
  if (!takes) rejects |= schedulable_;
  if (!entry_.least.FitsIn(node.capacity)) rejects |= size_;
  for (const Filter& filter : filters_) {
    if ((rejects & filter.bit) == 0 && !filter.test(empty)) rejects |= filter.bit;
  }
  const bool has_them = links_ != 0 && unlinked_devices_.SetsIn(empty, 1) == 1;
  if (affinity_ != 0 && !others_.May(node.id)) rejects |= affinity_;
  if (Avoids(job_.status.avoided, node.id)) rejects |= avoided_;
  if (has_them && devices_.SetsIn(empty, 1) == 0) rejects |= links_;
  return rejects;
}

bool Counter::Passes(const Offer& offer) const {
  return std::all_of(filters_.begin(), filters_.end(),
                     [&](const Filter& filter) { return filter.test(offer); });
}

// By amounts and devices alone.
int64_t Counter::FitsIn(const Offer& offer, const DeviceChoice& devices) const {
  const int64_t bound = one_per_node_ ? 1 : needed_;
  return devices.SetsIn(offer, TimesIn(entry_.least, offer.free, bound));
}

// Devices that are wholly free or, for a share, have room for it.
int64_t Counter::FreeDevices(const Node& node) const {
  int64_t count = 0;
  const DeviceUse use = TakenDevices(node);
  const DeviceSet taken = use.InUse();
  for (const DeviceRequest& request : entry_.shape.devices) {
    const auto kind = state_.interner().FindKind(request.kind);
    for (const DeviceKindSet& set : node.kinds) {
      if (!kind.has_value() || set.kind != *kind) continue;
      if (request.share == 0) {
        count += Difference(set.devices, taken).Count();
        continue;
      }
      for (size_t i = 0; i < node.spec.devices.size(); ++i) {
        DeviceUse more;
        more.shared.push_back({static_cast<uint8_t>(i), 1, ShareOn(node.spec.devices[i], request)});
        if (set.devices.Has(i) && HasRoom(node, use, more)) ++count;
      }
    }
  }
  return count;
}

void Counter::Look(const Node& node) {
  const Offer empty{.node = node, .free = node.capacity, .used = {}};
  const Mask is = Rejects(node, empty);
  Mask rejects = is;
  const Resources free = FreeOf(node);
  const DeviceUse used = TakenDevices(node);
  const Offer now{.node = node, .free = free, .used = used};
  int64_t fits = std::min(FitsIn(now), TaskRoom(node));
  // A filter may depend on what runs there: that also counts as a lack of free room.
  const bool by_use = is == 0 && !Passes(now);
  if (fits == 0 || by_use) rejects |= free_;
  if (by_use) fits = 0;

  Resources left = free;
  DeviceUse kept = used;
  const bool any_kept =
      reservations_.any() && reservations_.Withhold(node, job_, window_, &left, &kept).has_value();
  const int64_t fit_left = any_kept ? std::min(fits, FitsIn({node, left, kept})) : fits;
  if (fits > 0 && fit_left == 0) rejects |= reserved_;

  const DomainIndex domain = limit_.has_value() ? limit_->tree->LowestOf(node.id) : kRootDomain;
  Alike& alike = alike_[{domain, rejects}];
  const int64_t devices = FreeDevices(node);
  ++alike.nodes;
  alike.devices += devices;
  const int64_t fit_empty = std::min(FitsIn(empty), TaskRoomIfEmpty(node));
  alike.fit_unlinked += links_ == 0 ? fit_empty : FitsIn(empty, unlinked_devices_);
  alike.fit_empty += fit_empty;
  alike.fit_free += fits;
  alike.fit_left += fit_left;
  if (is == 0) largest_block_ = std::max(largest_block_, devices);
}

// How many tasks these nodes would hold under the chosen constraints only.
int64_t Counter::Holds(const Alike& alike, Mask chosen) const {
  if ((chosen & reserved_) != 0) return alike.fit_left;
  if ((chosen & free_) != 0) return alike.fit_free;
  if ((chosen & links_) != 0) return alike.fit_empty;
  if ((chosen & size_) != 0) return alike.fit_unlinked;
  return alike.nodes > 0 ? needed_ : 0;
}

// The sum for each domain, including all nodes below it.
std::vector<int64_t> Counter::InDomains(
    const std::function<int64_t(Mask, const Alike&)>& of) const {
  std::vector<int64_t> sums(limit_->tree->domains().size(), 0);
  for (const auto& [key, alike] : alike_) sums[key.first] += of(key.second, alike);
  for (size_t d = sums.size(); d-- > 1;) sums[limit_->tree->domains()[d].parent] += sums[d];
  return sums;
}

// Over all nodes, or over those of the best domain if topology is chosen.
int64_t Counter::HoldsTogether(Mask chosen) const {
  const auto of = [&](Mask rejects, const Alike& alike) {
    return (rejects & chosen) == 0 ? Holds(alike, chosen) : 0;
  };
  int64_t holds = 0;
  if ((chosen & topology_) == 0) {
    for (const auto& [key, alike] : alike_) {
      holds += of(key.second, alike);
      if (holds >= needed_) break;
    }
    return holds;
  }
  const std::vector<int64_t> sums = InDomains(of);
  for (size_t d = 0; d < sums.size(); ++d) {
    if (limit_->may[d]) holds = std::max(holds, sums[d]);
  }
  return holds;
}

// Rejects nodes outside every allowed domain that could hold all tasks when empty.
void Counter::RejectByTopology() {
  const std::vector<int64_t> empty =
      InDomains([](Mask, const Alike& alike) { return alike.fit_empty; });
  const TopologyTree& tree = *limit_->tree;
  const auto could = [&](DomainIndex lowest) {
    for (DomainIndex d = lowest;; d = tree.At(d).parent) {
      if (limit_->may[d] && empty[d] >= needed_) return true;
      if (d == kRootDomain) return false;
    }
  };
  std::map<std::pair<DomainIndex, Mask>, Alike> rejected;
  for (const auto& [key, alike] : alike_) {
    const Mask mask = could(key.first) ? key.second : key.second | topology_;
    rejected.emplace(std::pair(key.first, mask), alike);
  }
  alike_ = std::move(rejected);
}

// "reserved" counts on top of running tasks, so it implies "free".
Mask Counter::FewestBlocking() const {
  const auto everything = static_cast<Mask>((Mask{1} << names_.size()) - 1);
  Mask best = 0;
  int fewest = static_cast<int>(names_.size()) + 1;
  for (Mask chosen = 1; chosen <= everything; ++chosen) {
    const int count = __builtin_popcount(chosen);
    if (count >= fewest || ((chosen & reserved_) != 0 && (chosen & free_) == 0)) continue;
    if (HoldsTogether(chosen) >= needed_) continue;
    fewest = count;
    best = chosen;
  }
  return best;
}

std::vector<std::string> Counter::Blocking() const {
  std::vector<std::string> names;
  const Mask best = FewestBlocking();
  for (size_t i = 0; i < names_.size(); ++i) {
    if ((best >> i & 1U) != 0) names.push_back(names_[i]);
  }
  return names;
}

GroupConstraints Counter::Finish() {
  if (limit_.has_value()) RejectByTopology();
  GroupConstraints result;
  result.group = group_;
  result.needed_tasks = needed_;
  for (const std::string& name : names_) result.constraints.emplace_back().name = name;
  for (const auto& [key, alike] : alike_) {
    const Mask rejects = key.second;
    result.nodes += alike.nodes;
    result.devices += alike.devices;
    bool first = true;
    for (size_t i = 0; i < names_.size(); ++i) {
      if ((rejects >> i & 1U) == 0) continue;
      ConstraintCount& count = result.constraints[i];
      count.nodes_alone += alike.nodes;
      count.devices_alone += alike.devices;
      if (!std::exchange(first, false)) continue;
      count.nodes_in_order += alike.nodes;
      count.devices_in_order += alike.devices;
    }
    if (rejects != 0) continue;
    result.nodes_left += alike.nodes;
    if (!limit_.has_value()) {
      result.tasks_left = std::min(needed_, result.tasks_left + alike.fit_left);
    }
  }
  if (limit_.has_value()) {
    const auto everything = static_cast<Mask>((Mask{1} << names_.size()) - 1);
    result.tasks_left = std::min(needed_, HoldsTogether(everything));
  }
  result.largest_block = largest_block_;
  result.blocking = Blocking();
  return result;
}

}  // namespace

GroupConstraints CountConstraints(const ClusterState& state, const Policies& policies,
                                  Reservations& reservations, const Job& job, uint32_t group,
                                  int64_t needed_tasks, Time now,
                                  const std::optional<TopologyLimit>& limit, uint64_t* work) {
  Counter counter(state, policies, reservations, job, group, needed_tasks, now, limit);
  state.nodes().ForEach([&](NodeId, const Node& node) { counter.Look(node); });
  *work += state.nodes().size();
  return counter.Finish();
}

}  // namespace berth
