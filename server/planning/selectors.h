// Matches nodes against the selectors of HyperNodes: exact names and labels by lookup, regular
// expressions all at once (RE2::Set), so that one node costs about as much among ten thousand
// HyperNodes as among ten.
#ifndef BERTH_SERVER_PLANNING_SELECTORS_H_
#define BERTH_SERVER_PLANNING_SELECTORS_H_

#include <re2/re2.h>
#include <re2/set.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/model/hyper_node.h"
#include "core/model/node.h"

namespace berth {

inline constexpr size_t kMaxRegexBytes = 1000;

// INVALID_ARGUMENT, with the problem in the selector's text.
absl::Status CheckSelector(const HyperNodeMember& member);

// Built once from all selectors. Not thread-safe until the last Add; afterwards Match may be called
// from any thread.
class SelectorIndex {
 public:
  // The selectors passed CheckSelector. Members that are HyperNodes are skipped.
  void Add(HyperNodeId owner, const HyperNodeSpec& spec);
  // After the last Add.
  void Finish();

  // Owners that claim the node, ascending, each once; replaces the content of `owners`.
  void Match(const NodeSpec& node, std::vector<HyperNodeId>* owners) const;

  // Every selector is an exact name: these are all the nodes that it can match.
  bool exact_only() const { return labels_.empty() && expressions_.empty(); }
  void ForEachName(absl::FunctionRef<void(const std::string&)> visit) const;

 private:
  using Owners = std::vector<HyperNodeId>;
  using Pair = std::pair<std::string, std::string>;
  struct LabelSelector {
    std::vector<Pair> others;  // in addition to the one by which it is found
    HyperNodeId owner;
  };
  void MatchLabels(const NodeSpec& node, std::vector<HyperNodeId>* owners) const;
  void MatchExpressions(const std::string& name, std::vector<HyperNodeId>* owners) const;

  absl::flat_hash_map<std::string, Owners> names_;
  // By key and value of the first pair.
  absl::flat_hash_map<std::string, absl::flat_hash_map<std::string, std::vector<LabelSelector>>>
      labels_;
  absl::flat_hash_map<std::string, Owners> expressions_;
  std::vector<const Owners*> set_owners_;  // by index in the set
  std::unique_ptr<RE2::Set> set_;
  std::vector<std::unique_ptr<RE2>> one_by_one_;  // expressions for which the set would be too
                                                  // large
};

}  // namespace berth

#endif  // BERTH_SERVER_PLANNING_SELECTORS_H_
