#include "clients/cli/topology_import_commands.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/cli/topology/difference_text.h"
#include "clients/cli/topology/import.h"
#include "clients/cli/topology/names.h"
#include "support/nearest.h"
#include "support/text_file.h"
#include "support/visible_message.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

using NodeStub = v1::NodeService::StubInterface;
using HyperNodeStub = v1::HyperNodeService::StubInterface;
using cli::v1::TopologyDifference;

constexpr size_t kUsualMessageBytes = size_t{4} << 20;  // default limits.message of a server

struct ImportCommand {
  const TopologyFormat* format = nullptr;
  std::vector<std::string> files;
  std::string ports_file;
  std::string name;
  std::string kind;
  NamingOptions naming;
  ImportInput input;
  bool dry_run = false;
};

// An option, whether it was given, and whether the format takes it.
struct OptionUse {
  const char* option;
  bool given;
  bool taken;
};

absl::Status CheckOptions(const ImportCommand& command) {
  const TopologyFormat& format = *command.format;
  const OptionUse uses[] = {
      {"a FILE", !command.files.empty(), format.reads_files},
      {"--labels", !command.input.labels.empty(), format.takes_label_keys},
      {"--ports", !command.ports_file.empty(), format.takes_ports},
      {"--topology", !command.input.topologies.empty(), format.takes_topologies},
      {"--known-nodes", command.input.known_nodes_only, format.has_hosts}};
  for (const OptionUse& use : uses) {
    if (!use.given || use.taken) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--from ", format.name, " takes no ", absl::StripPrefix(use.option, "a ")));
  }
  if (format.reads_files && command.files.empty())
    return absl::InvalidArgumentError(absl::StrCat("--from ", format.name, " needs a FILE"));
  return absl::OkStatus();
}

absl::Status ReadTexts(const std::vector<std::string>& files, std::vector<SourceText>* texts) {
  for (const std::string& file : files) {
    auto text = ReadTextFile(file, kMaxTopologyBytes);
    if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
    texts->push_back({file == "-" ? "stdin" : file, *std::move(text)});
  }
  return absl::OkStatus();
}

absl::Status ListNodes(Session& session, std::vector<LabelledNode>* nodes) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  return (*client)->List<NodeStub, v1::ListNodesRequest, v1::ListNodesResponse>(
      &NodeStub::ListNodes, {}, [&](const v1::ListNodesResponse& page) {
        for (const v1::Node& node : page.nodes()) {
          const auto& labels = node.inventory().labels();
          nodes->push_back({node.name(), {labels.begin(), labels.end()}});
        }
        return true;
      });
}

absl::Status ListHyperNodes(Session& session, std::vector<v1::HyperNode>* hyper_nodes) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  return (*client)->List<HyperNodeStub, v1::ListHyperNodesRequest, v1::ListHyperNodesResponse>(
      &HyperNodeStub::ListHyperNodes, {}, [&](const v1::ListHyperNodesResponse& page) {
        hyper_nodes->insert(hyper_nodes->end(), page.hyper_nodes().begin(),
                            page.hyper_nodes().end());
        return true;
      });
}

// Lists members unknown to the server: most often the source has other names for the nodes.
std::string UnknownNodes(const std::vector<v1::HyperNode>& wanted,
                         const std::vector<LabelledNode>& nodes) {
  std::set<std::string> known;
  for (const LabelledNode& node : nodes) known.insert(node.name);
  std::set<std::string> members, unknown;
  for (const v1::HyperNode& hyper_node : wanted) {
    for (const auto& member : hyper_node.spec().members()) {
      if (member.type() == v1::HyperNodeSpec::Member::NODE) members.insert(member.exact());
    }
  }
  for (const std::string& member : members) {
    if (known.count(member) == 0) unknown.insert(member);
  }
  if (unknown.empty()) return "";
  return absl::StrCat(unknown.size(), " of ", members.size(),
                      " nodes are unknown to the server, and join when they register: ",
                      SomeOf({unknown.begin(), unknown.end()}));
}

// Compares the files with the server.
absl::StatusOr<TopologyDifference> FindDifference(Session& session, ImportCommand& command) {
  ImportInput& input = command.input;
  const bool needs_nodes = command.format->reads_labels || input.known_nodes_only;
  absl::Status status = ReadTexts(command.files, &input.texts);
  if (status.ok() && !command.ports_file.empty())
    status = ReadTexts({command.ports_file}, &input.ports);
  std::vector<v1::HyperNode> present;
  if (status.ok() && needs_nodes) status = ListNodes(session, &input.nodes);
  if (!status.ok()) return status;
  // Errors in a file are reported even if the server is unreachable.
  const auto imported = ReadTopology(*command.format, input, command.kind);
  if (!imported.ok()) return imported.status();
  status = ListHyperNodes(session, &present);
  if (status.ok() && !needs_nodes) status = ListNodes(session, &input.nodes);
  if (!status.ok()) return status;
  const auto wanted = MakeHyperNodes(*imported, command.naming, present);
  if (!wanted.ok()) return wanted.status();
  auto difference = Compare(*wanted, command.naming.source, present);
  if (!difference.ok()) return difference;
  difference->set_dry_run(command.dry_run);
  *difference->mutable_warnings() = {imported->warnings.begin(), imported->warnings.end()};
  const std::string unknown = UnknownNodes(*wanted, input.nodes);
  if (!unknown.empty()) difference->add_warnings(unknown);
  return difference;
}

// All or nothing. With --dry-run the server only validates.
absl::Status Apply(Session& session, const TopologyDifference& difference) {
  v1::ApplyHyperNodesRequest request;
  for (const v1::HyperNode& made : difference.created()) *request.add_hyper_nodes() = made;
  for (const auto& update : difference.updated()) *request.add_hyper_nodes() = update.after();
  for (const v1::HyperNode& gone : difference.deleted()) request.add_delete_names(gone.name());
  if (request.hyper_nodes().empty() && request.delete_names().empty()) return absl::OkStatus();
  request.set_validate_only(difference.dry_run());
  if (const size_t bytes = request.ByteSizeLong(); bytes > kUsualMessageBytes) {
    session.Warn(absl::StrCat("the request has ", bytes,
                              " bytes: limits.message of the server must be larger"));
  }
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  request.set_request_id((*client)->NewRequestId());
  return (*client)->Call(&HyperNodeStub::ApplyHyperNodes, request).status();
}

void PrintDifference(Session& session, TopologyDifference difference) {
  const Format format = session.options.format;
  if (format != Format::kJson && format != Format::kYaml) MakeVisible(&difference);
  switch (format) {
    case Format::kJson:
      session.out() << JsonOf(difference) << "\n";
      return;
    case Format::kYaml:
      session.out() << YamlOf(difference);
      return;
    case Format::kName:
      for (const auto& made : difference.created())
        session.out() << "hypernode/" << made.name() << "\n";
      for (const auto& update : difference.updated())
        session.out() << "hypernode/" << update.after().name() << "\n";
      for (const auto& gone : difference.deleted())
        session.out() << "hypernode/" << gone.name() << "\n";
      return;
    default:
      session.out() << DifferenceText(difference);
  }
}

ExitCode Import(Session& session, ImportCommand& command) {
  session.exact_answers = true;
  const absl::Status usage = CheckOptions(command);
  if (!usage.ok()) {
    session.err() << "berth: " << usage.message() << "\n";
    return ExitCode::kUsage;
  }
  const std::string name = command.name.empty() ? command.format->name : command.name;
  command.naming.source = absl::StrCat("import/", name);
  const absl::StatusOr<TopologyDifference> difference = FindDifference(session, command);
  if (!difference.ok()) return session.Finish(difference.status());
  for (const std::string& warning : difference->warnings()) session.Warn(warning);
  const absl::Status status = Apply(session, *difference);
  // A refused difference is printed, too: it shows what was refused.
  PrintDifference(session, *difference);
  return session.Finish(status);
}

const CLI::Validator& IsDnsLabelText() {
  static const CLI::Validator validator(
      [](const std::string& text) -> std::string {
        return IsDnsLabel(text) ? "" : absl::StrCat("\"", text, "\" is not a DNS label");
      },
      "NAME");
  return validator;
}

// A prefix is the beginning of a DNS label.
const CLI::Validator& IsPrefix() {
  static const CLI::Validator validator(
      [](const std::string& text) -> std::string {
        return IsDnsLabel(text + "x") ? ""
                                      : absl::StrCat("\"", text, "\" cannot begin a DNS label");
      },
      "TEXT");
  return validator;
}

std::string FormatHelp() {
  std::vector<std::string> lines;
  for (const TopologyFormat& format : TopologyFormats())
    lines.push_back(absl::StrCat(format.name, " (", format.description, ")"));
  return absl::StrCat("format of the files: ", absl::StrJoin(lines, ", "));
}

void AddImportOptions(CLI::App* app, ImportCommand* command) {
  app->add_option_function<std::string>(
         "--from",
         [command](const std::string& name) { command->format = FindTopologyFormat(name); },
         FormatHelp())
      ->required()
      ->check([](const std::string& name) -> std::string {
        if (FindTopologyFormat(name) != nullptr) return "";
        std::vector<std::string> known;
        for (const TopologyFormat& format : TopologyFormats()) known.emplace_back(format.name);
        return UnknownWord("unknown format", name, known);
      });
  app->add_option("FILE", command->files, "files to read as one; - is standard input");
  app->add_flag("--dry-run", command->dry_run, "print the difference, change nothing");
  app->add_option("--name", command->name,
                  "name of the import: it maintains source import/NAME; default: the format")
      ->check(IsDnsLabelText());
  app->add_option("--kind", command->kind, "kind of the tree; default network, nvlink for nvlink")
      ->check(IsDnsLabelText());
  app->add_option("--prefix", command->naming.prefix, "prefix of each HyperNode's name")
      ->check(IsPrefix());
  app->add_option("--labels", command->input.labels, "label keys, the coarsest first: zone,rack")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--topology", command->input.topologies, "only these topologies of the file")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--ports", command->ports_file, "CSV of lines node,guid: the node of a GUID");
  app->add_flag("--known-nodes", command->input.known_nodes_only,
                "ignore hosts that are not nodes of this cluster (storage, logins)");
}

}  // namespace

void AddTopologyImportCommand(CLI::App& app, Session& session) {
  const auto nouns =
      app.get_subcommands([](const CLI::App* each) { return each->get_name() == "topology"; });
  CLI::App* noun =
      nouns.empty() ? AddNoun(app, "topology", "which nodes are near each other") : nouns.front();
  auto command = std::make_shared<ImportCommand>();
  CLI::App* import =
      AddCommand(*noun, session, "import", "import HyperNodes from a file or from labels of nodes",
                 [command](Session& s) { return Import(s, *command); });
  AddImportOptions(import, command.get());
}

}  // namespace berth
