#include "offline/whatif/changes.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/specs.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

// The only document of a file, which may only set `part`.
absl::StatusOr<ScenarioDocument> ReadPart(const std::string& path, const char* part) {
  absl::StatusOr<std::vector<ScenarioDocument>> documents = ReadScenarioFile(path);
  if (!documents.ok()) return documents.status();
  if (documents->size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": expected one document, got ", documents->size()));
  }
  sim::v1::Scenario rest = documents->front().scenario;
  rest.clear_name();
  const auto* field = rest.GetDescriptor()->FindFieldByName(part);
  rest.GetReflection()->ClearField(&rest, field);
  if (rest.ByteSizeLong() == 0) return std::move(documents->front());
  return absl::InvalidArgumentError(absl::StrCat(path, ": only \"", part, "\" is allowed"));
}

absl::Status ChangeNodes(const ScenarioDocument& document, SimCluster* cluster) {
  for (int i = 0; i < document.scenario.nodes_size(); ++i) {
    const auto status = RegisterNodes(document.scenario.nodes(i), /*healthy=*/true,
                                      absl::StrCat("nodes[", i, "]"), cluster);
    if (!status.ok()) return Located(document, status);
  }
  return absl::OkStatus();
}

absl::Status ChangeQueues(const ScenarioDocument& document, SimCluster* cluster) {
  for (int i = 0; i < document.scenario.queues_size(); ++i) {
    const sim::v1::Queue& queue = document.scenario.queues(i);
    const std::string path = absl::StrCat("queues[", i, "]");
    const bool known = cluster->state().FindQueue(queue.name()) != nullptr;
    const auto status =
        known ? UpdateQueue(queue, path, cluster) : CreateQueue(queue, path, cluster);
    if (!status.ok()) return Located(document, status);
  }
  return absl::OkStatus();
}

absl::Status ChangeConfig(const ScenarioDocument& document, SimCluster* cluster) {
  const auto config = ToPolicyConfig(document.scenario.config(), "config");
  if (!config.ok()) return Located(document, config.status());
  absl::StatusOr<Policies> policies = Policies::Create(*config);
  if (!policies.ok()) return Located(document, policies.status());
  cluster->SetPolicies(*std::move(policies));
  return absl::OkStatus();
}

struct Addition {
  std::string name;
  int64_t count = 0;
};

absl::StatusOr<Addition> ParseAddition(const std::string& text) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  Addition addition{.name = parts.first, .count = 0};
  if (!addition.name.empty() && absl::SimpleAtoi(parts.second, &addition.count) &&
      addition.count >= 1 && addition.count <= kMaxAddedNodes) {
    return addition;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--add-nodes: \"", text, "\" is not NODE=COUNT, 1 to ", kMaxAddedNodes));
}

// A name that no node has: "n1-more-1", "n1-more-2", ...
std::string FreeName(const ClusterState& state, const std::string& like, int64_t* number) {
  while (true) {
    std::string name = absl::StrCat(like, "-more-", ++*number);
    if (state.FindNode(name) == nullptr) return name;
  }
}

absl::Status AddNodes(const Addition& addition, SimCluster* cluster) {
  const Node* like = cluster->state().FindNode(addition.name);
  if (like == nullptr) {
    return absl::NotFoundError(absl::StrCat("--add-nodes: no node \"", addition.name, "\""));
  }
  const NodeSpec spec = like->spec;
  int64_t number = 0;
  for (int64_t i = 0; i < addition.count; ++i) {
    NodeRegistered event{.id = cluster->state().next_node_id(), .spec = spec, .epoch = 1};
    event.spec.name = FreeName(cluster->state(), addition.name, &number);
    for (Device& device : event.spec.devices) {
      device.uuid = absl::StrCat(event.spec.name, "-", device.uuid);
      device.unhealthy = false;
    }
    if (auto status = cluster->Happen(std::move(event)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// Calls `change` for every named node.
absl::Status ForEachNamed(const std::vector<std::string>& patterns, absl::string_view option,
                          const SimCluster& cluster,
                          absl::FunctionRef<absl::Status(NodeId)> change) {
  for (const std::string& pattern : patterns) {
    const auto names = ExpandNamePattern(pattern);
    if (!names.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": ", names.status().message()));
    }
    for (const std::string& name : *names) {
      const Node* node = cluster.state().FindNode(name);
      if (node == nullptr) {
        return absl::NotFoundError(absl::StrCat(option, ": no node \"", name, "\""));
      }
      if (auto status = change(node->id); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status DrainNode(SimCluster* cluster, NodeId id) {
  return cluster->Happen(
      NodeSteered{.id = id, .cordoned = true, .draining = true, .reason = "what if"});
}

absl::Status LoseNode(SimCluster* cluster, NodeId id) {
  const NodeState state = cluster->state().nodes().At(id).status.state;
  if (state == NodeState::kReady) {
    if (auto status = cluster->Happen(NodeSilenced{.id = id}); !status.ok()) return status;
  }
  return state == NodeState::kLost ? absl::OkStatus() : cluster->Happen(NodeFenced{.id = id});
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ApplyChanges(const Changes& changes, SimCluster* cluster) {
  std::vector<std::string> applied;
  const std::pair<const std::string*,
                  std::pair<const char*, absl::Status (*)(const ScenarioDocument&, SimCluster*)>>
      files[] = {{&changes.queues, {"queues", &ChangeQueues}},
                 {&changes.nodes, {"nodes", &ChangeNodes}},
                 {&changes.config, {"config", &ChangeConfig}}};
  for (const auto& [path, part] : files) {
    if (path->empty()) continue;
    const absl::StatusOr<ScenarioDocument> document = ReadPart(*path, part.first);
    if (!document.ok()) return document.status();
    if (auto status = part.second(*document, cluster); !status.ok()) return status;
    applied.push_back(absl::StrCat(part.first, " of ", *path));
  }
  for (const std::string& text : changes.add_nodes) {
    const absl::StatusOr<Addition> addition = ParseAddition(text);
    if (!addition.ok()) return addition.status();
    if (auto status = AddNodes(*addition, cluster); !status.ok()) return status;
    applied.push_back(absl::StrCat(addition->count, " more nodes like ", addition->name));
  }
  struct Gone {
    const std::vector<std::string>& patterns;
    const char* name;
    absl::Status (*apply)(SimCluster*, NodeId);
  };
  for (const Gone& gone :
       {Gone{changes.drain, "drain", &DrainNode}, Gone{changes.lose, "lose", &LoseNode}}) {
    if (gone.patterns.empty()) continue;
    const auto status = ForEachNamed(gone.patterns, absl::StrCat("--", gone.name), *cluster,
                                     [&](NodeId id) { return gone.apply(cluster, id); });
    if (!status.ok()) return status;
    applied.push_back(absl::StrCat(gone.name, " ", absl::StrJoin(gone.patterns, ", ")));
  }
  return applied;
}

}  // namespace berth
