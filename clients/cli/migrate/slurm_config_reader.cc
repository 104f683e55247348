#include "clients/cli/migrate/slurm_config_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/migrate/slurm_parameters.h"
#include "clients/cli/topology/node_names.h"
#include "clients/cli/topology/slurm_lines.h"
#include "clients/slurm/values.h"

namespace berth {
namespace {

constexpr absl::string_view kDefaultLine = "DEFAULT";
constexpr absl::string_view kAllNodes = "ALL";

bool IsWord(absl::string_view value, absl::string_view word) {
  return absl::EqualsIgnoreCase(value, word);
}

// A line with the settings of the last DEFAULT line of its kind that it does not set itself.
SlurmLine WithDefaults(const SlurmLine& line, const SlurmLine& defaults) {
  SlurmLine all = line;
  for (size_t i = 1; i < defaults.size(); ++i) {
    const auto same = [&](const SlurmSetting& own) { return own.key == defaults[i].key; };
    if (std::none_of(line.begin(), line.end(), same)) all.push_back(defaults[i]);
  }
  return all;
}

class SlurmConfigReader {
 public:
  explicit SlurmConfigReader(SlurmSite* site) : site_(*site) {}

  absl::Status ReadFile(const SourceText& text) {
    YamlErrors errors(text.name);
    file_ = text.name;
    errors_ = &errors;
    ReadSlurmLines(text.text, &errors, [&](const SlurmLine& line) { ReadLine(line); });
    return errors.status();
  }

  // Partitions may name nodes and sets of later lines.
  absl::Status Finish() {
    std::vector<std::string> failures;
    for (auto& [line, file] : partitions_) {
      YamlErrors errors(file);
      file_ = file;
      errors_ = &errors;
      AddPartition(line);
      if (!errors.empty()) failures.emplace_back(errors.status().message());
    }
    if (const std::string warning = lists_.Warning(); !warning.empty())
      site_.warnings.push_back(warning);
    if (failures.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrJoin(failures, "\n"));
  }

 private:
  void ReadLine(const SlurmLine& line) {
    const SlurmSetting& first = line.front();
    if (first.key == "nodename") {
      if (IsWord(first.value, kDefaultLine)) {
        node_defaults_ = WithDefaults(line, node_defaults_);
        return;
      }
      AddNodes(WithDefaults(line, node_defaults_));
    } else if (first.key == "partitionname") {
      KeepPartition(line);
    } else if (first.key == "nodeset") {
      AddNodeSet(line);
    } else if (first.key == "downnodes") {
      LeaveOut(first, "drain or cordon the nodes (berth node drain)");
    } else {
      for (const SlurmSetting& setting : line) ReadParameter(setting);
    }
  }

  void ReadParameter(const SlurmSetting& setting) {
    if (setting.key == "clustername") {
      site_.cluster_name = setting.value;
    } else if (setting.key == "defmempernode") {
      ReadMemory(setting, &site_.memory_per_node);
    } else {
      LeaveOut(setting, InsteadOfParameter(setting.key));
    }
  }

  void AddNodes(const SlurmLine& line) {
    const auto names = lists_.ExpandNodes(line.front().value);
    if (!names.ok()) return errors_->Add(line.front().position, names.status().message());
    std::set<std::string> features;
    for (const SlurmSetting& setting : line) {
      if (setting.key == "feature" || setting.key == "features") {
        const std::vector<std::string> words =
            absl::StrSplit(setting.value, ',', absl::SkipWhitespace());
        features.insert(words.begin(), words.end());
      } else if (setting.key == "state" && IsUsual(setting.value)) {
        continue;
      } else if (&setting != &line.front() && !IsDiscovered(setting.key)) {
        LeaveOut(setting, InsteadOfNodeKey(setting.key));
      }
    }
    features_ += names->size() * features.size();
    if (features_ > kMaxNodeFeatures) {
      return errors_->Add(line.front().position,
                          absl::StrCat("more than ", kMaxNodeFeatures, " features of nodes"));
    }
    for (const std::string& name : *names) {
      if (!site_.nodes.emplace(name, features).second)
        errors_->Add(line.front().position, absl::StrCat("node ", name, " is defined twice"));
    }
  }

  static bool IsUsual(absl::string_view state) {
    return IsWord(state, "UNKNOWN") || IsWord(state, "IDLE") || IsWord(state, "UP");
  }

  void AddNodeSet(const SlurmLine& line) {
    const std::string& name = line.front().value;
    for (const SlurmSetting& setting : line) {
      if (setting.key == "nodes") {
        node_sets_[name].push_back({false, setting.value});
      } else if (setting.key == "feature") {
        node_sets_[name].push_back({true, setting.value});
      } else if (&setting != &line.front()) {
        errors_->Add(setting.position, absl::StrCat("unknown key ", setting.word));
      }
    }
  }

  void KeepPartition(const SlurmLine& line) {
    if (IsWord(line.front().value, kDefaultLine)) {
      partition_defaults_ = WithDefaults(line, partition_defaults_);
    } else if (partitions_.size() < kMaxSlurmPartitions) {
      partitions_.push_back({WithDefaults(line, partition_defaults_), file_});
    } else {
      errors_->Add(line.front().position,
                   absl::StrCat("more than ", kMaxSlurmPartitions, " partitions"));
    }
  }

  void AddPartition(const SlurmLine& line) {
    SlurmPartitionText partition;
    partition.name = line.front().value;
    partition.place = {file_, line.front().position};
    if (partition.name.empty() || partition.name.find_first_of(", ") != std::string::npos)
      errors_->Add(partition.place.position, "PartitionName must be one name");
    for (const SlurmPartitionText& other : site_.partitions) {
      if (other.name == partition.name)
        errors_->Add(partition.place.position, absl::StrCat(partition.name, " is defined twice"));
    }
    for (size_t i = 1; i < line.size(); ++i) ReadPartitionKey(line[i], &partition);
    site_.partitions.push_back(std::move(partition));
  }

  void ReadPartitionKey(const SlurmSetting& setting, SlurmPartitionText* partition) {
    if (setting.key == "nodes") {
      AddPartitionNodes(setting, &partition->nodes);
    } else if (setting.key == "default") {
      partition->is_default = IsWord(setting.value, "YES");
    } else if (setting.key == "defaulttime") {
      ReadTime(setting, &partition->default_time);
    } else if (setting.key == "maxtime") {
      ReadTime(setting, &partition->max_time);
    } else if (setting.key == "defmempernode") {
      ReadMemory(setting, &partition->memory_per_node);
    } else if (setting.key == "prioritytier") {
      if (!absl::SimpleAtoi(setting.value, &partition->tier))
        errors_->Add(setting.position, "PriorityTier must be a number");
    } else if (!IsUsualOfPartition(setting)) {
      LeaveOut(setting, InsteadOfPartitionKey(setting.key));
    }
  }

  static bool IsUsualOfPartition(const SlurmSetting& setting) {
    if (setting.key == "oversubscribe" || setting.key == "hidden")
      return IsWord(setting.value, "NO");
    return setting.key == "state" && IsWord(setting.value, "UP");
  }

  void AddPartitionNodes(const SlurmSetting& setting, std::set<std::string>* nodes) {
    for (const absl::string_view part : SplitNameList(setting.value)) {
      if (IsWord(part, kAllNodes)) {
        for (const auto& [name, features] : site_.nodes) AddMember(setting, name, nodes);
      } else if (const auto found = node_sets_.find(std::string(part)); found != node_sets_.end()) {
        for (const NodeSetPart& each : found->second) AddNodeSetPart(setting, each, nodes);
      } else {
        AddNamedNodes(setting, part, nodes);
      }
    }
  }

  struct NodeSetPart {
    bool feature = false;
    std::string value;
  };

  void AddNodeSetPart(const SlurmSetting& setting, const NodeSetPart& part,
                      std::set<std::string>* nodes) {
    if (!part.feature) return AddNamedNodes(setting, part.value, nodes);
    for (const auto& [name, features] : site_.nodes) {
      if (features.contains(part.value)) AddMember(setting, name, nodes);
    }
  }

  void AddNamedNodes(const SlurmSetting& setting, absl::string_view list,
                     std::set<std::string>* nodes) {
    NameLists lists;  // a node is in many partitions
    const auto names = lists.ExpandNodes(list);
    if (!names.ok()) return errors_->Add(setting.position, names.status().message());
    for (const std::string& name : *names) {
      if (!site_.nodes.contains(name))
        errors_->Add(setting.position, absl::StrCat("there is no NodeName=", name));
      AddMember(setting, name, nodes);
    }
  }

  void AddMember(const SlurmSetting& setting, const std::string& name,
                 std::set<std::string>* nodes) {
    if (members_ < kMaxPartitionMembers && nodes->insert(name).second) ++members_;
    if (members_ < kMaxPartitionMembers || std::exchange(told_, true)) return;
    errors_->Add(setting.position, absl::StrCat("partitions with more than ", kMaxPartitionMembers,
                                                " nodes together"));
  }

  void ReadTime(const SlurmSetting& setting, std::optional<absl::Duration>* time) {
    const auto read = ParseSlurmTime(setting.value);
    if (!read.ok()) return errors_->Add(setting.position, read.status().message());
    *time = *read;
  }

  void ReadMemory(const SlurmSetting& setting, int64_t* bytes) {
    if (IsWord(setting.value, "UNLIMITED")) return;
    const auto read = ParseSlurmMemory(setting.value);
    if (!read.ok()) return errors_->Add(setting.position, read.status().message());
    *bytes = *read;
  }

  void LeaveOut(const SlurmSetting& setting, absl::string_view instead) {
    if (site_.left_out.size() >= kMaxLeftOut) {
      return errors_->Add(setting.position,
                          absl::StrCat("more than ", kMaxLeftOut, " settings have no counterpart"));
    }
    site_.left_out.push_back(
        {{file_, setting.position}, setting.word, setting.value, std::string(instead)});
  }

  SlurmSite& site_;
  std::string file_;
  YamlErrors* errors_ = nullptr;  // of the file that is read now
  NameLists lists_;
  size_t features_ = 0, members_ = 0;
  bool told_ = false;  // of too many members
  SlurmLine node_defaults_, partition_defaults_;
  std::map<std::string, std::vector<NodeSetPart>> node_sets_;
  std::vector<std::pair<SlurmLine, std::string>> partitions_;  // with their files
};

}  // namespace

absl::Status ReadSlurmConfigFiles(const std::vector<SourceText>& texts, SlurmSite* site) {
  SlurmConfigReader reader(site);
  std::vector<std::string> errors;
  for (const SourceText& text : texts) {
    const absl::Status status = reader.ReadFile(text);
    if (!status.ok()) errors.emplace_back(status.message());
  }
  if (errors.empty()) return reader.Finish();
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

}  // namespace berth
