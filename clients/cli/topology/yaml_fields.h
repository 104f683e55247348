// Reads YAML of other systems: every step checks the kind of the node and reports errors with their
// position.
#ifndef BERTH_CLIENTS_CLI_TOPOLOGY_YAML_FIELDS_H_
#define BERTH_CLIENTS_CLI_TOPOLOGY_YAML_FIELDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "clients/cli/topology/source.h"
#include "support/yaml_tree.h"

namespace berth {

// One file while it is read. Everything referred to must outlive it.
class YamlFields {
 public:
  YamlFields(const std::string& file, YamlErrors* errors) : file_(file), errors_(*errors) {}

  SourcePlace Place(const YamlNode& node) const { return {file_, node.position}; }
  void Error(const YamlNode& node, absl::string_view text) { errors_.Add(node.position, text); }

  // Adds an error unless `node` is a map with only the `known` keys.
  bool IsMap(const YamlNode& node, const std::vector<std::string>& known);
  // The value of a key, or null. Adds an error if it is `required` and missing.
  const YamlNode* Get(const YamlNode& map, absl::string_view key, bool required);
  // The word at a key; "" with an error if it is not a word, or if it is required and missing or
  // empty.
  std::string Text(const YamlNode& map, absl::string_view key, bool required);
  // Calls `each` for the items of a list; a single value counts as a list of one. Null: none.
  void ForEach(const YamlNode* list, absl::FunctionRef<void(const YamlNode&)> each);
  // A map of words.
  std::map<std::string, std::string> Words(const YamlNode* map);

 private:
  const std::string& file_;
  YamlErrors& errors_;
};

// Reads each text as YAML and passes its documents to `each`. INVALID_ARGUMENT with all errors.
absl::Status ForEachYamlDocument(
    const std::vector<SourceText>& texts,
    absl::FunctionRef<void(const YamlNode& document, YamlFields& fields)> each);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TOPOLOGY_YAML_FIELDS_H_
