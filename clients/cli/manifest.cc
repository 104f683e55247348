#include "clients/cli/manifest.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/foreign_kinds.h"
#include "clients/cli/manifest_hints.h"
#include "clients/cli/template.h"
#include "clients/cli/volcano.h"
#include "support/nearest.h"

namespace berth {
namespace {

using Convert = void (*)(const YamlNode& document, const ManifestOptions& options,
                         YamlErrors* errors, YamlErrors* skipped, Manifest* manifest);

// The keys of the spec in a flat document, without those of the header.
YamlNode SpecOf(const YamlNode& document, const std::vector<std::string>& header) {
  YamlNode spec;
  spec.kind = document.kind;
  spec.position = document.position;
  for (size_t i = 0; i < document.keys.size(); ++i) {
    if (std::find(header.begin(), header.end(), document.keys[i].text) != header.end()) continue;
    spec.keys.push_back(document.keys[i]);
    spec.items.push_back(document.items[i]);
  }
  return spec;
}

// The spec of a HyperNode also has a `kind`: that of the tree.
constexpr char kTreeKind[] = "treeKind";
constexpr char kUsualTree[] = "network";

void ReadFlat(const YamlNode& document, YamlErrors* errors, std::string* name,
              google::protobuf::Message* spec, YamlPositions* positions) {
  std::vector<std::string> header = {"apiVersion", "kind", "name"};
  if (spec->GetDescriptor() == v1::HyperNodeSpec::descriptor()) header.emplace_back(kTreeKind);
  if (const YamlNode* node = document.Find("name")) {
    (*positions)["name"] = node->position;
    if (node->is_scalar()) *name = node->text;
    if (!node->is_scalar()) errors->Add(node->position, "name: expected a single value");
  }
  YamlPositions of_spec;
  YamlReadOptions options;
  options.also_known = header;
  options.positions = &of_spec;
  options.key_hint = KeyHint;
  YamlNode keys = SpecOf(document, header);
  if (spec->GetDescriptor() == v1::JobSpec::descriptor()) PrepareJob(&keys, errors);
  ReadYamlNode(keys, spec, errors, options);
  for (const auto& entry : of_spec) (*positions)[absl::StrCat("spec.", entry.first)] = entry.second;
}

void ReadBerthJob(const YamlNode& document, const ManifestOptions&, YamlErrors* errors, YamlErrors*,
                  Manifest* manifest) {
  manifest->kind = Manifest::Kind::kJob;
  ReadFlat(document, errors, manifest->job.mutable_name(), manifest->job.mutable_spec(),
           &manifest->positions);
}

// A job with a `schedule`.
void ReadBerthSchedule(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                       YamlErrors* skipped, Manifest* manifest) {
  ReadBerthJob(document, options, errors, skipped, manifest);
  if (document.Find("schedule") != nullptr) return;
  errors->Add(document.position,
              "a Schedule needs \"schedule\", such as schedule: {cron: \"30 2 * * *\"}");
}

void ReadBerthQueue(const YamlNode& document, const ManifestOptions&, YamlErrors* errors,
                    YamlErrors*, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kQueue;
  ReadFlat(document, errors, manifest->queue.mutable_name(), manifest->queue.mutable_spec(),
           &manifest->positions);
  if (manifest->queue.name().empty()) errors->Add(document.position, "a queue needs a name");
}

void ReadBerthHyperNode(const YamlNode& document, const ManifestOptions&, YamlErrors* errors,
                        YamlErrors*, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kHyperNode;
  ReadFlat(document, errors, manifest->hyper_node.mutable_name(),
           manifest->hyper_node.mutable_spec(), &manifest->positions);
  if (manifest->hyper_node.name().empty()) {
    errors->Add(document.position, "a HyperNode needs a name");
  }
  const YamlNode* tree = document.Find(kTreeKind);
  if (tree == nullptr) return;
  manifest->positions["spec.kind"] = tree->position;
  if (tree->is_scalar()) manifest->hyper_node.mutable_spec()->set_kind(tree->text);
  if (!tree->is_scalar()) errors->Add(tree->position, "treeKind: expected a single value");
}

void ReadBerthPriorityClass(const YamlNode& document, const ManifestOptions&, YamlErrors* errors,
                            YamlErrors*, Manifest* manifest) {
  manifest->kind = Manifest::Kind::kPriorityClass;
  v1::PriorityClass& one = manifest->priority_class;
  std::string name;
  ReadFlat(document, errors, &name, &one, &manifest->positions);
  one.set_name(name);
  if (name.empty()) errors->Add(document.position, "a priority class needs a name");
}

struct KindOfManifest {
  const char* api_version;
  const char* kind;
  Convert convert;
};
constexpr KindOfManifest kKinds[] = {
    {"berth/v1", "Job", ReadBerthJob},
    {"berth/v1", "Schedule", ReadBerthSchedule},
    {"berth/v1", "Queue", ReadBerthQueue},
    {"berth/v1", "HyperNode", ReadBerthHyperNode},
    {"berth/v1", "PriorityClass", ReadBerthPriorityClass},
    {"scheduling.volcano.sh/v1beta1", "Queue", ReadVolcanoQueue},
    {"topology.volcano.sh/v1alpha1", "HyperNode", ReadVolcanoHyperNode},
};

bool IsTemplate(const YamlNode& document) {
  if (!document.is_map()) return false;
  const YamlNode* version = document.Find("apiVersion");
  const YamlNode* kind = document.Find("kind");
  return version != nullptr && kind != nullptr && version->text == "berth/v1" &&
         kind->text == "Template";
}

// A required key at the top of a document. If it is missing, adds an error and returns null.
const YamlNode* Required(const YamlNode& document, const char* key, const char* write,
                         YamlErrors* errors) {
  const YamlNode* node = document.Find(key);
  if (node != nullptr && node->is_scalar()) return node;
  const YamlPosition position = node == nullptr ? document.position : node->position;
  errors->Add(position, absl::StrCat("\"", key, "\" is missing", write));
  return nullptr;
}

Convert FindConvert(const YamlNode& document, YamlErrors* errors) {
  const YamlNode* api_version =
      Required(document, "apiVersion", ": write apiVersion: berth/v1", errors);
  const YamlNode* kind = Required(document, "kind", ": write kind: Job", errors);
  if (api_version == nullptr || kind == nullptr) return nullptr;
  std::vector<std::string> versions;
  std::vector<std::string> kinds;
  for (const KindOfManifest& known : kKinds) {
    versions.emplace_back(known.api_version);
    if (api_version->text != known.api_version) continue;
    if (kind->text == known.kind) return known.convert;
    kinds.emplace_back(known.kind);
  }
  for (const std::string& other : ForeignKinds(api_version->text)) kinds.push_back(other);
  if (const std::string hint = ApiVersionHint(api_version->text); !hint.empty()) {
    errors->Add(api_version->position,
                absl::StrCat("unknown apiVersion \"", api_version->text, "\": ", hint));
  } else if (kinds.empty()) {
    for (const std::string& other : ForeignApiVersions()) versions.push_back(other);
    std::sort(versions.begin(), versions.end());
    versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
    errors->Add(api_version->position,
                UnknownWord("unknown apiVersion", api_version->text, versions));
  } else {
    errors->Add(kind->position, UnknownWord("unknown kind", kind->text, kinds));
  }
  return nullptr;
}

// The value of the path, or of the nearest enclosing path that has one.
template <class Value>
Value FindEnclosing(const std::map<std::string, Value>& values, absl::string_view path,
                    Value fallback) {
  while (!path.empty()) {
    const auto found = values.find(std::string(path));
    if (found != values.end()) return found->second;
    const size_t end = path.find_last_of(".[");
    path = end == absl::string_view::npos ? "" : path.substr(0, end);
  }
  return fallback;
}

void AppendComments(absl::string_view title, const google::protobuf::Message& message,
                    std::string* out) {
  absl::StrAppend(out, "# ", title, ":\n");
  const std::string text = WriteYaml(message);
  for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    absl::StrAppend(out, "#   ", line, "\n");
  }
}

// "KEY: TEXT\n", with the usual quoting; "" for an empty text.
std::string WriteKey(absl::string_view key, const std::string& text) {
  v1::Job job;
  job.set_name(text);
  const std::string line = WriteYaml(job);
  return text.empty() ? "" : absl::StrCat(key, absl::StripPrefix(line, "name"));
}

template <class Resource>
std::string Write(absl::string_view kind, const Resource& resource,
                  const std::string& tree_kind = "") {
  std::string out = absl::StrCat("apiVersion: berth/v1\nkind: ", kind, "\n",
                                 WriteKey("name", resource.name()), WriteKey(kTreeKind, tree_kind));
  const std::string spec = WriteYaml(resource.spec());
  if (spec != "{}\n") absl::StrAppend(&out, spec);
  if (resource.has_status()) AppendComments("status", resource.status(), &out);
  return out;
}

}  // namespace

YamlPosition FindPosition(const YamlPositions& positions, absl::string_view path,
                          YamlPosition fallback) {
  return FindEnclosing(positions, path, fallback);
}

std::string Manifest::Option(absl::string_view path) const {
  return FindEnclosing(options, path, std::string());
}

std::string Manifest::Locate(absl::string_view path) const {
  const YamlPosition found = FindPosition(positions, path, position);
  return absl::StrCat(file, ":", found.line, ":", found.column);
}

absl::StatusOr<std::vector<Manifest>> ReadManifests(absl::string_view text, absl::string_view file,
                                                    const ManifestOptions& options,
                                                    std::vector<std::string>* warnings) {
  YamlErrors errors(file);
  YamlErrors skipped(file);
  std::vector<Manifest> manifests;
  if (const std::string hint = FileHint(text, file); !hint.empty()) {
    errors.Add({1, 1}, hint);
    return errors.status();
  }
  std::vector<YamlNode> documents = WithoutLists(ParseYamlTree(text, &errors), &errors);
  std::set<std::string> used;
  for (YamlNode& document : documents) {
    if (IsTemplate(document)) document = FillTemplate(document, options.values, &used, &errors);
  }
  ForeignFile foreign{.name = std::string(file),
                      .options = options,
                      .errors = errors,
                      .warnings = skipped,
                      .manifests = manifests};
  CollectShared(documents, &foreign);
  for (const YamlNode& document : documents) {
    if (document.is_null()) continue;
    if (!document.is_map()) {
      errors.Add(document.position, "expected a manifest: a map with apiVersion and kind");
      continue;
    }
    if (ReadForeign(document, &foreign)) continue;
    const Convert convert = FindConvert(document, &errors);
    if (convert == nullptr) continue;
    Manifest manifest;
    manifest.file = std::string(file);
    manifest.position = document.position;
    convert(document, options, &errors, &skipped, &manifest);
    manifests.push_back(std::move(manifest));
  }
  for (const auto& value : options.values) {
    if (used.contains(value.first)) continue;
    errors.Add({1, 1}, absl::StrCat("no template here has a parameter \"", value.first, "\""));
  }
  const std::string left_out(skipped.status().message());
  if (!skipped.empty()) {
    for (absl::string_view line : absl::StrSplit(left_out, '\n')) {
      warnings->emplace_back(line);
    }
  }
  if (!errors.empty()) return errors.status();
  return manifests;
}

std::string WriteManifest(const v1::Job& job) {
  return Write(job.spec().has_schedule() ? "Schedule" : "Job", job);
}
std::string WriteManifest(const v1::Queue& queue) { return Write("Queue", queue); }
std::string WriteManifest(const v1::PriorityClass& priority_class) {
  v1::PriorityClass fields = priority_class;
  fields.clear_name();
  fields.clear_etag();
  const std::string text = WriteYaml(fields);
  return absl::StrCat("apiVersion: berth/v1\nkind: PriorityClass\n",
                      WriteKey("name", priority_class.name()), text == "{}\n" ? "" : text);
}
std::string WriteManifest(const v1::HyperNode& hyper_node) {
  v1::HyperNode flat = hyper_node;
  flat.mutable_spec()->clear_kind();
  const std::string& tree = hyper_node.spec().kind();
  return Write("HyperNode", flat, tree == kUsualTree ? "" : tree);
}

}  // namespace berth
