#include "clients/cli/node_selection.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/matched.h"
#include "clients/cli/resource_names.h"

namespace berth {
namespace {

using NodeStub = v1::NodeService::StubInterface;

struct NodeSelection {
  Names names;  // or shell patterns
  Names labels;
  bool yes = false;
};

// True if only the server knows which nodes are meant: for labels and patterns.
bool SelectsByMatch(const NodeSelection& selection) {
  return !selection.labels.empty() ||
         std::any_of(selection.names.begin(), selection.names.end(), IsPattern);
}

// Adds the nodes that have all the labels and match one of the patterns, or any name if there is no
// pattern.
absl::Status AddMatches(Session& session, const Names& patterns, const Names& labels,
                        Names* chosen) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::ListNodesRequest request;
  for (const std::string& label : labels) {
    const auto pair = KeyValueFrom(label);
    (*request.mutable_filter()->mutable_labels())[pair.first] = pair.second;
  }
  std::set<std::string> known(chosen->begin(), chosen->end());
  return (*client)->List<NodeStub, v1::ListNodesRequest, v1::ListNodesResponse>(
      &NodeStub::ListNodes, request, [&](const v1::ListNodesResponse& page) {
        for (const v1::Node& node : page.nodes()) {
          if (!patterns.empty() && !NameMatches(patterns, node.name())) continue;
          if (known.insert(node.name()).second) chosen->push_back(node.name());
        }
        return true;
      });
}

absl::StatusOr<Names> FindNodes(Session& session, const NodeSelection& selection) {
  Names chosen, patterns;
  // Exact names next to patterns are used unchanged, unless a label restricts them.
  for (const std::string& name : selection.names) {
    const bool exact = selection.labels.empty() && !IsPattern(name);
    (exact ? chosen : patterns).push_back(name);
  }
  const absl::Status status = AddMatches(session, patterns, selection.labels, &chosen);
  if (!status.ok()) return status;
  return chosen;
}

ExitCode ReportNoMatch(Session& session, const NodeSelection& selection) {
  const bool named = !selection.names.empty();
  session.err() << "berth: no node matches"
                << (named ? absl::StrCat(" \"", absl::StrJoin(selection.names, "\", \""), "\"",
                                         selection.labels.empty() ? "" : " and the labels")
                          : "")
                << "\n";
  return named ? ExitCode::kNotFound : ExitCode::kOk;
}

ExitCode RunOnSelectedNodes(Session& session, const std::string& verb,
                            const NodeSelection& selection,
                            const std::function<ExitCode(Session&, const Names&)>& run) {
  if (!SelectsByMatch(selection)) {
    if (!selection.names.empty()) return run(session, selection.names);
    session.err() << "berth: no nodes selected: give names, 'PATTERN*' or --label\n";
    return ExitCode::kUsage;
  }
  const absl::StatusOr<Names> names = FindNodes(session, selection);
  if (!names.ok()) return session.Finish(names.status());
  if (names->empty()) return ReportNoMatch(session, selection);
  const bool every = selection.labels.empty() &&
                     std::any_of(selection.names.begin(), selection.names.end(), MatchesEveryName);
  return RunMatched(session, {verb, "node", every ? "'*'" : "", selection.yes}, *names, run);
}

}  // namespace

CLI::App* AddSelectingNodes(CLI::App& noun, Session& session, const std::string& verb,
                            const std::string& description,
                            std::function<ExitCode(Session&, const Names&)> run) {
  auto selection = std::make_shared<NodeSelection>();
  CLI::App* command = AddCommand(noun, session, verb, description,
                                 [selection, verb, run = std::move(run)](Session& s) {
                                   return RunOnSelectedNodes(s, verb, *selection, run);
                                 });
  command->add_option("NAME", selection->names, "names of nodes, or patterns ('n[0-3]*')")
      ->transform(NameOf("node"));
  command->add_option("--label,-l", selection->labels, "nodes with this label; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
  command->add_flag("--yes,-y", selection->yes, "do not ask for confirmation");
  return command;
}

}  // namespace berth
