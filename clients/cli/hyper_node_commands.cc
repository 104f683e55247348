// "berth hypernode ..." and "berth topology ...".
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "clients/cli/apply.h"
#include "clients/cli/by_name.h"
#include "clients/cli/hyper_node_view.h"
#include "clients/cli/resource_names.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using HyperNodeStub = v1::HyperNodeService::StubInterface;
using Member = v1::HyperNodeSpec::Member;

absl::StatusOr<std::vector<v1::HyperNode>> FetchAll(Session& session, const std::string& kind,
                                                    const std::string& source = "") {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::ListHyperNodesRequest request;
  request.set_kind(kind);
  request.set_source(source);
  std::vector<v1::HyperNode> all;
  const absl::Status status =
      (*client)->List<HyperNodeStub, v1::ListHyperNodesRequest, v1::ListHyperNodesResponse>(
          &HyperNodeStub::ListHyperNodes, request, [&](const v1::ListHyperNodesResponse& page) {
            all.insert(all.end(), page.hyper_nodes().begin(), page.hyper_nodes().end());
            return true;
          });
  if (!status.ok()) return status;
  return all;
}

// ---- hypernode

// The values of --tier, --node and the other options.
struct HyperNodeArguments {
  std::string name;
  std::optional<int32_t> tier;
  std::optional<std::string> tier_name, kind, health, reason, source;
  std::optional<int64_t> bandwidth, latency;
  std::vector<std::string> nodes, regexes, labels, children;

  bool members() const {
    return !nodes.empty() || !regexes.empty() || !labels.empty() || !children.empty();
  }
};

void AddMembers(const HyperNodeArguments& arguments, v1::HyperNodeSpec* spec) {
  const auto add = [&](const std::vector<std::string>& texts, Member::Type type,
                       void (*set)(Member*, const std::string&)) {
    for (const std::string& text : texts) {
      Member* member = spec->add_members();
      member->set_type(type);
      set(member, text);
    }
  };
  const auto exact = [](Member* m, const std::string& text) { m->set_exact(text); };
  add(arguments.nodes, Member::NODE, exact);
  add(arguments.regexes, Member::NODE,
      [](Member* m, const std::string& text) { m->set_regex(text); });
  add(arguments.labels, Member::NODE,
      [](Member* m, const std::string& text) { m->set_label(text); });
  add(arguments.children, Member::HYPER_NODE, exact);
}

// Given values replace the present ones. Any given member replaces all present members.
void Fill(const HyperNodeArguments& arguments, v1::HyperNodeSpec* spec) {
  if (arguments.tier.has_value()) spec->set_tier(*arguments.tier);
  if (arguments.tier_name.has_value()) spec->set_tier_name(*arguments.tier_name);
  if (arguments.kind.has_value()) spec->set_kind(*arguments.kind);
  if (arguments.bandwidth.has_value()) spec->set_bandwidth_gbps(*arguments.bandwidth);
  if (arguments.latency.has_value()) spec->set_latency_us(*arguments.latency);
  if (arguments.health.has_value()) {
    const bool ok = *arguments.health == "ok";
    spec->set_health(ok ? v1::HyperNodeSpec::OK : v1::HyperNodeSpec::DEGRADED);
    if (ok) spec->clear_health_reason();
  }
  if (arguments.reason.has_value()) spec->set_health_reason(*arguments.reason);
  if (arguments.source.has_value()) spec->set_source(*arguments.source);
  if (arguments.members()) spec->clear_members();
  AddMembers(arguments, spec);
}

ExitCode CreateHyperNode(Session& session, const HyperNodeArguments& arguments) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  v1::CreateHyperNodeRequest request;
  request.mutable_hyper_node()->set_name(arguments.name);
  Fill(arguments, request.mutable_hyper_node()->mutable_spec());
  const absl::StatusOr<v1::HyperNode> made = (*client)->CreateHyperNode(request);
  if (made.ok()) PrintChanged(session, *made, "created", HyperNodeShape());
  return session.Finish(made.status());
}

ExitCode UpdateHyperNode(Session& session, const HyperNodeArguments& arguments) {
  v1::GetHyperNodeRequest get;
  get.set_name(arguments.name);
  absl::StatusOr<v1::HyperNode> current = session.Call(&HyperNodeStub::GetHyperNode, get);
  if (!current.ok()) return session.Finish(current.status());
  v1::UpdateHyperNodeRequest request;
  *request.mutable_hyper_node() = *std::move(current);
  request.mutable_hyper_node()->clear_status();
  Fill(arguments, request.mutable_hyper_node()->mutable_spec());
  const absl::StatusOr<v1::HyperNode> made = session.Call(&HyperNodeStub::UpdateHyperNode, request);
  if (made.ok()) PrintChanged(session, *made, "updated", HyperNodeShape());
  return session.Finish(made.status());
}

template <class Value>
void AddValue(CLI::App* command, const char* option, std::optional<Value>& value,
              const char* help) {
  command->add_option_function<Value>(
      option, [&value](const Value& given) { value = given; }, help);
}

void AddHyperNodeOptions(CLI::App* command, HyperNodeArguments& arguments) {
  command->add_option("NAME", arguments.name, "HyperNode")
      ->required()
      ->transform(NameOf("hypernode"));
  AddValue(command, "--tier", arguments.tier, "1 is closest; above the tier of every member");
  AddValue(command, "--tier-name", arguments.tier_name, "name of the tier, such as rack");
  AddValue(command, "--bandwidth-gbps", arguments.bandwidth, "bandwidth of each member's link");
  AddValue(command, "--latency-us", arguments.latency, "latency of that link");
  command
      ->add_option_function<std::string>(
          "--health", [&arguments](const std::string& text) { arguments.health = text; },
          "ok or degraded")
      ->check(CLI::IsMember({"ok", "degraded"}));
  AddValue(command, "--reason", arguments.reason, "why it is degraded");
  const auto members = [&](const char* option, std::vector<std::string>& list, const char* help) {
    return command->add_option(option, list, help)->allow_extra_args(false);
  };
  members("--node", arguments.nodes, "a node as member; may be repeated, as the next three")
      ->transform(NameOf("node"));
  members("--regex", arguments.regexes, "nodes whose whole name matches (RE2)");
  members("--label,-l", arguments.labels, "nodes with label KEY=VALUE, several joined by ','");
  members("--child", arguments.children, "a HyperNode as member")->transform(NameOf("hypernode"));
}

absl::Status ShowHyperNodeList(Session& session, const std::string& kind,
                               const std::string& source) {
  const absl::StatusOr<std::vector<v1::HyperNode>> all = FetchAll(session, kind, source);
  if (all.ok()) Print(session, *all, false, HyperNodeShape());
  return all.status();
}

void AddHyperNodeList(CLI::App& noun, Session& session) {
  auto watch = std::make_shared<bool>(false);
  auto kind = std::make_shared<std::string>();
  auto source = std::make_shared<std::string>();
  CLI::App* list =
      AddCommand(noun, session, "list", "list all HyperNodes by kind and name", [=](Session& s) {
        if (!*watch) return s.Finish(ShowHyperNodeList(s, *kind, *source));
        v1::WatchRequest subject;
        subject.set_nodes(true);
        subject.set_hyper_nodes(true);
        return WatchList(s, subject, [&] { return ShowHyperNodeList(s, *kind, *source); });
      });
  list->add_option("--kind,-k", *kind, "only HyperNodes of this tree");
  list->add_option("--source", *source, "only HyperNodes of this source: import/NAME or agents");
  list->add_flag("--watch,-w", *watch, "print the list again after every change");
}

void AddHyperNodeApply(CLI::App& noun, Session& session) {
  auto files = std::make_shared<Names>();
  auto dry_run = std::make_shared<bool>(false);
  CLI::App* apply =
      AddCommand(noun, session, "apply", "create or update HyperNodes from manifests, all or none",
                 [=](Session& s) {
                   const auto manifests = ReadManifestFiles(s, *files, ManifestOptions());
                   return manifests.ok() ? ApplyHyperNodes(s, *manifests, *dry_run)
                                         : FinishReading(s, manifests.status());
                 });
  apply
      ->add_option("--file,-f", *files,
                   "manifests, one or more documents each; - is standard input")
      ->required();
  apply->add_flag("--dry-run", *dry_run, "only check whether they would be accepted");
}

// ---- topology

absl::Status ShowHyperNodes(Session& session, const std::string& kind) {
  const absl::StatusOr<std::vector<v1::HyperNode>> all = FetchAll(session, kind);
  if (!all.ok()) return all.status();
  if (session.options.format != Format::kTable && session.options.format != Format::kWide) {
    Print(session, *all, false, HyperNodeShape());
    return absl::OkStatus();
  }
  const auto info =
      session.Call(&v1::ClusterService::StubInterface::GetClusterInfo, v1::GetClusterInfoRequest());
  if (!info.ok()) return info.status();
  int64_t nodes = 0;
  for (const auto& state : info->nodes()) nodes += state.second;
  if (all->empty()) session.err() << "no hypernodes\n";
  session.out() << TopologyTable(*all, nodes).Render(session.table_style());
  return absl::OkStatus();
}

absl::StatusOr<std::string> DescribeHyperNode(Session& session, const v1::HyperNode& hyper_node) {
  const absl::StatusOr<std::vector<v1::HyperNode>> all =
      FetchAll(session, hyper_node.spec().kind());
  if (!all.ok()) return all.status();
  return DescribeDomain(hyper_node, *all, session);
}

ExitCode DescribeAll(Session& session, const Names& names) {
  return DescribeByName(
      session, names, &HyperNodeStub::GetHyperNode, "hypernode",
      [&](const v1::HyperNode& hyper_node) { return DescribeHyperNode(session, hyper_node); });
}

void AddTopologyCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "topology", "the trees of performance domains");
  auto kind = std::make_shared<std::string>();
  auto watch = std::make_shared<bool>(false);
  CLI::App* show =
      AddCommand(noun, session, "show", "show trees with nodes and free devices", [=](Session& s) {
        if (!*watch) return s.Finish(ShowHyperNodes(s, *kind));
        v1::WatchRequest subject;
        subject.set_nodes(true);
        subject.set_hyper_nodes(true);
        return WatchList(s, subject, [&] { return ShowHyperNodes(s, *kind); });
      });
  show->add_option("--kind,-k", *kind, "only this tree");
  show->add_flag("--watch,-w", *watch, "print it again after every change");
  AddNames(noun, session, "describe", "show details of domains", DescribeAll);
}

}  // namespace

void AddHyperNodeCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "hypernode", "performance domains of nodes: racks, spines");
  AddHyperNodeList(noun, session);
  AddNames(noun, session, "get", "show HyperNodes by name", [](Session& s, const Names& names) {
    return GetByName(s, names, &HyperNodeStub::GetHyperNode, HyperNodeShape());
  });
  AddNames(noun, session, "describe", "show details of HyperNodes", DescribeAll);
  auto created = std::make_shared<HyperNodeArguments>();
  CLI::App* create = AddCommand(noun, session, "create", "create a HyperNode",
                                [created](Session& s) { return CreateHyperNode(s, *created); });
  AddHyperNodeOptions(create, *created);
  AddValue(create, "--kind,-k", created->kind, "tree it belongs to; default network");
  AddValue(create, "--source", created->source, "what maintains it; default: you");
  auto updated = std::make_shared<HyperNodeArguments>();
  AddHyperNodeOptions(AddCommand(noun, session, "update",
                                 "change the given fields; given members replace all members",
                                 [updated](Session& s) { return UpdateHyperNode(s, *updated); }),
                      *updated);
  AddNames(noun, session, "delete", "delete HyperNodes; their nodes remain",
           [](Session& s, const Names& names) {
             return DeleteByName(s, names, "hypernode",
                                 [](Client& client, const std::string& name) {
                                   return client.DeleteHyperNode(name);
                                 });
           });
  AddHyperNodeApply(noun, session);
  AddTopologyCommands(app, session);
}

}  // namespace berth
