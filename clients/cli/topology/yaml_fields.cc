#include "clients/cli/topology/yaml_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/nearest.h"

namespace berth {

bool YamlFields::IsMap(const YamlNode& node, const std::vector<std::string>& known) {
  if (!node.is_map()) {
    Error(node, absl::StrCat("expected a map with ", absl::StrJoin(known, ", ")));
    return false;
  }
  bool good = true;
  for (const YamlNode& key : node.keys) {
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    Error(key, UnknownWord("unknown key", key.text, known));
    good = false;
  }
  return good;
}

const YamlNode* YamlFields::Get(const YamlNode& map, absl::string_view key, bool required) {
  const YamlNode* node = map.Find(key);
  if (node == nullptr && required) Error(map, absl::StrCat("\"", key, "\" is missing"));
  return node;
}

std::string YamlFields::Text(const YamlNode& map, absl::string_view key, bool required) {
  const YamlNode* node = Get(map, key, required);
  if (node == nullptr || (node->is_null() && !required)) return "";
  if (!node->is_scalar() || (required && node->text.empty())) {
    Error(*node, absl::StrCat(key, ": expected a word"));
    return "";
  }
  return node->text;
}

void YamlFields::ForEach(const YamlNode* list, absl::FunctionRef<void(const YamlNode&)> each) {
  if (list == nullptr || list->is_null()) return;
  if (!list->is_list()) return each(*list);
  for (const YamlNode& item : list->items) each(item);
}

std::map<std::string, std::string> YamlFields::Words(const YamlNode* map) {
  std::map<std::string, std::string> words;
  if (map == nullptr || map->is_null()) return words;
  if (!map->is_map()) {
    Error(*map, "expected a map of words");
    return words;
  }
  for (size_t i = 0; i < map->keys.size(); ++i) {
    if (!map->items[i].is_scalar()) Error(map->items[i], "expected a word");
    words[map->keys[i].text] = map->items[i].text;
  }
  return words;
}

absl::Status ForEachYamlDocument(
    const std::vector<SourceText>& texts,
    absl::FunctionRef<void(const YamlNode& document, YamlFields& fields)> each) {
  std::vector<std::string> problems;
  for (const SourceText& text : texts) {
    YamlErrors errors(text.name);
    YamlFields fields(text.name, &errors);
    const std::vector<YamlNode> documents = ParseYamlTree(text.text, &errors);
    if (errors.empty()) {
      for (const YamlNode& document : documents) each(document, fields);
    }
    if (!errors.empty()) problems.emplace_back(errors.status().message());
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace berth
