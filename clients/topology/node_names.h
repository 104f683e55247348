// Lists of names as sources write them, and nodes by Berth's names.
#ifndef BERTH_CLIENTS_TOPOLOGY_NODE_NAMES_H_
#define BERTH_CLIENTS_TOPOLOGY_NODE_NAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

// Expands hostlists, and counts what they stand for, so that a few bytes of a hostile source cannot
// become gigabytes. One for each import.
class NameLists {
 public:
  // "a[1-3,07-09]b[0-1],c" -> a1b0 a1b1 ... c. A comma in brackets does not part names. Empty parts
  // are refused, so are names beyond kMaxExpandedNames in all.
  absl::StatusOr<std::vector<std::string>> Expand(absl::string_view list);
  // The same, of nodes: in lower case, as Berth has them; refused where they are no DNS names.
  absl::StatusOr<std::vector<std::string>> ExpandNodes(absl::string_view list);

  // "3 node names were written with capitals ...", or "".
  std::string Warning() const;

 private:
  size_t expanded_ = 0;
  size_t lowered_ = 0;
};

// In lower case; "" if it is no DNS name even then.
std::string NodeNameFrom(absl::string_view text);

// The other way, for people: "n01 n02 n03 x" -> "n[01-03]", "x". In the order of names; numbers are
// folded that end a name, have one width and follow each other.
std::vector<std::string> FoldNames(std::vector<std::string> names);

}  // namespace berth

#endif  // BERTH_CLIENTS_TOPOLOGY_NODE_NAMES_H_
