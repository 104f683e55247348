#include "offline/sim/scenario_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "offline/sim/scenario_sugar.h"
#include "support/text_file.h"

namespace berth {
namespace {

YamlReadOptions Options(YamlPositions* positions) {
  YamlReadOptions options;
  options.positions = positions;
  return options;
}

// "a[0].b[1].c" -> "a[0].b[1]" -> "a[0].b" -> "a[0]" -> "a" -> "".
std::string Outer(const std::string& path) {
  const size_t end = path.find_last_of(".[");
  return end == std::string::npos ? "" : path.substr(0, end);
}

}  // namespace

absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarios(absl::string_view text,
                                                            const std::string& file) {
  YamlErrors errors(file);
  std::vector<YamlNode> trees = ParseYamlTree(text, &errors);
  std::vector<ScenarioDocument> documents;
  for (YamlNode& tree : trees) {
    if (tree.is_null()) continue;
    ScenarioDocument document;
    document.file = file;
    ExpandShorthands(&tree, &errors);
    ReadYamlNode(tree, &document.scenario, &errors, Options(&document.positions));
    if (document.scenario.name().empty()) {
      document.scenario.set_name(absl::StrCat(file, "#", documents.size() + 1));
    }
    documents.push_back(std::move(document));
  }
  if (!errors.empty()) return errors.status();
  return documents;
}

absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarioFile(const std::string& path) {
  absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  return ReadScenarios(*text, path);
}

absl::Status Located(const ScenarioDocument& document, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string message(status.message());
  YamlPosition position;
  for (std::string path = message.substr(0, message.find(": ")); !path.empty();
       path = Outer(path)) {
    const auto found = document.positions.find(path);
    if (found == document.positions.end()) continue;
    position = found->second;
    break;
  }
  const std::string place =
      position.line == 0 ? absl::StrCat(document.file, ": ", document.scenario.name())
                         : absl::StrCat(document.file, ":", position.line, ":", position.column);
  return absl::Status(status.code(), absl::StrCat(place, ": ", message));
}

}  // namespace berth
