#include "clients/cli/topology/names.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace berth {
namespace {

constexpr size_t kHashBytes = 8;

std::string WithHash(absl::string_view name, absl::string_view hashed) {
  std::string head(name.substr(0, kMaxLabelBytes - kHashBytes - 1));
  while (!head.empty() && head.back() == '-') head.pop_back();
  return absl::StrCat(head, "-", ShortHash(hashed));
}

const std::string& BaseName(const NodeGroup& group) {
  return group.base_name.empty() ? group.id : group.base_name;
}

std::string UniqueText(const NodeGroup& group) { return absl::StrCat(group.kind, "/", group.id); }

class Namer {
 public:
  Namer(const std::vector<NodeGroup>& groups, const std::vector<v1::HyperNode>& present,
        absl::string_view prefix)
      : groups_(groups), present_(present), prefix_(prefix), names_(groups.size()) {}

  absl::StatusOr<std::vector<std::string>> Run() {
    std::vector<size_t> named;
    for (size_t i = 0; i < groups_.size(); ++i) {
      ids_.emplace(std::make_pair(groups_[i].kind, groups_[i].id), i);
      if (!groups_[i].opaque) named.push_back(i);
    }
    NameFromSource(named);
    for (size_t begin = 0; begin < groups_.size();) {  // by kind and tier: children are named first
      size_t end = begin;
      std::vector<size_t> opaque;
      for (; end < groups_.size() && SameTier(groups_[begin], groups_[end]); ++end) {
        if (groups_[end].opaque) opaque.push_back(end);
      }
      KeepPresentNames(opaque);
      NameFromSource(opaque);
      begin = end;
    }
    if (!error_.ok()) return error_;
    return std::move(names_);
  }

 private:
  static bool SameTier(const NodeGroup& a, const NodeGroup& b) {
    return a.kind == b.kind && a.tier == b.tier;
  }

  void Assign(size_t i, std::string name) {
    const auto inserted = taken_.emplace(name, i);
    if (!inserted.second && error_.ok()) {
      error_ = absl::InvalidArgumentError(absl::StrCat(
          "\"", groups_[i].id, "\" and \"", groups_[inserted.first->second].id,
          "\" would both become \"", name, "\": give one of them another name in the source"));
    }
    names_[i] = std::move(name);
  }

  std::string PlainName(size_t i) const {
    return DnsLabelFrom(absl::StrCat(prefix_, BaseName(groups_[i])));
  }
  // The smaller, the better the claim on the plain name: first exactly the name of the source, then
  // by kind.
  std::pair<int, std::string> Claim(size_t i) const {
    const bool exact = PlainName(i) == absl::StrCat(prefix_, BaseName(groups_[i]));
    return {exact ? 0 : 1, groups_[i].kind};
  }

  // Names the groups of `which` that have no name yet.
  void NameFromSource(const std::vector<size_t>& which) {
    std::map<std::string, std::vector<size_t>> wanted;
    for (const size_t i : which) {
      if (names_[i].empty()) wanted[PlainName(i)].push_back(i);
    }
    for (auto& [name, claimants] : wanted) {
      std::stable_sort(claimants.begin(), claimants.end(),
                       [&](size_t a, size_t b) { return Claim(a) < Claim(b); });
      const bool free = taken_.find(name) == taken_.end();
      const bool clear = claimants.size() == 1 || Claim(claimants[0]) < Claim(claimants[1]);
      for (const size_t i : claimants) {
        const bool keeps = free && clear && i == claimants.front();
        Assign(i, keeps ? name : WithHash(name, UniqueText(groups_[i])));
      }
    }
  }

  // For one kind and tier (NameGroups, 2).
  void KeepPresentNames(const std::vector<size_t>& opaque) {
    if (opaque.empty()) return;
    const NodeGroup& first = groups_[opaque.front()];
    absl::flat_hash_map<std::string, size_t> holder;  // of each member, among `present_`
    for (size_t p = 0; p < present_.size(); ++p) {
      const v1::HyperNodeSpec& spec = present_[p].spec();
      const std::string& kind = spec.kind().empty() ? network_ : spec.kind();
      if (kind != first.kind || spec.tier() != first.tier) continue;
      for (const auto& member : spec.members()) holder.emplace(MemberKey(member), p);
    }
    std::vector<Overlap> overlaps;
    for (const size_t i : opaque) CountOverlaps(i, holder, &overlaps);
    std::sort(overlaps.begin(), overlaps.end());
    for (const Overlap& overlap : overlaps) {
      if (!names_[overlap.group].empty() || taken_.contains(overlap.name)) continue;
      Assign(overlap.group, overlap.name);
    }
  }

  struct Overlap {
    size_t common;
    std::string name;
    size_t group;
    bool operator<(const Overlap& other) const {
      return std::tie(other.common, name, group) < std::tie(common, other.name, other.group);
    }
  };
  void CountOverlaps(size_t i, const absl::flat_hash_map<std::string, size_t>& holder,
                     std::vector<Overlap>* overlaps) const {
    std::map<size_t, size_t> common;
    const auto count = [&](const std::string& key) {
      const auto found = holder.find(key);
      if (found != holder.end()) ++common[found->second];
    };
    for (const std::string& node : groups_[i].nodes) count("n " + node);
    for (const std::string& id : groups_[i].children)
      count("h " + names_[ids_.at(std::make_pair(groups_[i].kind, id))]);
    for (const auto& [p, members] : common) overlaps->push_back({members, present_[p].name(), i});
  }
  static std::string MemberKey(const v1::HyperNodeSpec::Member& member) {
    return absl::StrCat(member.type() == v1::HyperNodeSpec::Member::HYPER_NODE ? "h " : "n ",
                        member.exact());
  }

  const std::string network_ = kNetworkKind;
  const std::vector<NodeGroup>& groups_;
  const std::vector<v1::HyperNode>& present_;
  const std::string prefix_;
  std::vector<std::string> names_;  // parallel to groups_; "": not yet
  absl::flat_hash_map<std::pair<std::string, std::string>, size_t> ids_;
  absl::flat_hash_map<std::string, size_t> taken_;
  absl::Status error_;
};

}  // namespace

std::string ShortHash(absl::string_view text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return absl::StrFormat("%08x", hash);
}

std::string DnsLabelFrom(absl::string_view text) {
  if (IsDnsLabel(text)) return std::string(text);
  std::string label;
  for (const char raw : text) {
    const char c = absl::ascii_tolower(static_cast<unsigned char>(raw));
    if (IsLowerAlnum(c)) {
      label.push_back(c);
    } else if (!label.empty() && label.back() != '-') {
      label.push_back('-');
    }
  }
  while (!label.empty() && label.back() == '-') label.pop_back();
  if (label.empty()) return WithHash("hn", text);
  return label.size() > kMaxLabelBytes ? WithHash(label, text) : label;
}

absl::StatusOr<std::vector<std::string>> NameGroups(const std::vector<NodeGroup>& groups,
                                                    const std::vector<v1::HyperNode>& present,
                                                    absl::string_view prefix) {
  return Namer(groups, present, prefix).Run();
}

}  // namespace berth
