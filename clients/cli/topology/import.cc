#include "clients/cli/topology/import.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/names.h"
#include "clients/cli/topology/tree.h"
#include "google/protobuf/util/message_differencer.h"

namespace berth {
namespace {

using Member = v1::HyperNodeSpec::Member;
using google::protobuf::util::MessageDifferencer;

void AddMember(Member::Type type, const std::string& name, v1::HyperNodeSpec* spec) {
  Member& member = *spec->add_members();
  member.set_type(type);
  member.set_exact(name);
}

v1::HyperNode MakeHyperNode(const NodeGroup& group, std::string name, const std::string& source,
                            const std::map<std::string, std::string>& names) {
  v1::HyperNode hyper_node;
  hyper_node.set_name(std::move(name));
  v1::HyperNodeSpec& spec = *hyper_node.mutable_spec();
  spec.set_tier(group.tier);
  spec.set_tier_name(group.tier_name);
  spec.set_kind(group.kind);
  spec.set_bandwidth_gbps(group.bandwidth_gbps);
  spec.set_source(source);
  for (const std::string& node : group.nodes) AddMember(Member::NODE, node, &spec);
  std::vector<std::string> children;
  for (const std::string& id : group.children) children.push_back(names.at(id));
  std::sort(children.begin(), children.end());
  for (const std::string& child : children) AddMember(Member::HYPER_NODE, child, &spec);
  return hyper_node;
}

std::vector<v1::HyperNode> OfSource(const std::vector<v1::HyperNode>& all,
                                    const std::string& source) {
  std::vector<v1::HyperNode> own;
  for (const v1::HyperNode& hyper_node : all) {
    if (hyper_node.spec().source() == source) own.push_back(hyper_node);
  }
  return own;
}

bool EarlierMember(const Member& a, const Member& b) {
  const auto key = [](const Member& m) {
    return std::make_tuple(static_cast<int>(m.type()), m.exact(), m.regex(), m.label());
  };
  return key(a) < key(b);
}

std::vector<Member> SortedMembers(const v1::HyperNode& hyper_node) {
  std::vector<Member> members(hyper_node.spec().members().begin(),
                              hyper_node.spec().members().end());
  std::sort(members.begin(), members.end(), EarlierMember);
  return members;
}

// The normal form for comparison and output: defaults filled in, members sorted, without fields
// that the server adds.
v1::HyperNode Normal(const v1::HyperNode& hyper_node) {
  v1::HyperNode normal;
  normal.set_name(hyper_node.name());
  *normal.mutable_spec() = hyper_node.spec();
  v1::HyperNodeSpec& spec = *normal.mutable_spec();
  if (spec.kind().empty()) spec.set_kind(kNetworkKind);
  if (spec.health() == v1::HyperNodeSpec::OK) spec.clear_health();
  spec.clear_members();
  for (Member& member : SortedMembers(hyper_node)) *spec.add_members() = std::move(member);
  return normal;
}

// Keeps the present values that an import does not know.
v1::HyperNode WithPresent(const v1::HyperNode& wanted, const v1::HyperNode& present) {
  v1::HyperNode merged = wanted;
  v1::HyperNodeSpec& spec = *merged.mutable_spec();
  spec.set_health(present.spec().health());
  spec.set_health_reason(present.spec().health_reason());
  spec.set_latency_us(present.spec().latency_us());
  if (spec.bandwidth_gbps() == 0) spec.set_bandwidth_gbps(present.spec().bandwidth_gbps());
  return merged;
}

std::string MaintainerText(const v1::HyperNode& hyper_node) {
  const std::string& source = hyper_node.spec().source();
  return source.empty() ? "created manually" : absl::StrCat("maintained by ", source);
}

bool DisplayedBefore(const v1::HyperNode& a, const v1::HyperNode& b) {
  return std::make_tuple(a.spec().kind(), a.spec().tier(), a.name()) <
         std::make_tuple(b.spec().kind(), b.spec().tier(), b.name());
}

template <class Range>
void SortForDisplay(Range* hyper_nodes) {
  std::sort(hyper_nodes->begin(), hyper_nodes->end(), DisplayedBefore);
}

class Comparison {
 public:
  Comparison(const std::string& source, const std::vector<v1::HyperNode>& present)
      : source_(source) {
    for (const v1::HyperNode& hyper_node : present) present_.emplace(hyper_node.name(), hyper_node);
    difference_.set_source(source);
  }

  void Add(const v1::HyperNode& hyper_node) {
    const v1::HyperNode wanted = Normal(hyper_node);
    const auto found = present_.find(wanted.name());
    if (found == present_.end()) {
      *difference_.add_created() = wanted;
      return;
    }
    const v1::HyperNode present = Normal(found->second);
    seen_.push_back(wanted.name());
    if (present.spec().source() != source_) {
      taken_.push_back(absl::StrCat("\"", wanted.name(), "\" (", MaintainerText(present), ")"));
    } else if (present.spec().kind() != wanted.spec().kind()) {
      wrong_kind_.push_back(absl::StrCat("\"", wanted.name(), "\" (", present.spec().kind(),
                                         ", would be ", wanted.spec().kind(), ")"));
    } else {
      Update(present, WithPresent(wanted, present), found->second.etag());
    }
  }

  absl::StatusOr<cli::v1::TopologyDifference> Finish() {
    if (!taken_.empty()) {
      return absl::AlreadyExistsError(absl::StrCat(
          "names in use by HyperNodes that this import does not maintain: ", SomeOf(taken_),
          "; rename them, or import with --prefix"));
    }
    if (!wrong_kind_.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("kinds cannot be changed: ", SomeOf(wrong_kind_),
                       "; delete them first, or import under another --name and --prefix"));
    }
    std::sort(seen_.begin(), seen_.end());
    for (const auto& [name, hyper_node] : present_) {
      const bool stays = std::binary_search(seen_.begin(), seen_.end(), name);
      if (!stays && hyper_node.spec().source() == source_)
        *difference_.add_deleted() = Normal(hyper_node);
    }
    std::sort(difference_.mutable_updated()->begin(), difference_.mutable_updated()->end(),
              [](const auto& a, const auto& b) { return DisplayedBefore(a.after(), b.after()); });
    SortForDisplay(difference_.mutable_created());
    SortForDisplay(difference_.mutable_deleted());
    return std::move(difference_);
  }

 private:
  void Update(const v1::HyperNode& before, v1::HyperNode after, const std::string& etag) {
    if (MessageDifferencer::Equals(before, after)) {
      difference_.set_unchanged(difference_.unchanged() + 1);
      return;
    }
    auto& update = *difference_.add_updated();
    const std::vector<Member> had = SortedMembers(before);
    const std::vector<Member> has = SortedMembers(after);
    std::vector<Member> gained, lost;
    std::set_difference(has.begin(), has.end(), had.begin(), had.end(), std::back_inserter(gained),
                        EarlierMember);
    std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(lost),
                        EarlierMember);
    *update.mutable_gained() = {gained.begin(), gained.end()};
    *update.mutable_lost() = {lost.begin(), lost.end()};
    *update.mutable_before() = before;
    after.set_etag(etag);  // do not overwrite concurrent changes
    *update.mutable_after() = std::move(after);
  }

  const std::string source_;
  std::map<std::string, v1::HyperNode> present_;
  std::vector<std::string> seen_, taken_, wrong_kind_;
  cli::v1::TopologyDifference difference_;
};

}  // namespace

absl::StatusOr<Imported> ReadTopology(const TopologyFormat& format, const ImportInput& input,
                                      const std::string& kind) {
  absl::StatusOr<Imported> imported = format.read(input);
  if (!imported.ok()) return imported;
  for (NodeGroup& group : imported->groups) {
    if (group.kind.empty()) group.kind = kind.empty() ? format.kind : kind;
  }
  const absl::Status status = MakeTrees(&*imported);
  if (!status.ok()) return status;
  if (!imported->groups.empty()) return imported;
  imported->warnings.insert(imported->warnings.begin(), "nothing to import");
  return absl::InvalidArgumentError(absl::StrJoin(imported->warnings, "\n"));
}

absl::StatusOr<std::vector<v1::HyperNode>> MakeHyperNodes(
    const Imported& imported, const NamingOptions& options,
    const std::vector<v1::HyperNode>& present) {
  const std::vector<NodeGroup>& groups = imported.groups;
  const auto names = NameGroups(groups, OfSource(present, options.source), options.prefix);
  if (!names.ok()) return names.status();
  std::map<std::string, std::map<std::string, std::string>> by_kind;  // id -> name
  for (size_t i = 0; i < groups.size(); ++i) by_kind[groups[i].kind][groups[i].id] = (*names)[i];
  std::vector<v1::HyperNode> made;
  for (size_t i = 0; i < groups.size(); ++i) {
    made.push_back(MakeHyperNode(groups[i], (*names)[i], options.source, by_kind[groups[i].kind]));
  }
  return made;
}

absl::StatusOr<cli::v1::TopologyDifference> Compare(const std::vector<v1::HyperNode>& wanted,
                                                    const std::string& source,
                                                    const std::vector<v1::HyperNode>& present) {
  Comparison comparison(source, present);
  for (const v1::HyperNode& hyper_node : wanted) comparison.Add(hyper_node);
  return comparison.Finish();
}

}  // namespace berth
