#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/by_name.h"
#include "clients/cli/device_table.h"
#include "clients/cli/human.h"
#include "clients/cli/node_selection.h"
#include "clients/cli/node_tasks.h"
#include "clients/cli/page.h"

namespace berth {
namespace {

using NodeStub = v1::NodeService::StubInterface;

constexpr size_t kDescribedNodeTasks = 20;  // on a page

// "free/capacity" of one resource.
std::string FreeOf(const std::string& resource, int64_t free, int64_t capacity) {
  const auto amount = [&](int64_t of) { return HumanAmount(resource, static_cast<double>(of)); };
  return absl::StrCat(amount(free), "/", amount(capacity));
}

// "gpu 6/8, nic 8/8".
std::string FreeDevices(const v1::NodeStatus& status) {
  std::string text;
  const auto& counts = status.capacity().counts();
  for (const auto& count : std::map<std::string, double>(counts.begin(), counts.end())) {
    const auto free = status.free().counts().find(count.first);
    const double left = free == status.free().counts().end() ? 0 : free->second;
    absl::StrAppend(&text, text.empty() ? "" : ", ", count.first, " ", HumanCount(left), "/",
                    HumanCount(count.second));
  }
  return text;
}

Table NodeTable(const std::vector<v1::Node>& nodes, const Session& session) {
  Table table({{"NAME"},
               {"STATE"},
               {"TASKS", Column::kRight},
               {"FREE CPU", Column::kRight},
               {"FREE MEMORY", Column::kRight},
               {"FREE DEVICES"},
               {"AGE", Column::kRight},
               {"ADDRESS", Column::kWide},
               {"AGENT", Column::kWide},
               {"EPOCH", Column::kRight | Column::kWide},
               {"DOMAINS", Column::kWide},
               {"LABELS", Column::kWide},
               {"REASON", Column::kShorten}});
  for (const v1::Node& node : nodes) {
    const v1::NodeStatus& status = node.status();
    table.AddRow(
        {{node.name()},
         NodeStateWord(status),
         {absl::StrCat(status.tasks())},
         {FreeOf("cpu", status.free().cpu_millis(), status.capacity().cpu_millis())},
         {FreeOf("memory", status.free().memory_bytes(), status.capacity().memory_bytes())},
         {FreeDevices(status)},
         {HumanAge(status.has_registered_time(), status.registered_time(), session.Now())},
         {node.inventory().address()},
         {status.agent_version()},
         {absl::StrCat(status.epoch())},
         {KeyValues(status.domains())},
         {KeyValues(node.inventory().labels())},
         {NodeReason(status, session.Now(), session.io().time_zone)}});
  }
  return table;
}

Shape<v1::Node> NodeShape() {
  return {"node", NodeTable, [](const v1::Node& node) { return YamlOf(node); }};
}

// "Checkpoint since ..., until ...; only GPU-1, GPU-2"; empty without a drain.
std::string DrainText(const v1::NodeStatus& status, absl::TimeZone zone) {
  if (!status.has_drain()) return "";
  const v1::NodeDrain& drain = status.drain();
  std::string text = HumanEnum(drain.mode());
  if (drain.has_begin_time()) {
    absl::StrAppend(&text, " since ", HumanTime(true, drain.begin_time(), zone));
  }
  if (drain.has_deadline()) {
    absl::StrAppend(&text, ", until ", HumanTime(true, drain.deadline(), zone));
  }
  if (drain.devices_size() > 0) {
    absl::StrAppend(&text, "; only ", absl::StrJoin(drain.devices(), ", "));
  }
  return text;
}

constexpr size_t kShownDigest = sizeof "sha256:" - 1 + 12;

Table ImageTable(const v1::Node& node) {
  Table table({{"IMAGE"}, {"DIGEST"}, {"SIZE", Column::kRight}});
  for (const v1::NodeImage& image : node.status().images()) {
    table.AddRow(
        {{image.image()}, {image.digest().substr(0, kShownDigest)}, {HumanBytes(image.bytes())}});
  }
  return table;
}

std::string DescribeNode(const v1::Node& node, const v1::ListTasksResponse& tasks,
                         const Session& session) {
  const v1::NodeStatus& status = node.status();
  Page page;
  page.Add("Name", node.name());
  page.Add("State", Paint(NodeStateWord(status), session.colors()));
  page.Add("Reason", status.reason());
  page.Add("Drain", DrainText(status, session.io().time_zone));
  page.Add("Address", node.inventory().address());
  page.Add("System", absl::StrCat(node.inventory().os(), " ", node.inventory().architecture()));
  page.Add("Agent", status.agent_version());
  page.Add("Boot id", status.boot_id());
  page.Add("Epoch", absl::StrCat(status.epoch()));
  page.Add("Registered", HumanTime(status.has_registered_time(), status.registered_time(),
                                   session.io().time_zone));
  page.Add("Backs off until",
           HumanTime(status.has_backoff_until(), status.backoff_until(), session.io().time_zone));
  if (status.refusals() > 0) {
    page.Add("Refusals", absl::StrCat(status.refusals(), " in a row",
                                      status.refusal().empty() ? "" : ": ", status.refusal()));
  }
  const std::string faults = NodeFaultsText(status, session.Now());
  if (!faults.empty()) {
    page.Add("Faults", absl::StrCat(faults, ", latest ",
                                    HumanTime(true, status.fault_time(), session.io().time_zone)));
  }
  page.Add("Tasks", absl::StrCat(status.tasks()));
  page.Add("Capacity", HumanResources(status.capacity()));
  page.Add("Allocated", HumanResources(status.allocated()));
  page.Add("Free", HumanResources(status.free()));
  page.Add("Domains", KeyValues(status.domains()));
  page.Add("Labels", KeyValues(node.inventory().labels()));
  std::vector<std::string> taints;
  for (const v1::Taint& taint : node.inventory().taints()) {
    taints.push_back(
        absl::StrCat(taint.key(), "=", taint.value(), ":", v1::Taint::Effect_Name(taint.effect())));
  }
  page.Add("Taints", absl::StrJoin(taints, ", "));
  TableStyle style = session.table_style();
  style.headers = true;
  page.AddSection("Devices", DeviceTable(node).Render(style));
  page.AddSection("Links between devices", LinkMatrix(node, style));
  if (node.status().images_size() > 0) page.AddSection("Images", ImageTable(node).Render(style));
  page.AddSection("Tasks", NodeTaskTable(tasks, kDescribedNodeTasks, session).Render(style));
  std::string text = page.Text();
  const size_t count = static_cast<size_t>(tasks.tasks_size());
  if (count > kDescribedNodeTasks) {
    absl::StrAppend(&text, "  ... and ", count - kDescribedNodeTasks, " more: berth node tasks ",
                    node.name(), "\n");
  }
  return text;
}

absl::Status ShowNodeList(Session& session, const v1::ListNodesRequest& request) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Node> nodes;
  const absl::Status status =
      (*client)->List<NodeStub, v1::ListNodesRequest, v1::ListNodesResponse>(
          &NodeStub::ListNodes, request, [&](const v1::ListNodesResponse& page) {
            nodes.insert(nodes.end(), page.nodes().begin(), page.nodes().end());
            return true;
          });
  if (status.ok()) Print(session, nodes, false, NodeShape());
  return status;
}

void AddNodeList(CLI::App& noun, Session& session) {
  auto watch = std::make_shared<bool>(false);
  auto labels = std::make_shared<Names>();
  CLI::App* list = AddCommand(noun, session, "list", "list all nodes by name", [=](Session& s) {
    v1::ListNodesRequest request;
    for (const std::string& label : *labels) {
      const auto pair = KeyValueFrom(label);
      (*request.mutable_filter()->mutable_labels())[pair.first] = pair.second;
    }
    if (!*watch) return s.Finish(ShowNodeList(s, request));
    v1::WatchRequest subject;
    subject.set_nodes(true);
    return WatchList(s, subject, [&] { return ShowNodeList(s, request); });
  });
  list->add_option("--label,-l", *labels, "only nodes with this label; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
  list->add_flag("--watch,-w", *watch, "print the list again after every change");
}

// One of kDrainModes.
const std::vector<std::string> kDrainModes = {"now", "checkpoint", "wait", "when-placed"};
v1::NodeDrain::Mode DrainModeFrom(const std::string& word) {
  if (word == "checkpoint") return v1::NodeDrain::CHECKPOINT;
  if (word == "when-placed") return v1::NodeDrain::WHEN_PLACED;
  return word == "wait" ? v1::NodeDrain::WAIT : v1::NodeDrain::NOW;
}

void AddDrainModes(CLI::App& drains, const std::shared_ptr<v1::DrainNodeRequest>& drain) {
  drains
      .add_option_function<std::string>(
          "--mode", [drain](const std::string& word) { drain->set_mode(DrainModeFrom(word)); },
          "how tasks leave: now (default), checkpoint (once they have saved), wait (as they end), "
          "when-placed (once there is another place)")
      ->check(CLI::IsMember(kDrainModes));
  drains
      .add_option_function<std::string>(
          "--deadline",
          [drain](const std::string& text) {
            ToProto(DurationFrom(text), drain->mutable_deadline());
          },
          "stop tasks that are still there after this time, such as 30m; default for "
          "--mode checkpoint: 10m")
      ->check(kIsDuration);
  drains
      .add_option_function<Names>(
          "--device",
          [drain](const Names& devices) {
            drain->mutable_devices()->Assign(devices.begin(), devices.end());
          },
          "drain only the device with this uuid, not the node; may be repeated")
      ->allow_extra_args(false);
}

void AddSteering(CLI::App& noun, Session& session) {
  auto cordon = std::make_shared<v1::CordonNodeRequest>();
  AddSelectingNodes(noun, session, "cordon", "stop placing tasks on nodes",
                    [cordon](Session& s, const Names& names) {
                      return ChangeByName(s, names, &NodeStub::CordonNode, "cordoned", NodeShape(),
                                          *cordon);
                    })
      ->add_option_function<std::string>(
          "--reason", [cordon](const std::string& reason) { cordon->set_reason(reason); },
          "reason that users see");
  auto drain = std::make_shared<v1::DrainNodeRequest>();
  CLI::App* drains = AddSelectingNodes(
      noun, session, "drain", "cordon nodes and requeue their jobs",
      [drain](Session& s, const Names& names) {
        return ChangeByName(s, names, &NodeStub::DrainNode, "draining", NodeShape(), *drain);
      });
  drains->add_option_function<std::string>(
      "--reason", [drain](const std::string& reason) { drain->set_reason(reason); },
      "reason that users see");
  drains->add_flag_function(
      "--wait-for-jobs", [drain](int64_t) { drain->set_wait_for_jobs(true); },
      "only cordon: let running tasks finish");
  AddDrainModes(*drains, drain);
  AddSelectingNodes(
      noun, session, "uncordon", "place tasks on nodes again", [](Session& s, const Names& names) {
        return ChangeByName(s, names, &NodeStub::UncordonNode, "uncordoned", NodeShape());
      });
}

}  // namespace

void AddNodeCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "node", "inspect and control nodes");
  AddNodeList(noun, session);
  AddNames(noun, session, "get", "show nodes by name", [](Session& s, const Names& names) {
    return GetByName(s, names, &NodeStub::GetNode, NodeShape());
  });
  AddNames(noun, session, "describe", "show details of nodes and their devices",
           [](Session& s, const Names& names) {
             return DescribeByName(
                 s, names, &NodeStub::GetNode, "node",
                 [&](const v1::Node& node) -> absl::StatusOr<std::string> {
                   const auto tasks = TasksOfNode(s, node.name());
                   if (!tasks.ok()) return tasks.status();
                   return DescribeNode(node, *tasks, s);
                 },
                 [&](const v1::Node& node) { return TasksOfNode(s, node.name()); });
           });
  AddNodeTasks(noun, session);
  AddSteering(noun, session);
  AddNames(noun, session, "delete", "delete nodes that are gone and have no tasks",
           [](Session& s, const Names& names) {
             return DeleteByName(s, names, "node", [](Client& client, const std::string& name) {
               return client.DeleteNode(name);
             });
           });
  AddJoinTokenCommands(noun, session);
}

}  // namespace berth
