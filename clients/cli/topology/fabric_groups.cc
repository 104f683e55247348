#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/cli/topology/fabric.h"
#include "clients/cli/topology/tree.h"

namespace berth {
namespace {

// The most frequent speed, the lowest if there are several. A cable that trained down changes
// nothing.
int64_t UsualSpeed(const std::map<int64_t, int>& speeds) {
  int64_t usual = 0;
  int most = 0;
  for (const auto& [speed, count] : speeds) {
    if (count > most) {
      usual = speed;
      most = count;
    }
  }
  return usual;
}

// A union-find over `count` items. The smallest item of each set represents it.
class Sets {
 public:
  explicit Sets(size_t count) : above_(count) {
    for (size_t i = 0; i < count; ++i) above_[i] = i;
  }
  size_t Find(size_t i) {
    while (above_[i] != i) i = above_[i] = above_[above_[i]];
    return i;
  }
  void Join(size_t a, size_t b) {
    a = Find(a);
    b = Find(b);
    above_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> above_;
};

}  // namespace

// One computation. Switches have numbers in the order of their ids.
class FabricGroups {
 public:
  FabricGroups(const Fabric& fabric, bool prefix_ids, Imported* imported)
      : fabric_(fabric), prefix_ids_(prefix_ids), imported_(*imported) {
    for (const auto& [id, one] : fabric.switches_) {
      numbers_.emplace(id, switches_.size());
      ids_.push_back(&id);
      switches_.push_back(&one);
    }
    group_of_.assign(switches_.size(), kNone);
    MeasureDistances();
  }

  void Run() {
    std::vector<Tier> groups = MakeLeafGroups();
    bool is_new = true;
    int tier = 1;
    for (int distance = 1; !groups.empty(); ++distance) {
      if (is_new) {
        for (const Tier& group : groups) imported_.groups.push_back(group.group);
      }
      groups = Above(groups, distance, tier + 1, &is_new);
      if (is_new) ++tier;
    }
    if (breaks_ > kMaxReportedBreaks) {
      imported_.warnings.push_back(
          absl::StrCat("not a tree: ", breaks_ - kMaxReportedBreaks, " more cases"));
    }
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  static constexpr int kMaxReportedBreaks = 3;
  struct Tier {
    NodeGroup group;
    std::vector<size_t> switches;  // those farthest from the hosts
  };
  // Groups that become one, and the switches that they share.
  struct Together {
    std::vector<size_t> members, switches;
  };

  void MeasureDistances() {
    distances_.assign(switches_.size(), 0);
    std::deque<size_t> reached;
    for (size_t i = 0; i < switches_.size(); ++i) {
      if (!switches_[i]->is_leaf()) continue;
      distances_[i] = 1;
      reached.push_back(i);
    }
    for (; !reached.empty(); reached.pop_front()) {
      for (const std::string& neighbour : switches_[reached.front()]->neighbours) {
        const size_t next = numbers_.at(neighbour);
        if (distances_[next] != 0) continue;
        distances_[next] = distances_[reached.front()] + 1;
        reached.push_back(next);
      }
    }
  }

  std::string Title(size_t number) const {
    const std::string& title = switches_[number]->title;
    return title.empty() || title == *ids_[number] ? *ids_[number]
                                                   : absl::StrCat(*ids_[number], " (", title, ")");
  }

  Tier MakeGroup(int tier, size_t first_switch) const {
    Tier made;
    made.group.opaque = true;
    made.group.tier = tier;
    const std::string name = DefaultTierName(tier);
    const std::string prefix = name.empty() ? absl::StrCat("tier", tier) : name;
    made.group.id =
        prefix_ids_ ? absl::StrCat(prefix, "-", *ids_[first_switch]) : *ids_[first_switch];
    return made;
  }

  std::vector<Tier> MakeLeafGroups() {
    Sets sets(switches_.size());
    for (const auto& [name, host] : fabric_.hosts_) {
      for (const std::string& leaf : host.switches)
        sets.Join(numbers_.at(*host.switches.begin()), numbers_.at(leaf));
    }
    std::map<size_t, Tier> groups;
    for (const auto& [name, host] : fabric_.hosts_) {
      const size_t first = sets.Find(numbers_.at(*host.switches.begin()));
      const auto inserted = groups.emplace(first, Tier());
      if (inserted.second) inserted.first->second = MakeGroup(1, first);
      inserted.first->second.group.nodes.push_back(name);
    }
    for (size_t i = 0; i < switches_.size(); ++i) {
      const auto found = groups.find(sets.Find(i));
      if (found != groups.end()) found->second.switches.push_back(i);
    }
    std::vector<Tier> list;
    for (auto& [first, tier] : groups) {
      std::map<int64_t, int> speeds;
      for (const size_t i : tier.switches) {
        for (const auto& [speed, count] : switches_[i]->host_speeds) speeds[speed] += count;
      }
      tier.group.bandwidth_gbps = UsualSpeed(speeds);
      list.push_back(std::move(tier));
    }
    return list;
  }

  // The groups above `groups`, whose switches are `distance` away from leaf switches. If no two of
  // them merge (`is_new` false), these are the same groups, seen from the switches above.
  std::vector<Tier> Above(const std::vector<Tier>& groups, int distance, int tier, bool* is_new) {
    std::fill(group_of_.begin(), group_of_.end(), kNone);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const size_t i : groups[g].switches) group_of_[i] = g;
    }
    std::map<size_t, std::set<size_t>> reached_by;  // groups, by the switch above
    std::vector<bool> is_open(groups.size(), true);
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const size_t i : groups[g].switches)
        VisitNeighbors(i, g, distance, &reached_by, &is_open);
    }
    Sets sets(groups.size());
    for (const auto& [number, below] : reached_by) {
      for (const size_t g : below) sets.Join(*below.begin(), g);
    }
    std::map<size_t, Together> together;  // by the first group
    for (size_t g = 0; g < groups.size(); ++g) together[sets.Find(g)].members.push_back(g);
    for (const auto& [number, below] : reached_by)
      together[sets.Find(*below.begin())].switches.push_back(number);
    CloseUnshared(groups, together, reached_by, &is_open);
    return MakeAbove(groups, together, is_open, tier, is_new);
  }

  void VisitNeighbors(size_t at, size_t group, int distance,
                      std::map<size_t, std::set<size_t>>* reached_by, std::vector<bool>* is_open) {
    for (const std::string& neighbour : switches_[at]->neighbours) {
      const size_t next = numbers_.at(neighbour);
      if (distances_[next] > distance) (*reached_by)[next].insert(group);
      if (group_of_[next] == kNone || group_of_[next] == group) continue;
      if ((*is_open)[group] && (*is_open)[group_of_[next]]) {
        Warn(absl::StrCat("switches ", Title(at), " and ", Title(next),
                          " of different groups are connected to each other"));
      }
      (*is_open)[group] = (*is_open)[group_of_[next]] = false;
    }
  }

  // Closes merged groups of which some two share no switch.
  void CloseUnshared(const std::vector<Tier>& groups, const std::map<size_t, Together>& together,
                     const std::map<size_t, std::set<size_t>>& reached_by,
                     std::vector<bool>* is_open) {
    std::vector<std::vector<const std::set<size_t>*>> meets(groups.size());
    for (const auto& [number, below] : reached_by) {
      for (const size_t g : below) meets[g].push_back(&below);
    }
    for (const auto& [first, one] : together) {
      bool shared = true;
      for (const size_t g : one.members) {
        const size_t stranger = FirstUnconnected(g, one.members, meets[g]);
        if (stranger == kNone) continue;
        if (std::exchange(shared, false)) {
          Warn(absl::StrCat(groups[g].group.id, " and ", groups[stranger].group.id,
                            " share no switch, though both share one with others"));
        }
      }
      bool open = shared;
      for (const size_t g : one.members) open = open && (*is_open)[g];
      for (const size_t g : one.members) (*is_open)[g] = open;
    }
  }
  // The first of `members` that shares no switch with `group`.
  static size_t FirstUnconnected(size_t group, const std::vector<size_t>& members,
                                 const std::vector<const std::set<size_t>*>& meets) {
    for (const std::set<size_t>* below : meets) {
      if (below->size() == members.size()) return kNone;  // the usual case: one switch reaches all
    }
    std::set<size_t> seen = {group};
    for (const std::set<size_t>* below : meets) seen.insert(below->begin(), below->end());
    for (const size_t member : members) {
      if (seen.count(member) == 0) return member;
    }
    return kNone;
  }

  void Warn(const std::string& why) {
    if (++breaks_ > kMaxReportedBreaks) return;
    imported_.warnings.push_back(absl::StrCat(
        "not a tree: ", why, "; no groups are built above these and the groups that reach them"));
  }

  std::vector<Tier> MakeAbove(const std::vector<Tier>& groups,
                              const std::map<size_t, Together>& together,
                              const std::vector<bool>& is_open, int tier, bool* is_new) const {
    std::vector<Tier> list;
    *is_new = false;
    for (const auto& [first, one] : together)
      *is_new = *is_new || (is_open[first] && one.members.size() > 1);
    for (const auto& [first, one] : together) {
      if (!is_open[first] || one.switches.empty()) continue;
      Tier made = *is_new ? MakeGroup(tier, one.switches.front()) : groups[first];
      made.switches = one.switches;
      list.push_back(std::move(made));
      if (*is_new) SetChildren(groups, one, &list.back().group);
    }
    return list;
  }
  void SetChildren(const std::vector<Tier>& groups, const Together& together,
                   NodeGroup* group) const {
    std::map<int64_t, int> speeds;
    for (const size_t g : together.members) {
      group->children.push_back(groups[g].group.id);
      CountSpeeds(groups[g].switches, together.switches, &speeds);
    }
    group->bandwidth_gbps = UsualSpeed(speeds);
  }
  void CountSpeeds(const std::vector<size_t>& lower, const std::vector<size_t>& upper,
                   std::map<int64_t, int>* speeds) const {
    for (const size_t i : lower) {
      for (const auto& [neighbour, speed] : switches_[i]->cables) {
        if (speed > 0 && std::binary_search(upper.begin(), upper.end(), numbers_.at(neighbour)))
          ++(*speeds)[speed];
      }
    }
  }

  const Fabric& fabric_;
  const bool prefix_ids_;
  Imported& imported_;
  std::map<std::string, size_t> numbers_;
  std::vector<const std::string*> ids_;
  std::vector<const Fabric::Switch*> switches_;
  std::vector<int> distances_;    // 1: a leaf switch; 0: reached by no host
  std::vector<size_t> group_of_;  // of the present tier
  int breaks_ = 0;
};

void Fabric::AddGroups(bool prefix_ids, Imported* imported) const {
  FabricGroups(*this, prefix_ids, imported).Run();
}

}  // namespace berth
