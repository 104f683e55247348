#include "clients/cli/topology/topograph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/topology/node_names.h"
#include "clients/cli/topology/yaml_fields.h"

namespace berth {
namespace {

constexpr char kDomainTier[] = "domain";
constexpr char kSubDomainTier[] = "sub-domain";

std::string AcceleratorWord(const std::map<std::string, std::string>& words,
                            absl::string_view suffix) {
  for (const auto& [key, value] : words) {
    if (absl::StartsWith(key, "accelerator.") && absl::EndsWith(key, suffix)) return value;
  }
  return "";
}

class TopographReader {
 public:
  explicit TopographReader(Imported* imported) : imported_(*imported) {}

  void ReadDocument(const YamlNode& document, YamlFields& fields) {
    fields_ = &fields;
    if (document.is_list()) {
      fields.ForEach(&document, [&](const YamlNode& node) { ReadComputeNode(node); });
      return;
    }
    if (!fields.IsMap(document, {"switches", "blocks"})) return;
    if (const YamlNode* switches = fields.Get(document, "switches", false)) ReadSwitches(*switches);
    fields.ForEach(fields.Get(document, "blocks", true),
                   [&](const YamlNode& node) { ReadBlock(node); });
  }

  void Finish() {
    AddLeaves();
    for (auto& [id, group] : switches_) imported_.groups.push_back(std::move(group));
    for (auto& [id, group] : domains_) {
      group.tier = sub_domains_.empty() ? 1 : 2;
      imported_.groups.push_back(std::move(group));
    }
    for (auto& [id, group] : sub_domains_) imported_.groups.push_back(std::move(group));
    if (const std::string warning = lists_.Warning(); !warning.empty())
      imported_.warnings.push_back(warning);
  }

 private:
  void ReadSwitches(const YamlNode& switches) {
    if (!switches.is_map()) {
      fields_->Error(switches, "switches: expected a map keyed by the names of switches");
      return;
    }
    for (size_t i = 0; i < switches.keys.size(); ++i) {
      const YamlNode& body = switches.items[i];
      NodeGroup& group = switches_[switches.keys[i].text];
      if (!group.id.empty()) {
        fields_->Error(switches.keys[i],
                       absl::StrCat("\"", group.id, "\" is already defined: ", group.place.text()));
        continue;
      }
      group.id = switches.keys[i].text;
      group.place = fields_->Place(switches.keys[i]);
      if (body.is_null() || !fields_->IsMap(body, {"switches", "labels", "annotations"})) continue;
      fields_->ForEach(fields_->Get(body, "switches", false), [&](const YamlNode& child) {
        if (child.is_scalar()) {
          group.children.push_back(child.text);
        } else {
          fields_->Error(child, "expected the name of a switch");
        }
      });
    }
  }

  void ReadBlock(const YamlNode& node) {
    if (!fields_->IsMap(node, {"switch", "nodes", "labels", "annotations"})) return;
    const std::string id = fields_->Text(node, "switch", true);
    std::vector<std::string> nodes;
    fields_->ForEach(fields_->Get(node, "nodes", true), [&](const YamlNode& item) {
      auto names = lists_.ExpandNodes(item.text);
      if (!names.ok()) {
        fields_->Error(item, names.status().message());
      } else {
        nodes.insert(nodes.end(), names->begin(), names->end());
      }
    });
    if (id.empty()) return;
    NodeGroup& leaf = GroupAt(&switches_, id, node);
    leaf.nodes.insert(leaf.nodes.end(), nodes.begin(), nodes.end());
    std::map<std::string, std::string> words = fields_->Words(node.Find("labels"));
    for (auto& word : fields_->Words(node.Find("annotations"))) words.insert(word);
    const std::string domain = AcceleratorWord(words, "/domain");
    const std::string sub_domain = AcceleratorWord(words, "/sub-domain");
    if (domain.empty() && !sub_domain.empty())
      fields_->Error(node, "a sub-domain without a domain");
    if (!domain.empty()) AddToDomain(domain, sub_domain, node, nodes);
  }

  void AddToDomain(const std::string& domain, const std::string& sub_domain, const YamlNode& node,
                   const std::vector<std::string>& nodes) {
    NodeGroup* group = &GroupAt(&domains_, domain, node);
    group->kind = kNvlinkKind;
    group->tier_name = kDomainTier;
    if (!sub_domain.empty()) {
      const std::string id = absl::StrCat(domain, "/", sub_domain);
      group->children.push_back(id);
      group = &GroupAt(&sub_domains_, id, node);
      group->kind = kNvlinkKind;
      group->tier = 1;
      group->tier_name = kSubDomainTier;
      group->base_name = absl::StrCat(domain, "-", sub_domain);
    }
    group->nodes.insert(group->nodes.end(), nodes.begin(), nodes.end());
  }

  void ReadComputeNode(const YamlNode& node) {
    if (!node.is_map()) {
      fields_->Error(node, "expected an object with Name and DomainUUID");
      return;
    }
    const std::string name = fields_->Text(node, "Name", true);
    const std::string domain = fields_->Text(node, "DomainUUID", true);
    if (name.empty() || domain.empty()) return;
    const auto nodes = lists_.ExpandNodes(name);
    if (!nodes.ok()) {
      fields_->Error(node, nodes.status().message());
      return;
    }
    AddToDomain(domain, "", node, *nodes);
    domains_[domain].opaque = true;
  }

  // The switch of a block, or a domain. Created when first mentioned.
  NodeGroup& GroupAt(std::map<std::string, NodeGroup>* groups, const std::string& id,
                     const YamlNode& node) {
    NodeGroup& group = (*groups)[id];
    if (group.id.empty()) group.place = fields_->Place(node);
    group.id = id;
    return group;
  }

  // Switches that are only mentioned below another, and have no block, are leaves without nodes.
  void AddLeaves() {
    std::vector<std::pair<std::string, SourcePlace>> mentioned;
    for (const auto& [id, group] : switches_) {
      for (const std::string& child : group.children) mentioned.emplace_back(child, group.place);
    }
    for (const auto& [id, place] : mentioned) {
      NodeGroup& group = switches_[id];
      if (group.id.empty()) group.place = place;
      group.id = id;
    }
  }

  Imported& imported_;
  NameLists lists_;
  std::map<std::string, NodeGroup> switches_, domains_, sub_domains_;  // by id
  YamlFields* fields_ = nullptr;  // of the document that is read now
};

}  // namespace

absl::StatusOr<Imported> ReadTopograph(const ImportInput& input) {
  Imported imported;
  TopographReader reader(&imported);
  const absl::Status status = ForEachYamlDocument(
      input.texts,
      [&](const YamlNode& document, YamlFields& fields) { reader.ReadDocument(document, fields); });
  if (!status.ok()) return status;
  reader.Finish();
  return imported;
}

}  // namespace berth
