#include "offline/sim/scenario_load.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/model/image_id.h"
#include "core/model/state_editor.h"
#include "offline/sim/job_history.h"
#include "offline/sim/names.h"
#include "offline/sim/specs.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

constexpr const char* kDefaultQueue = "default";
constexpr int64_t kUsageUnit = 1024;  // Queue::usage counts in 1/1024

std::string Item(const char* list, int index) { return absl::StrCat(list, "[", index, "]"); }

// Parents before children, then by name.
absl::StatusOr<std::vector<int>> QueueOrderOf(const sim::v1::Scenario& scenario) {
  std::vector<int> left;
  std::set<std::string> known = {"root"}, names;
  for (int i = 0; i < scenario.queues_size(); ++i) {
    const std::string& name = scenario.queues(i).name();
    if (name.empty()) return Wrong(Item("queues", i), "a queue needs a name");
    if (!names.insert(name).second) return Wrong(Item("queues", i), name, " is defined twice");
    left.push_back(i);
  }
  std::sort(left.begin(), left.end(), [&](int a, int b) {
    return NaturalLess(scenario.queues(a).name(), scenario.queues(b).name());
  });
  std::vector<int> order;
  while (!left.empty()) {
    std::vector<int> later;
    std::set<std::string> fresh;
    for (int i : left) {
      const std::string& parent = scenario.queues(i).parent();
      const bool ready = parent.empty() || known.count(parent) > 0;
      (ready ? order : later).push_back(i);
      if (ready) fresh.insert(scenario.queues(i).name());
    }
    if (later.size() == left.size()) {
      const sim::v1::Queue& queue = scenario.queues(later[0]);
      return Wrong(Item("queues", later[0]) + ".parent", "no queue \"", queue.parent(),
                   "\", or a cycle");
    }
    known.insert(fresh.begin(), fresh.end());
    left = std::move(later);
  }
  return order;
}

// The queue without limits that could refuse the jobs of the scenario.
sim::v1::Queue WithoutLimits(const sim::v1::Queue& queue) {
  sim::v1::Queue open = queue;
  open.clear_limit();
  open.clear_max_jobs();
  open.clear_max_running_jobs();
  return open;
}

absl::Status LoadQueues(const sim::v1::Scenario& scenario, const std::vector<int>& order,
                        SimCluster* cluster) {
  for (int i : order) {
    const sim::v1::Queue& queue = scenario.queues(i);
    if (queue.name() == "root") continue;
    auto status = CreateQueue(WithoutLimits(queue), Item("queues", i), cluster);
    if (!status.ok()) return status;
  }
  const auto& jobs = scenario.jobs();
  const bool needed =
      scenario.queues_size() == 0 ||
      std::any_of(jobs.begin(), jobs.end(), [](const auto& job) { return job.queue().empty(); });
  if (!needed || cluster->state().FindQueue(kDefaultQueue) != nullptr) return absl::OkStatus();
  sim::v1::Queue queue;
  queue.set_name(kDefaultQueue);
  return CreateQueue(queue, "queues", cluster);
}

absl::Status ApplyQueueLimits(const sim::v1::Scenario& scenario, const std::vector<int>& order,
                              SimCluster* cluster) {
  for (int i : order) {
    const sim::v1::Queue& queue = scenario.queues(i);
    auto status = UpdateQueue(queue, Item("queues", i), cluster);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status LoadNodes(const sim::v1::Scenario& scenario, SimCluster* cluster) {
  std::vector<std::pair<std::string, int>> names;
  for (int i = 0; i < scenario.nodes_size(); ++i) {
    const auto expanded = ExpandNamePattern(scenario.nodes(i).name());
    if (!expanded.ok()) return Under(Item("nodes", i) + ".name", expanded.status());
    for (const std::string& name : *expanded) names.emplace_back(name, i);
    if (names.size() > kMaxScenarioNodes) {
      return Wrong(Item("nodes", i), "more than ", kMaxScenarioNodes, " nodes");
    }
  }
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return NaturalLess(a.first, b.first); });
  for (const auto& [name, index] : names) {
    sim::v1::Node node = scenario.nodes(index);
    node.set_name(name);
    if (cluster->state().FindNode(name) != nullptr) {
      return Wrong(Item("nodes", index), name, " is defined twice");
    }
    auto status = RegisterNodes(node, /*healthy=*/true, Item("nodes", index), cluster);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool HasUnhealthyDevices(const sim::v1::Node& node) {
  return std::any_of(node.devices().begin(), node.devices().end(),
                     [](const sim::v1::Devices& one) { return one.unhealthy_size() > 0; });
}

absl::Status SteerNode(const sim::v1::Node& node, NodeId id, SimCluster* cluster) {
  if (node.cordoned() || node.draining()) {
    auto status = cluster->Happen(NodeSteered{.id = id,
                                              .cordoned = node.cordoned() || node.draining(),
                                              .draining = node.draining(),
                                              .reason = node.reason()});
    if (!status.ok()) return status;
  }
  const bool silent = node.state() == v1::NODE_SILENT || node.state() == v1::NODE_LOST;
  if (silent) {
    if (auto status = cluster->Happen(NodeSilenced{.id = id}); !status.ok()) return status;
  }
  if (node.state() != v1::NODE_LOST) return absl::OkStatus();
  return cluster->Happen(NodeFenced{.id = id});
}

// Sets the node states that would have prevented placing the tasks.
absl::Status SteerNodes(const sim::v1::Scenario& scenario, SimCluster* cluster) {
  for (int i = 0; i < scenario.nodes_size(); ++i) {
    const sim::v1::Node& node = scenario.nodes(i);
    if (HasUnhealthyDevices(node)) {
      auto status = RegisterNodes(node, /*healthy=*/false, Item("nodes", i), cluster);
      if (!status.ok()) return status;
    }
    const auto names = ExpandNamePattern(node.name());
    for (const std::string& name : *names) {
      auto status = SteerNode(node, cluster->state().FindNode(name)->id, cluster);
      if (!status.ok()) return Under(Item("nodes", i), status);
    }
  }
  return absl::OkStatus();
}

// As an agent would that has registered.
absl::Status ReportImages(const sim::v1::Node& node, NodeId id, SimCluster* cluster) {
  std::set<ImageId> reported;
  for (const std::string& image : node.images()) reported.insert(ImageIdOf(image));
  const std::vector<ImageId>& known = cluster->state().nodes().At(id).images;
  NodeImagesChanged event{.id = id, .gained = {}, .lost = {}};
  std::set_difference(reported.begin(), reported.end(), known.begin(), known.end(),
                      std::back_inserter(event.gained));
  std::set_difference(known.begin(), known.end(), reported.begin(), reported.end(),
                      std::back_inserter(event.lost));
  if (event.gained.empty() && event.lost.empty()) return absl::OkStatus();
  return cluster->Happen(std::move(event));
}

}  // namespace

Time ScenarioStart() { return absl::FromUnixSeconds(1'767'225'600); }

absl::Status CreateQueue(const sim::v1::Queue& queue, const std::string& path,
                         SimCluster* cluster) {
  absl::StatusOr<QueueSpec> spec = ToQueueSpec(queue, cluster->state(), path);
  if (!spec.ok()) return spec.status();
  const QueueId id = cluster->state().next_queue_id();
  return Under(path, cluster->Happen(QueueCreated{id, *std::move(spec)}));
}

absl::Status UpdateQueue(const sim::v1::Queue& queue, const std::string& path,
                         SimCluster* cluster) {
  const Queue* known = cluster->state().FindQueue(queue.name());
  if (known == nullptr) return CreateQueue(queue, path, cluster);
  absl::StatusOr<QueueSpec> spec = ToQueueSpec(queue, cluster->state(), path);
  if (!spec.ok()) return spec.status();
  const QueueId id = known->id;
  auto usage = ToAmounts(queue.usage(), true, path + ".usage");
  if (!usage.ok()) return usage.status();
  if (!(known->spec == *spec)) {
    auto status = cluster->Happen(QueueUpdated{id, *std::move(spec)});
    if (!status.ok()) return Under(path, status);
  }
  if (!usage->empty()) {
    for (NamedAmount& amount : *usage) amount.amount *= kUsageUnit;
    cluster->SetUsage(id, *std::move(usage));
  }
  if (known->open != queue.closed()) return absl::OkStatus();
  return Under(path, cluster->Happen(QueueOpened{id, !queue.closed()}));
}

absl::Status RegisterNodes(const sim::v1::Node& node, bool healthy, const std::string& path,
                           SimCluster* cluster) {
  const auto names = ExpandNamePattern(node.name());
  if (!names.ok()) return Under(path + ".name", names.status());
  for (const std::string& name : *names) {
    absl::StatusOr<NodeSpec> spec = ToNodeSpec(node, name, healthy, path);
    if (!spec.ok()) return spec.status();
    const Node* known = cluster->state().FindNode(name);
    NodeRegistered event;
    event.id = known == nullptr ? cluster->state().next_node_id() : known->id;
    event.epoch = known == nullptr ? 1 : known->status.epoch + 1;
    event.spec = *std::move(spec);
    event.agent_id = name;
    event.boot_id = absl::StrCat("boot-", event.epoch);
    const NodeId id = event.id;
    absl::Status status = cluster->Happen(std::move(event));
    if (status.ok()) status = ReportImages(node, id, cluster);
    if (!status.ok()) return Under(path, status);
  }
  return absl::OkStatus();
}

absl::Status ChangeHyperNodes(const RepeatedPtrField<sim::v1::HyperNode>& hyper_nodes,
                              const std::vector<std::string>& deleted, const std::string& path,
                              SimCluster* cluster) {
  std::vector<HyperNodeSpec> specs;
  for (int i = 0; i < hyper_nodes.size(); ++i) {
    const std::string here = Item(path.c_str(), i);
    auto some = ToHyperNodeSpecs(hyper_nodes[i], here);
    if (!some.ok()) return some.status();
    for (HyperNodeSpec& spec : *some) specs.push_back(std::move(spec));
  }
  const auto names = ExpandPlaces(deleted);
  if (!names.ok()) return Under(path, names.status());
  if (specs.empty() && names->empty()) return absl::OkStatus();
  return Under(path, cluster->ChangeHyperNodes(specs, *names));
}

absl::Status LoadScenario(const sim::v1::Scenario& scenario, SimCluster* cluster) {
  const absl::StatusOr<std::vector<int>> order = QueueOrderOf(scenario);
  if (!order.ok()) return order.status();
  auto status = LoadQueues(scenario, *order, cluster);
  if (status.ok()) status = LoadNodes(scenario, cluster);
  if (status.ok()) {
    status = ChangeHyperNodes(scenario.hyper_nodes(), {}, "hyper_nodes", cluster);
  }
  if (status.ok()) status = SubmitJobs(scenario.jobs(), "jobs", cluster);
  if (status.ok()) status = SteerNodes(scenario, cluster);
  if (status.ok()) status = ApplyQueueLimits(scenario, *order, cluster);
  return status;
}

}  // namespace berth
