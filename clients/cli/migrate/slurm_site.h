// What the files of a Slurm cluster say, before it becomes queues, labels and HyperNodes of Berth
// (migrated_cluster.h).
#ifndef BERTH_CLIENTS_CLI_MIGRATE_SLURM_SITE_H_
#define BERTH_CLIENTS_CLI_MIGRATE_SLURM_SITE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/cli/topology/source.h"

namespace berth {

// Limits of one migration; names of nodes: kMaxExpandedNames.
inline constexpr size_t kMaxSlurmAssociations = 200'000;
inline constexpr size_t kMaxSlurmPartitions = 1'000;
inline constexpr size_t kMaxSlurmQos = 1'000;
inline constexpr size_t kMaxLeftOut = 100'000;
inline constexpr size_t kMaxNodeFeatures = 1'000'000;      // of all nodes together
inline constexpr size_t kMaxPartitionMembers = 1'000'000;  // likewise of partitions

// Something that has no counterpart, or not the whole of it.
struct LeftOut {
  SourcePlace place;
  std::string name;  // "PriorityWeightAge"
  std::string value;
  std::string instead;  // what to use, or why there is nothing
};

// NAME=VALUE of an account, a user or a QOS, as its file names it.
struct SlurmOptionText {
  std::string key;  // in lower case, without blanks
  std::string word;
  std::string value;
};

struct SlurmPartitionText {
  std::string name;
  std::set<std::string> nodes;
  bool is_default = false;
  std::optional<absl::Duration> default_time;  // infinite: UNLIMITED
  std::optional<absl::Duration> max_time;
  int64_t memory_per_node = 0;  // DefMemPerNode
  int32_t tier = 1;             // PriorityTier
  SourcePlace place;
};

struct SlurmAssociation {
  std::string account;
  std::string parent;  // of an account; "": root
  std::string user;    // "": the account itself
  std::vector<SlurmOptionText> options;
  SourcePlace place;
};

struct SlurmQosText {
  std::string name;
  std::vector<SlurmOptionText> options;
  SourcePlace place;
};

struct SlurmSite {
  std::string cluster_name;
  int64_t memory_per_node = 0;                         // DefMemPerNode of the cluster
  std::map<std::string, std::set<std::string>> nodes;  // name: features
  std::vector<SlurmPartitionText> partitions;          // in the order of the file
  std::vector<SlurmAssociation> associations;
  std::vector<SlurmQosText> qos;
  std::vector<LeftOut> left_out;
  std::vector<std::string> warnings;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MIGRATE_SLURM_SITE_H_
