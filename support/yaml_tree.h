// YAML text as a tree of nodes that know where they stand, before anybody gives them a meaning.
//
// The tree is plain: no anchors, aliases, tags or merge keys, keys are single words and appear
// once. What breaks that is reported with its place, and the rest of the tree is still there, so
// that a reader can find every error at once.
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

// Both from 1; 0 = not known.
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
  // The value of a key of a map; null when there is none. Lives as long as this node.
  const YamlNode* Find(absl::string_view key) const;
};

// Errors of one file, kept up to a bound and told in the order of their places.
class YamlErrors {
 public:
  explicit YamlErrors(absl::string_view file) : file_(file) {}

  void Add(YamlPosition position, absl::string_view text);
  bool empty() const { return count_ == 0; }
  int count() const { return count_; }  // also those beyond the bound
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

// The documents in `text`, in order; none for text that holds nothing but comments. After a syntax
// error, which ends the reading, the documents before it. JSON is YAML. Never throws.
std::vector<YamlNode> ParseYamlTree(absl::string_view text, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_SUPPORT_YAML_TREE_H_
