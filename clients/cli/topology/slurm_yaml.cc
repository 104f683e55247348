#include "clients/cli/topology/slurm_yaml.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/topology/node_names.h"
#include "clients/cli/topology/slurm_blocks.h"
#include "clients/cli/topology/yaml_fields.h"
#include "support/nearest.h"

namespace berth {
namespace {

const std::vector<std::string>& TopologyKinds() {
  static const auto* const kinds =
      new std::vector<std::string>{"tree", "block", "flat", "ring", "torus3d"};
  return *kinds;
}

// One item of the list, before the wanted ones are selected.
struct Topology {
  std::string name;
  std::string kind;
  bool is_default = false;
  const YamlNode* body = nullptr;  // lives as long as its document
};

absl::StatusOr<std::vector<std::string>> Wanted(const std::vector<Topology>& topologies,
                                                const std::vector<std::string>& asked) {
  std::vector<std::string> names, defaults;
  for (const Topology& topology : topologies) {
    names.push_back(topology.name);
    if (topology.is_default) defaults.push_back(topology.name);
  }
  for (const std::string& name : asked) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      return absl::InvalidArgumentError(UnknownWord("no topology", name, names));
  }
  if (!asked.empty()) return asked;
  if (!defaults.empty()) return defaults;
  if (names.size() <= 1) return names;
  return absl::InvalidArgumentError(
      absl::StrCat("several topologies and none of them cluster_default: choose with --topology "
                   "among ",
                   absl::StrJoin(names, ", ")));
}

class SlurmYamlReader {
 public:
  SlurmYamlReader(const ImportInput& input, Imported* imported)
      : input_(input), imported_(*imported) {}

  void ReadDocument(const YamlNode& document, YamlFields& fields) {
    fields_ = &fields;
    std::vector<Topology> topologies;
    fields.ForEach(&document, [&](const YamlNode& node) {
      Topology topology = ReadHead(node);
      if (topology.body != nullptr) topologies.push_back(std::move(topology));
    });
    const auto wanted = Wanted(topologies, input_.topologies);
    if (!wanted.ok()) {
      fields.Error(document, wanted.status().message());
      return;
    }
    std::vector<std::string> left_out;
    for (const Topology& topology : topologies) {
      if (std::find(wanted->begin(), wanted->end(), topology.name) != wanted->end()) {
        ReadTopology(topology);
      } else {
        left_out.push_back(absl::StrCat(topology.name, " (", topology.kind, ")"));
      }
    }
    if (!left_out.empty())
      imported_.warnings.push_back(absl::StrCat("topologies left out: ", SomeOf(left_out)));
  }

  void Finish() {
    if (const std::string warning = lists_.Warning(); !warning.empty())
      imported_.warnings.push_back(warning);
  }

 private:
  Topology ReadHead(const YamlNode& node) {
    std::vector<std::string> known = {"topology", "cluster_default"};
    known.insert(known.end(), TopologyKinds().begin(), TopologyKinds().end());
    Topology topology;
    if (!fields_->IsMap(node, known)) return topology;
    topology.name = fields_->Text(node, "topology", true);
    topology.is_default = fields_->Text(node, "cluster_default", false) == "true";
    for (const std::string& kind : TopologyKinds()) {
      const YamlNode* body = fields_->Get(node, kind, false);
      if (body == nullptr) continue;
      if (topology.body != nullptr)
        fields_->Error(node, absl::StrCat("both ", topology.kind, " and ", kind));
      topology.kind = kind;
      topology.body = body;
    }
    if (topology.body == nullptr) {
      fields_->Error(node,
                     absl::StrCat("one of ", absl::StrJoin(TopologyKinds(), ", "), " is missing"));
    }
    return topology;
  }

  void ReadTopology(const Topology& topology) {
    if (topology.kind == "tree") {
      ReadTree(*topology.body);
    } else if (topology.kind == "block") {
      ReadBlocks(*topology.body);
    } else if (topology.kind == "flat") {
      imported_.warnings.push_back(
          absl::StrCat("topology ", topology.name, " is flat: it has no groups"));
    } else {
      fields_->Error(*topology.body, absl::StrCat("topology ", topology.name, ": ", topology.kind,
                                                  " is not supported, only tree and block are"));
    }
  }

  void ReadTree(const YamlNode& tree) {
    if (!fields_->IsMap(tree, {"switches"})) return;
    fields_->ForEach(fields_->Get(tree, "switches", true), [&](const YamlNode& node) {
      if (!fields_->IsMap(node, {"switch", "children", "nodes"})) return;
      NodeGroup group = MakeGroup(node, "switch");
      const YamlNode* children = node.Find("children");
      auto names = lists_.Expand(fields_->Text(node, "children", false));
      if (children != nullptr && !names.ok()) fields_->Error(*children, names.status().message());
      if (children != nullptr && names.ok()) group.children = *std::move(names);
      imported_.groups.push_back(std::move(group));
    });
  }

  void ReadBlocks(const YamlNode& block) {
    if (!fields_->IsMap(block, {"block_sizes", "blocks"})) return;
    std::vector<int64_t> sizes;
    fields_->ForEach(fields_->Get(block, "block_sizes", false), [&](const YamlNode& node) {
      if (!node.is_scalar() || !absl::SimpleAtoi(node.text, &sizes.emplace_back()))
        fields_->Error(node, "expected a number of nodes");
    });
    std::vector<NodeGroup> blocks;
    fields_->ForEach(fields_->Get(block, "blocks", true), [&](const YamlNode& node) {
      if (fields_->IsMap(node, {"block", "nodes"})) blocks.push_back(MakeGroup(node, "block"));
    });
    const absl::Status status = AddBlocks(std::move(blocks), sizes, &imported_);
    if (!status.ok()) fields_->Error(block, status.message());
  }

  NodeGroup MakeGroup(const YamlNode& node, absl::string_view name_key) {
    NodeGroup group;
    group.id = fields_->Text(node, name_key, true);
    group.place = fields_->Place(node);
    const YamlNode* nodes = node.Find("nodes");
    if (nodes == nullptr) return group;
    auto names = lists_.ExpandNodes(fields_->Text(node, "nodes", true));
    if (!names.ok()) {
      fields_->Error(*nodes, names.status().message());
    } else {
      group.nodes = *std::move(names);
    }
    return group;
  }

  const ImportInput& input_;
  Imported& imported_;
  NameLists lists_;
  YamlFields* fields_ = nullptr;  // of the document that is read now
};

}  // namespace

absl::StatusOr<Imported> ReadSlurmYaml(const ImportInput& input) {
  Imported imported;
  SlurmYamlReader reader(input, &imported);
  const absl::Status status = ForEachYamlDocument(
      input.texts,
      [&](const YamlNode& document, YamlFields& fields) { reader.ReadDocument(document, fields); });
  if (!status.ok()) return status;
  reader.Finish();
  return imported;
}

}  // namespace berth
