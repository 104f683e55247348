// Partitions and their nodes, for sinfo and scontrol show.
#ifndef BERTH_CLIENTS_SLURM_NODE_ROWS_H_
#define BERTH_CLIENTS_SLURM_NODE_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/slurm/slurm_config.h"

namespace berth {

struct PartitionRow {
  std::string name;
  bool is_default = false;
  bool up = true;
  absl::Duration limit = absl::InfiniteDuration();
  absl::Duration default_time = absl::InfiniteDuration();
  std::vector<v1::Node> nodes;
};

// By slurm.yaml; without partitions there, the leaf queues, each with all nodes.
absl::StatusOr<std::vector<PartitionRow>> FindPartitions(SlurmContext& context);
absl::StatusOr<std::vector<v1::Node>> FindNodes(SlurmContext& context);

// "idle", "mix", "alloc", "drain", "drng", "down", with "*" if it does not respond; or in full.
std::string NodeStateText(const v1::Node& node, bool in_full = false);
bool Responds(const v1::Node& node);

struct NodeUse {
  int64_t cpus = 0, used = 0;    // whole CPUs
  int64_t memory = 0, free = 0;  // bytes
  int gpus = 0, gpus_used = 0;
};
NodeUse UseOf(const v1::Node& node);
// "gpu:A100:4", "(null)".
std::string GresText(const v1::Node& node);

}  // namespace berth

#endif  // BERTH_CLIENTS_SLURM_NODE_ROWS_H_
