#include "clients/cli/hyper_node_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/human.h"
#include "clients/cli/manifest.h"
#include "clients/cli/page.h"

namespace berth {
namespace {

using Devices = google::protobuf::RepeatedPtrField<v1::DomainDevices>;

constexpr int kBarWidth = 14;
constexpr int kMembersShown = 20;

// "2", or "2 rack".
std::string TierLabel(const v1::HyperNodeSpec& spec) {
  return spec.tier_name().empty() ? absl::StrCat(spec.tier())
                                  : absl::StrCat(spec.tier(), " ", spec.tier_name());
}

// "8", or "7/8 ready".
std::string NodesText(const v1::HyperNodeStatus& status) {
  if (status.ready_nodes() == status.nodes()) return absl::StrCat(status.nodes());
  return absl::StrCat(status.ready_nodes(), "/", status.nodes(), " ready");
}

// "gpu 768, nic 96"
std::string DeviceAmounts(const Devices& devices, bool free) {
  std::vector<std::string> parts;
  for (const v1::DomainDevices& one : devices) {
    parts.push_back(absl::StrCat(one.kind(), " ", free ? one.free() : one.capacity()));
  }
  return absl::StrJoin(parts, ", ");
}

// The usage bar of the most numerous kind of devices.
std::string BarOf(const Devices& devices) {
  const auto most = std::max_element(devices.begin(), devices.end(),
                                     [](const v1::DomainDevices& a, const v1::DomainDevices& b) {
                                       return a.capacity() < b.capacity();
                                     });
  return most == devices.end() ? "" : UseBar(most->capacity(), most->free());
}

Word HealthWord(const v1::HyperNodeStatus& status) {
  if (!status.degraded()) return {"Ok", Color::kGreen};
  return {absl::StrCat("Degraded", status.reason().empty() ? "" : ": ", status.reason()),
          Color::kYellow};
}

std::string MemberText(const v1::HyperNodeSpec::Member& member) {
  using Member = v1::HyperNodeSpec::Member;
  switch (member.selector_case()) {
    case Member::kRegex:
      return absl::StrCat("node ~ ", member.regex());
    case Member::kLabel:
      return absl::StrCat("node with ", member.label());
    default:
      return absl::StrCat(member.type() == Member::NODE ? "node " : "HyperNode ", member.exact());
  }
}

Table HyperNodeTable(const std::vector<v1::HyperNode>& hyper_nodes, const Session&) {
  Table table({{"NAME"},
               {"KIND"},
               {"TIER"},
               {"PARENT"},
               {"MEMBERS", Column::kRight},
               {"NODES", Column::kRight},
               {"DEVICES"},
               {"FREE"},
               {"HEALTH"},
               {"GBPS", Column::kRight | Column::kWide},
               {"LATENCY", Column::kRight | Column::kWide},
               {"SOURCE", Column::kWide}});
  for (const v1::HyperNode& one : hyper_nodes) {
    const v1::HyperNodeSpec& spec = one.spec();
    table.AddRow({{one.name()},
                  {spec.kind()},
                  {TierLabel(spec)},
                  {one.status().parent()},
                  {absl::StrCat(spec.members_size())},
                  {NodesText(one.status())},
                  {DeviceAmounts(one.status().devices(), false)},
                  {DeviceAmounts(one.status().devices(), true)},
                  HealthWord(one.status()),
                  {spec.bandwidth_gbps() == 0 ? "" : absl::StrCat(spec.bandwidth_gbps())},
                  {spec.latency_us() == 0 ? "" : absl::StrCat(spec.latency_us(), "us")},
                  {spec.source()}});
  }
  return table;
}

class HyperNodeTree {
 public:
  HyperNodeTree(const std::vector<v1::HyperNode>& hyper_nodes, int64_t all_nodes)
      : table_({{"DOMAIN", Column::kTree},
                {"TIER"},
                {"NODES", Column::kRight},
                {"DEVICES"},
                {"FREE"},
                {"IN USE"},
                {"HEALTH"},
                {"GBPS", Column::kRight | Column::kWide},
                {"SOURCE", Column::kWide}}),
        all_nodes_(all_nodes) {
    for (const v1::HyperNode& one : hyper_nodes) {
      children_[{one.spec().kind(), one.status().parent()}].push_back(&one);
      kinds_[one.spec().kind()] = 0;
    }
    for (const auto& [kind, unused] : kinds_) AddKind(kind);
  }
  Table Take() { return std::move(table_); }

 private:
  void AddKind(const std::string& kind) {
    int64_t nodes = 0;
    for (const v1::HyperNode* top : children_[{kind, ""}]) nodes += top->status().nodes();
    const size_t root = table_.AddRow({{kind},
                                       {" "},
                                       {absl::StrCat(std::max(nodes, all_nodes_))},
                                       {" "},
                                       {" "},
                                       {" "},
                                       {" "},
                                       {" "},
                                       {" "}});
    AddBelow(kind, "", root);
    if (nodes >= all_nodes_) return;
    table_.AddRow({{"(in none)"},
                   {" "},
                   {absl::StrCat(all_nodes_ - nodes)},
                   {" "},
                   {" "},
                   {" "},
                   {" "},
                   {" "},
                   {" "}},
                  root);
  }

  // The server's trees have no cycles; one is never reached from the top.
  void AddBelow(const std::string& kind, const std::string& parent, size_t parent_row) {
    std::vector<const v1::HyperNode*> below = children_[{kind, parent}];
    std::sort(below.begin(), below.end(),
              [](const v1::HyperNode* a, const v1::HyperNode* b) { return a->name() < b->name(); });
    for (const v1::HyperNode* one : below) {
      const v1::HyperNodeStatus& status = one->status();
      const v1::HyperNodeSpec& spec = one->spec();
      const size_t row =
          table_.AddRow({{one->name()},
                         {TierLabel(spec)},
                         {NodesText(status)},
                         {DeviceAmounts(status.devices(), false)},
                         {DeviceAmounts(status.devices(), true)},
                         {BarOf(status.devices())},
                         HealthWord(status),
                         {spec.bandwidth_gbps() == 0 ? "" : absl::StrCat(spec.bandwidth_gbps())},
                         {spec.source()}},
                        parent_row);
      AddBelow(kind, one->name(), row);
    }
  }

  Table table_;
  const int64_t all_nodes_;
  std::map<std::string, int> kinds_;
  std::map<std::pair<std::string, std::string>, std::vector<const v1::HyperNode*>> children_;
};

// "spine-1 > rack-01": the path from the top.
std::string PathOf(const v1::HyperNode& hyper_node, const std::vector<v1::HyperNode>& all) {
  std::map<std::string, const v1::HyperNode*> by_name;
  for (const v1::HyperNode& one : all) by_name[one.name()] = &one;
  std::string path = hyper_node.name();
  std::string parent = hyper_node.status().parent();
  for (size_t steps = 0; !parent.empty() && steps <= all.size(); ++steps) {
    path = absl::StrCat(parent, " > ", path);
    const auto found = by_name.find(parent);
    parent = found == by_name.end() ? "" : found->second->status().parent();
  }
  return path;
}

std::string MembersText(const v1::HyperNodeSpec& spec) {
  std::string text;
  for (int i = 0; i < std::min(spec.members_size(), kMembersShown); ++i) {
    absl::StrAppend(&text, MemberText(spec.members(i)), "\n");
  }
  if (spec.members_size() > kMembersShown) {
    absl::StrAppend(&text, "and ", spec.members_size() - kMembersShown, " more\n");
  }
  return text;
}

}  // namespace

std::string UseBar(int64_t capacity, int64_t free) {
  if (capacity <= 0) return "";
  const auto used = static_cast<size_t>((capacity - free) * kBarWidth / capacity);
  return absl::StrCat("[", std::string(used, '#'), std::string(kBarWidth - used, '-'), "]");
}

Shape<v1::HyperNode> HyperNodeShape() {
  return {"hypernode", HyperNodeTable,
          [](const v1::HyperNode& hyper_node) { return WriteManifest(hyper_node); }};
}

Table TopologyTable(const std::vector<v1::HyperNode>& hyper_nodes, int64_t all_nodes) {
  return HyperNodeTree(hyper_nodes, all_nodes).Take();
}

std::string DescribeDomain(const v1::HyperNode& hyper_node, const std::vector<v1::HyperNode>& all,
                           const Session& session) {
  const v1::HyperNodeSpec& spec = hyper_node.spec();
  const v1::HyperNodeStatus& status = hyper_node.status();
  Page page;
  page.Add("Name", hyper_node.name());
  page.Add("Kind", spec.kind());
  page.Add("Tier", TierLabel(spec));
  page.Add("Path", PathOf(hyper_node, all));
  page.Add("Health", Paint(HealthWord(status), session.colors()));
  page.Add("Nodes", NodesText(status));
  page.Add("Devices", DeviceAmounts(status.devices(), false));
  page.Add("Free", DeviceAmounts(status.devices(), true));
  page.Add("In use", BarOf(status.devices()));
  if (spec.bandwidth_gbps() > 0)
    page.Add("Bandwidth", absl::StrCat(spec.bandwidth_gbps(), " Gb/s"));
  if (spec.latency_us() > 0) page.Add("Latency", absl::StrCat(spec.latency_us(), "us"));
  page.Add("Source", spec.source().empty() ? "manual" : spec.source());
  page.AddSection("Members", MembersText(spec));
  std::vector<v1::HyperNode> children;
  for (const v1::HyperNode& one : all) {
    if (one.status().parent() == hyper_node.name()) children.push_back(one);
  }
  TableStyle style = session.table_style();
  style.headers = true;
  if (!children.empty()) {
    page.AddSection("Children", HyperNodeTable(children, session).Render(style));
  }
  page.AddSection("Conflicts", absl::StrJoin(status.conflicts(), "\n"));
  return page.Text();
}

}  // namespace berth
