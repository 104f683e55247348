#include "clients/cli/topology/hosts.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {

HostFilter::HostFilter(const ImportInput& input) : known_only_(input.known_nodes_only) {
  for (const LabelledNode& node : input.nodes) known_.insert(node.name);
}

bool HostFilter::Counts(const AdapterOwner& owner) {
  ++seen_;
  switch (owner.kind) {
    case AdapterOwner::Kind::kUnnamed:
      ++unnamed_;
      return false;
    case AdapterOwner::Kind::kAggregation:
      ++aggregation_;
      return false;
    case AdapterOwner::Kind::kManager:
      ++managers_;
      return false;
    case AdapterOwner::Kind::kHost:
      break;
  }
  if (!known_only_ || known_.count(owner.node) > 0) return true;
  unknown_.insert(owner.node);
  return false;
}

// Managers and aggregation nodes are found at any switch.
bool HostFilter::IsForeign(const AdapterOwner& owner) const {
  return owner.kind == AdapterOwner::Kind::kHost || owner.kind == AdapterOwner::Kind::kUnnamed;
}

void HostFilter::AddWarnings(const std::string& what, std::vector<std::string>* warnings) const {
  if (unnamed_ > 0) {
    warnings->push_back(absl::StrCat(
        unnamed_, " of ", Counted(seen_, what),
        " could not be mapped to a node: ", "their descriptions name no host; use --ports"));
  }
  std::vector<std::string> others;
  if (aggregation_ > 0) others.push_back(Counted(aggregation_, "aggregation node"));
  if (managers_ > 0) others.push_back(Counted(managers_, what) + " of UFM servers");
  if (!others.empty()) warnings->push_back("left out: " + absl::StrJoin(others, ", "));
  if (!unknown_.empty()) {
    warnings->push_back(absl::StrCat("left out because they are not nodes of this cluster: ",
                                     SomeOf({unknown_.begin(), unknown_.end()})));
  }
}

}  // namespace berth
