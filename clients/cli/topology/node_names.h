// Expands lists of names in sources, and converts names of nodes to those of Berth.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_NODE_NAMES_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_NODE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Splits at the commas outside of brackets: "a[1-2,4], b" -> "a[1-2,4]", "b".
std::vector<absl::string_view> SplitNameList(absl::string_view list);

// Expands hostlists and counts the names, so that a few bytes of a hostile source cannot become
// gigabytes. Use one object for each import.
class NameLists {
 public:
  // "a[1-3,07-09]b[0-1],c" -> a1b0 a1b1 ... c. A comma in brackets does not separate names.
  // Empty parts are refused, and so are more than kMaxExpandedNames names in total.
  absl::StatusOr<std::vector<std::string>> Expand(absl::string_view list);
  // Likewise for nodes: converts to lower case, as in Berth, and refuses names that are not DNS
  // names.
  absl::StatusOr<std::vector<std::string>> ExpandNodes(absl::string_view list);

  // "3 node names have capital letters ...", or "".
  std::string Warning() const;

 private:
  size_t expanded_ = 0;
  size_t lowered_ = 0;
};

// In lower case; "" if the result is not a DNS name.
std::string NodeNameFrom(absl::string_view text);

// The reverse, for people: "n01 n02 n03 x" -> "n[01-03]", "x". Sorted by name. Names are folded if
// they end with consecutive numbers of equal width.
std::vector<std::string> FoldNames(std::vector<std::string> names);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_NODE_NAMES_H_
