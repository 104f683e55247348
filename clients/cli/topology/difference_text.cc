#include "clients/cli/topology/difference_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/node_names.h"
#include "clients/cli/topology/source.h"

namespace berth {
namespace {

using Member = v1::HyperNodeSpec::Member;

std::string Written(const Member& member) {
  switch (member.selector_case()) {
    case Member::kRegex:
      return absl::StrCat("/", member.regex(), "/");
    case Member::kLabel:
      return member.label();
    default:
      return member.exact();
  }
}

// "network tier 1 leaf".
std::string Place(const v1::HyperNodeSpec& spec) {
  return absl::StrCat(spec.kind(), " tier ", spec.tier(), spec.tier_name().empty() ? "" : " ",
                      spec.tier_name());
}

std::string Summary(const v1::HyperNodeSpec& spec) {
  const auto below = static_cast<size_t>(
      std::count_if(spec.members().begin(), spec.members().end(),
                    [](const Member& member) { return member.type() == Member::HYPER_NODE; }));
  const size_t nodes = static_cast<size_t>(spec.members_size()) - below;
  std::string text = Place(spec);
  if (below > 0) absl::StrAppend(&text, ", ", Counted(below, "hypernode"));
  if (nodes > 0) absl::StrAppend(&text, ", ", Counted(nodes, "node"));
  if (spec.bandwidth_gbps() > 0) absl::StrAppend(&text, ", ", spec.bandwidth_gbps(), " Gb/s");
  return text;
}

// Lines such as "    + node n[1-3], n7 and 5 more".
template <class Members>
std::string MemberLines(const char* sign, const Members& members) {
  std::string text;
  for (const auto& [type, noun] :
       {std::make_pair(Member::HYPER_NODE, "hypernode"), std::make_pair(Member::NODE, "node")}) {
    std::vector<std::string> names;
    for (const Member& member : members) {
      if ((member.type() == Member::HYPER_NODE) == (type == Member::HYPER_NODE))
        names.push_back(Written(member));
    }
    if (names.empty()) continue;
    const std::vector<std::string> folded = FoldNames(names);
    const size_t shown = std::min(folded.size(), kMaxNamesTold);
    absl::StrAppend(
        &text, "    ", sign, " ", noun, " ",
        absl::StrJoin(folded.begin(), folded.begin() + static_cast<ptrdiff_t>(shown), ", "));
    if (shown < folded.size())
      absl::StrAppend(&text, " .. (", Counted(names.size(), noun), " in all)");
    absl::StrAppend(&text, "\n");
  }
  return text;
}

// "; tier 1 -> 2; 200 -> 400 Gb/s": the changed fields other than members.
std::string ChangedFields(const v1::HyperNodeSpec& before, const v1::HyperNodeSpec& after) {
  std::string text;
  if (before.tier() != after.tier())
    absl::StrAppend(&text, "; tier ", before.tier(), " -> ", after.tier());
  if (before.tier_name() != after.tier_name())
    absl::StrAppend(&text, "; tier name \"", before.tier_name(), "\" -> \"", after.tier_name(),
                    "\"");
  if (before.bandwidth_gbps() != after.bandwidth_gbps())
    absl::StrAppend(&text, "; ", before.bandwidth_gbps(), " -> ", after.bandwidth_gbps(), " Gb/s");
  return text;
}

}  // namespace

std::string DifferenceText(const cli::v1::TopologyDifference& difference) {
  std::string text;
  for (const v1::HyperNode& made : difference.created()) {
    absl::StrAppend(&text, "+ ", made.name(), "  ", Summary(made.spec()), "\n",
                    MemberLines("+", made.spec().members()));
  }
  for (const auto& update : difference.updated()) {
    const v1::HyperNode& after = update.after();
    absl::StrAppend(&text, "~ ", after.name(), "  ", Place(after.spec()),
                    ChangedFields(update.before().spec(), after.spec()), "\n",
                    MemberLines("+", update.gained()), MemberLines("-", update.lost()));
  }
  for (const v1::HyperNode& gone : difference.deleted())
    absl::StrAppend(&text, "- ", gone.name(), "  ", Summary(gone.spec()), "\n");
  const int changes =
      difference.created_size() + difference.updated_size() + difference.deleted_size();
  absl::StrAppend(&text, difference.source(), ": ");
  if (changes == 0)
    return absl::StrCat(text, "no difference, ", difference.unchanged(), " unchanged\n");
  return absl::StrCat(text, difference.created_size(), " to create, ", difference.updated_size(),
                      " to change, ", difference.deleted_size(), " to delete, ",
                      difference.unchanged(), " unchanged\n");
}

}  // namespace berth
