#include "clients/cli/topology/kueue.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/labels.h"
#include "clients/cli/topology/yaml_fields.h"
#include "support/nearest.h"

namespace berth {
namespace {

constexpr char kGroup[] = "kueue.x-k8s.io/";

using Levels = std::map<std::string, std::vector<std::string>>;  // label keys by topology

bool IsTopology(const YamlNode& document) {
  const YamlNode* version = document.Find("apiVersion");
  const YamlNode* kind = document.Find("kind");
  return version != nullptr && absl::StartsWith(version->text, kGroup) && kind != nullptr &&
         kind->text == "Topology";
}

void ReadKueueTopology(const YamlNode& document, YamlFields& fields, Levels* levels) {
  const YamlNode* metadata = fields.Get(document, "metadata", true);
  const YamlNode* spec = fields.Get(document, "spec", true);
  if (metadata == nullptr || spec == nullptr) return;
  const std::string name = fields.Text(*metadata, "name", true);
  std::vector<std::string> keys;
  fields.ForEach(fields.Get(*spec, "levels", true), [&](const YamlNode& level) {
    keys.push_back(fields.Text(level, "nodeLabel", true));
  });
  if (!levels->emplace(name, keys).second)
    fields.Error(document, absl::StrCat("duplicate topology \"", name, "\""));
}

}  // namespace

absl::StatusOr<Imported> ReadKueue(const ImportInput& input) {
  Levels levels;
  const absl::Status status =
      ForEachYamlDocument(input.texts, [&](const YamlNode& document, YamlFields& fields) {
        if (IsTopology(document)) ReadKueueTopology(document, fields, &levels);
      });
  if (!status.ok()) return status;
  std::vector<std::string> names;
  for (const auto& [name, keys] : levels) names.push_back(name);
  if (names.empty()) return absl::InvalidArgumentError("no Topology of kueue.x-k8s.io in the file");
  if (input.topologies.size() > 1)
    return absl::InvalidArgumentError("give only one --topology: a node is in one only");
  if (input.topologies.empty() && names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "several topologies: select one with --topology: ", absl::StrJoin(names, ", ")));
  }
  const std::string& chosen = input.topologies.empty() ? names.front() : input.topologies.front();
  const auto found = levels.find(chosen);
  if (found == levels.end())
    return absl::InvalidArgumentError(UnknownWord("no topology", chosen, names));
  return GroupByLabels(input.nodes, found->second);
}

}  // namespace berth
