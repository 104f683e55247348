#include "clients/slurm/node_rows.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/slurm/pages.h"
#include "support/proto_time.h"

namespace berth {
namespace {

bool HasLabels(const v1::Node& node,
               const google::protobuf::Map<std::string, std::string>& labels) {
  return std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
    const auto found = node.inventory().labels().find(label.first);
    return found != node.inventory().labels().end() && found->second == label.second;
  });
}

absl::StatusOr<std::vector<v1::Queue>> AllQueues(SlurmContext& context) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  v1::ListQueuesRequest request;
  std::vector<v1::Queue> queues;
  const absl::Status status =
      ReadPages(**client, &v1::QueueService::StubInterface::ListQueues, request,
                [&](const v1::ListQueuesResponse& page) {
                  queues.insert(queues.end(), page.queues().begin(), page.queues().end());
                });
  if (!status.ok()) return status;
  return queues;
}

PartitionRow RowOfPartition(const config::v1::SlurmConfig& config,
                            const config::v1::SlurmPartition& partition,
                            const std::vector<v1::Queue>& queues,
                            const std::vector<v1::Node>& nodes) {
  PartitionRow row{.name = partition.name()};
  const std::string& queue = partition.queue().empty() ? partition.name() : partition.queue();
  const auto found = std::find_if(queues.begin(), queues.end(),
                                  [&](const v1::Queue& known) { return known.name() == queue; });
  // With accounts, jobs go to the queues of these.
  row.up = partition.queue().empty() && !config.accounts().empty()
               ? true
               : found != queues.end() && found->status().state() == v1::QUEUE_OPEN;
  if (partition.has_max_time()) row.limit = DurationFrom(partition.max_time());
  if (partition.has_default_time()) row.default_time = DurationFrom(partition.default_time());
  for (const v1::Node& node : nodes) {
    if (HasLabels(node, partition.node_labels())) row.nodes.push_back(node);
  }
  return row;
}

int64_t GpusIn(const v1::ResourceList& list) {
  const auto found = list.counts().find("gpu");
  return found == list.counts().end() ? 0 : static_cast<int64_t>(found->second);
}

}  // namespace

absl::StatusOr<std::vector<v1::Node>> FindNodes(SlurmContext& context) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  v1::ListNodesRequest request;
  std::vector<v1::Node> nodes;
  const absl::Status status =
      ReadPages(**client, &v1::NodeService::StubInterface::ListNodes, request,
                [&](const v1::ListNodesResponse& page) {
                  nodes.insert(nodes.end(), page.nodes().begin(), page.nodes().end());
                });
  if (!status.ok()) return status;
  return nodes;
}

absl::StatusOr<std::vector<PartitionRow>> FindPartitions(SlurmContext& context) {
  const auto queues = AllQueues(context);
  if (!queues.ok()) return queues.status();
  const auto nodes = FindNodes(context);
  if (!nodes.ok()) return nodes.status();
  std::vector<PartitionRow> rows;
  for (const auto& partition : context.config.partitions()) {
    rows.push_back(RowOfPartition(context.config, partition, *queues, *nodes));
    rows.back().is_default = &partition == DefaultPartition(context.config);
  }
  if (!rows.empty()) return rows;
  for (const v1::Queue& queue : *queues) {
    if (queue.status().children_size() > 0) continue;
    PartitionRow row{.name = queue.name(), .is_default = queue.name() == "default"};
    row.up = queue.status().state() == v1::QUEUE_OPEN;
    row.nodes = *nodes;
    rows.push_back(std::move(row));
  }
  return rows;
}

bool Responds(const v1::Node& node) { return node.status().state() == v1::NODE_READY; }

std::string NodeStateText(const v1::Node& node, bool in_full) {
  const v1::NodeStatus& status = node.status();
  const NodeUse use = UseOf(node);
  const auto text = [&](const char* brief, const char* whole) {
    return std::string(in_full ? whole : brief) + (Responds(node) ? "" : "*");
  };
  if (status.state() == v1::NODE_LOST) return text("down", "down");
  if (status.cordoned() || status.draining())
    return status.tasks() > 0 ? text("drng", "draining") : text("drain", "drained");
  if (status.tasks() == 0) return text("idle", "idle");
  return use.used >= use.cpus ? text("alloc", "allocated") : text("mix", "mixed");
}

NodeUse UseOf(const v1::Node& node) {
  const v1::NodeStatus& status = node.status();
  return {.cpus = node.inventory().cpu_millis() / 1000,
          .used = (status.allocated().cpu_millis() + 999) / 1000,
          .memory = node.inventory().memory_bytes(),
          .free = status.free().memory_bytes(),
          .gpus = static_cast<int>(GpusIn(status.capacity())),
          .gpus_used = static_cast<int>(GpusIn(status.allocated()))};
}

std::string GresText(const v1::Node& node) {
  const NodeUse use = UseOf(node);
  if (use.gpus == 0) return "(null)";
  std::map<std::string, int> models;
  for (const v1::Device& device : node.inventory().devices())
    if (device.kind() == "gpu") ++models[device.model()];
  if (models.empty()) return absl::StrCat("gpu:", use.gpus);  // devices are not in lists
  return absl::StrJoin(models, ",", [](std::string* out, const auto& model) {
    absl::StrAppend(out, "gpu:", model.first, model.first.empty() ? "" : ":", model.second);
  });
}

}  // namespace berth
