#include "clients/cli/migrate/migrated_cluster.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/cli/migrate/account_queues.h"
#include "clients/cli/migrate/slurm_parameters.h"
#include "clients/cli/topology/names.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr int64_t kMostPriority = 1'000'000;
constexpr size_t kMostFeatureBytes = 50;

// As part of a label's key.
bool IsPlainWord(absl::string_view text) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const auto alnum = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !text.empty() && text.size() <= kMostFeatureBytes && alnum(text.front()) &&
         alnum(text.back()) && std::all_of(text.begin(), text.end(), plain);
}

class Migration {
 public:
  explicit Migration(const SlurmSite& site) : site_(site) {}

  absl::StatusOr<MigratedCluster> Run() {
    result_.left_out = site_.left_out;
    result_.config.set_cluster_name(site_.cluster_name);
    const bool has_accounts = !site_.associations.empty();
    if (has_accounts) {
      const absl::Status status = AddAccountQueues(site_, &result_);
      if (!status.ok()) return status;
    }
    for (const SlurmPartitionText& partition : site_.partitions)
      AddPartition(partition, has_accounts);
    AddFeatures();
    AddLabels();
    FindPreempted();
    for (const SlurmQosText& qos : site_.qos) AddQos(qos);
    std::stable_sort(result_.left_out.begin(), result_.left_out.end(),
                     [](const LeftOut& a, const LeftOut& b) {
                       return std::tie(a.place.file, a.place.position) <
                              std::tie(b.place.file, b.place.position);
                     });
    return std::move(result_);
  }

 private:
  void LeaveOut(const SourcePlace& place, std::string name, std::string value,
                absl::string_view instead) {
    result_.left_out.push_back({place, std::move(name), std::move(value), std::string(instead)});
  }

  void AddPartition(const SlurmPartitionText& partition, bool has_accounts) {
    config::v1::SlurmPartition* added = result_.config.add_partitions();
    added->set_name(partition.name);
    added->set_default_(partition.is_default);
    const bool all = partition.nodes.size() == site_.nodes.size();
    if (!all && IsPlainWord(partition.name)) {
      (*added->mutable_node_labels())[PartitionLabel(partition.name)] = "true";
    } else if (!all) {
      LeaveOut(partition.place, "PartitionName", partition.name,
               "this name cannot be part of a label: name its nodes in nodeLabels of slurm.yaml");
    }
    SetTime(partition.default_time, [&] { return added->mutable_default_time(); });
    SetTime(partition.max_time, [&] { return added->mutable_max_time(); });
    if (!has_accounts) return AddPartitionQueue(partition, added);
    if (partition.tier != 1)
      LeaveOut(partition.place, "PriorityTier", absl::StrCat(partition.tier),
               "accounts are the queues, and partitions have no priority");
    if (partition.memory_per_node > 0)
      LeaveOut(partition.place, "DefMemPerNode", absl::StrCat(partition.memory_per_node >> 20),
               "accounts are the queues, and partitions have no default memory");
  }

  template <class Field>
  static void SetTime(const std::optional<absl::Duration>& time, Field field) {
    if (time.has_value() && *time != absl::InfiniteDuration()) ToProto(*time, field());
  }

  void AddPartitionQueue(const SlurmPartitionText& partition, config::v1::SlurmPartition* added) {
    v1::Queue& queue = result_.queues.emplace_back();
    queue.set_name(names_.Take(partition.name));
    if (queue.name() != partition.name) added->set_queue(queue.name());
    if (partition.tier != 1) queue.mutable_spec()->set_priority(partition.tier - 1);
    const int64_t memory =
        partition.memory_per_node > 0 ? partition.memory_per_node : site_.memory_per_node;
    if (memory > 0) queue.mutable_spec()->mutable_defaults()->set_memory_bytes(memory);
  }

  static std::string PartitionLabel(const std::string& name) {
    return absl::StrCat("partition.slurm/", name);
  }
  static std::string FeatureLabel(const std::string& name) {
    return absl::StrCat("feature.slurm/", name);
  }

  void AddFeatures() {
    std::set<std::string> features;
    for (const auto& [node, own] : site_.nodes) features.insert(own.begin(), own.end());
    for (const std::string& feature : features) {
      if (IsPlainWord(feature)) {
        (*result_.config.mutable_features())[feature] = FeatureLabel(feature) + "=true";
      } else {
        LeaveOut({}, "Feature", feature, "this name cannot be part of a label");
      }
    }
  }

  // Nodes with the same labels together.
  void AddLabels() {
    std::map<std::string, std::map<std::string, std::string>> labels;
    for (const auto& [node, features] : site_.nodes) {
      for (const std::string& feature : features) {
        if (IsPlainWord(feature)) labels[node][FeatureLabel(feature)] = "true";
      }
    }
    for (const config::v1::SlurmPartition& partition : result_.config.partitions()) {
      if (partition.node_labels().empty()) continue;
      for (const SlurmPartitionText& text : site_.partitions) {
        if (text.name != partition.name()) continue;
        for (const std::string& node : text.nodes) labels[node][PartitionLabel(text.name)] = "true";
      }
    }
    std::map<std::map<std::string, std::string>, std::vector<std::string>> nodes;
    for (const auto& [node, own] : labels) nodes[own].push_back(node);
    for (const auto& [own, names] : nodes) result_.labels.push_back({names, own});
  }

  void AddQos(const SlurmQosText& qos) {
    config::v1::SlurmQos* added = result_.config.add_qos();
    added->set_name(qos.name);
    if (preempted_.contains(qos.name)) added->set_preemptible(true);
    for (const SlurmOptionText& option : qos.options) {
      if (option.key == "priority") {
        AddPriorityClass(qos, option, added);
      } else if (option.key != "preempt" && !IsUsualOfQos(option)) {
        LeaveOut(qos.place, absl::StrCat(option.word, " of QOS ", qos.name), option.value,
                 InsteadOfQosKey(option.key));
      }
    }
  }

  static bool IsUsualOfQos(const SlurmOptionText& option) {
    double number = -1;
    const bool is_number = absl::SimpleAtod(option.value, &number);
    if (option.key == "usagefactor") return is_number && number == 1;
    if (option.key == "gracetime") return option.value == "00:00:00";
    return option.key == "preemptmode" && option.value == "cluster";
  }

  void FindPreempted() {
    for (const SlurmQosText& qos : site_.qos) {
      for (const SlurmOptionText& option : qos.options) {
        if (option.key != "preempt") continue;
        for (const absl::string_view name : absl::StrSplit(option.value, ','))
          preempted_.insert(std::string(name));
      }
    }
  }

  void AddPriorityClass(const SlurmQosText& qos, const SlurmOptionText& option,
                        config::v1::SlurmQos* added) {
    int64_t priority = 0;
    if (!absl::SimpleAtoi(option.value, &priority) || priority == 0) return;
    if (priority > kMostPriority) {
      LeaveOut(qos.place, absl::StrCat("Priority of QOS ", qos.name), option.value,
               absl::StrCat("priorities are at most ", kMostPriority, ", which it gets"));
      priority = kMostPriority;
    }
    v1::PriorityClass& made = result_.priority_classes.emplace_back();
    made.set_name(class_names_.Take(qos.name));
    made.set_value(static_cast<int32_t>(priority));
    made.set_description(absl::StrCat("QOS ", qos.name, " of Slurm"));
    added->set_priority_class(made.name());
  }

  const SlurmSite& site_;
  MigratedCluster result_;
  MigratedNames names_, class_names_;
  std::set<std::string> preempted_;  // names of QOS
};

}  // namespace

absl::StatusOr<MigratedCluster> MigrateSite(const SlurmSite& site) { return Migration(site).Run(); }

}  // namespace berth
