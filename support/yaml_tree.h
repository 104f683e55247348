// YAML text as a tree of nodes with positions, before it is interpreted.
//
// The tree is plain: no anchors, aliases, tags or merge keys; keys are single words and occur once.
// Violations are reported with their position and the rest of the tree is kept, so that a reader
// can find every error at once.
#ifndef BERTH_SUPPORT_YAML_TREE_H_
#define BERTH_SUPPORT_YAML_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr size_t kMaxYamlBytes = size_t{16} << 20;
inline constexpr int kMaxYamlDepth = 32;
inline constexpr size_t kMaxYamlNodes = size_t{4} << 20;
inline constexpr int kMaxYamlErrors = 20;

// Both start at 1; 0 = unknown.
struct YamlPosition {
  int line = 0;
  int column = 0;
  auto operator<=>(const YamlPosition&) const = default;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  bool quoted = false;  // a scalar that was written in quotes or as a block
  YamlPosition position;
  std::string text;             // of a scalar, as written
  std::vector<YamlNode> keys;   // of a map: scalars, parallel to items
  std::vector<YamlNode> items;  // of a map or list, in the order written

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  // The value for a key of a map; null if there is none. Lives as long as this node.
  const YamlNode* Find(absl::string_view key) const;
};

// Errors of one file: a bounded number, reported in order of position.
class YamlErrors {
 public:
  explicit YamlErrors(absl::string_view file) : file_(file) {}

  void Add(YamlPosition position, absl::string_view text);
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }  // including those beyond the bound
  // OK, or INVALID_ARGUMENT with one line "FILE:LINE:COLUMN: TEXT" for each error.
  absl::Status status() const;

 private:
  struct Error {
    YamlPosition position;
    std::string text;
  };
  std::string file_;
  std::vector<Error> errors_;
  int count_ = 0;
};

// The documents in `text`, in order; none if it contains only comments. Parsing ends at a syntax
// error; the documents before it are returned. JSON is YAML. Never throws.
std::vector<YamlNode> ParseYamlTree(absl::string_view text, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_TREE_H_
