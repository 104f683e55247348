// Converts HyperNodes and topology constraints of scenarios.
#include <utility>

#include "offline/sim/names.h"
#include "offline/sim/specs.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

using Member = HyperNodeMember;

// The part of the `index`-th of `count` equal parts.
absl::StatusOr<std::vector<std::string>> PartOf(const RepeatedPtrField<std::string>& patterns,
                                                size_t index, size_t count,
                                                const std::string& path) {
  const auto all = ExpandPlaces({patterns.begin(), patterns.end()});
  if (!all.ok()) return Under(path, all.status());
  if (all->size() % count != 0) {
    return Wrong(path, all->size(), " cannot be divided among ", count, " HyperNodes");
  }
  const auto each = static_cast<ptrdiff_t>(all->size() / count);
  const auto begin = all->begin() + each * static_cast<ptrdiff_t>(index);
  return std::vector<std::string>(begin, begin + each);
}

void AddMembers(const std::vector<std::string>& texts, Member::Type type, Member::Match match,
                HyperNodeSpec* spec) {
  for (const std::string& text : texts) {
    spec->members.push_back({.type = type, .match = match, .text = text});
  }
}

}  // namespace

absl::StatusOr<std::vector<HyperNodeSpec>> ToHyperNodeSpecs(const sim::v1::HyperNode& hyper_node,
                                                            const std::string& path) {
  const auto names = ExpandNamePattern(hyper_node.name());
  if (!names.ok()) return Under(path + ".name", names.status());
  std::vector<HyperNodeSpec> specs;
  for (size_t i = 0; i < names->size(); ++i) {
    HyperNodeSpec& spec = specs.emplace_back();
    spec.name = (*names)[i];
    if (!hyper_node.kind().empty()) spec.kind = hyper_node.kind();
    spec.tier = hyper_node.tier() == 0 ? 1 : hyper_node.tier();
    spec.tier_name = hyper_node.tier_name();
    const auto nodes = PartOf(hyper_node.nodes(), i, names->size(), path + ".nodes");
    const auto below = PartOf(hyper_node.hyper_nodes(), i, names->size(), path + ".hyper_nodes");
    if (!nodes.ok() || !below.ok()) return nodes.ok() ? below.status() : nodes.status();
    AddMembers(*nodes, Member::Type::kNode, Member::Match::kExact, &spec);
    AddMembers({hyper_node.regexes().begin(), hyper_node.regexes().end()}, Member::Type::kNode,
               Member::Match::kRegex, &spec);
    AddMembers({hyper_node.labels().begin(), hyper_node.labels().end()}, Member::Type::kNode,
               Member::Match::kLabel, &spec);
    AddMembers(*below, Member::Type::kHyperNode, Member::Match::kExact, &spec);
    if (hyper_node.health() == v1::HyperNodeSpec::DEGRADED) spec.health = DomainHealth::kDegraded;
    spec.health_reason = hyper_node.health_reason();
    spec.bandwidth_gbps = hyper_node.bandwidth_gbps();
    spec.latency_us = hyper_node.latency_us();
  }
  return specs;
}

}  // namespace berth
