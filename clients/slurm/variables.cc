#include "clients/slurm/variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/slurm/hosts.h"
#include "support/text_file.h"

namespace berth {
namespace {

constexpr char kBatchVariable[] = "BERTH_SLURM_BATCH_";
// The kernel takes 128 KiB for one variable.
constexpr size_t kVariableBytes = size_t{96} << 10;
constexpr int64_t kMiBOfVariable = int64_t{1} << 20;

// Ours, but not of a process of a Slurm job.
bool IsOfBerthTasks(absl::string_view name) {
  static constexpr std::array<absl::string_view, 8> kRanks = {
      "RANK",       "LOCAL_RANK", "WORLD_SIZE",    "LOCAL_WORLD_SIZE",
      "GROUP_RANK", "NODE_RANK",  "NOTIFY_SOCKET", "WATCHDOG_USEC"};
  return std::find(kRanks.begin(), kRanks.end(), name) != kRanks.end() ||
         absl::StartsWith(name, "PET_") || absl::StartsWith(name, "TORCHELASTIC_") ||
         absl::StartsWith(name, kBatchVariable);
}

// The submitter's go before those of the agent.
bool IsOfUser(absl::string_view name) {
  static constexpr std::array<absl::string_view, 5> kUsers = {"HOME", "USER", "LOGNAME", "PATH",
                                                              "TERM"};
  return std::find(kUsers.begin(), kUsers.end(), name) != kUsers.end();
}

std::string ValueIn(const Variables& own, const std::string& name) {
  const auto found = own.find(name);
  return found == own.end() ? "" : found->second;
}

int NumberIn(const Variables& own, const std::string& name, int otherwise) {
  int value = 0;
  return absl::SimpleAtoi(ValueIn(own, name), &value) ? value : otherwise;
}

// A list that is too long for a variable is in a file, as addresses.
std::vector<std::string> NodesIn(const Variables& own) {
  const std::string list = ValueIn(own, "BERTH_NODES");
  if (!list.empty()) return absl::StrSplit(list, ',');
  const std::vector<std::string> addresses = AddressesOf(own);
  return addresses.empty() ? std::vector<std::string>{ValueIn(own, "BERTH_NODE")} : addresses;
}

void AddSizes(const cli::v1::SlurmBatch& batch, const Allocation& allocation, Variables* set) {
  const int nodes = static_cast<int>(allocation.nodes.size());
  const std::vector<int> tasks = TasksOfNodes(batch.tasks(), batch.tasks_per_node(), nodes);
  const int cpus = std::max(batch.tasks_per_node(), 1) * std::max(batch.cpus_per_task(), 1);
  (*set)["SLURM_JOB_NUM_NODES"] = (*set)["SLURM_NNODES"] = absl::StrCat(nodes);
  (*set)["SLURM_NTASKS"] = (*set)["SLURM_NPROCS"] = absl::StrCat(batch.tasks());
  (*set)["SLURM_TASKS_PER_NODE"] = CompressCounts(tasks);
  (*set)["SLURM_JOB_CPUS_PER_NODE"] =
      CompressCounts(std::vector<int>(static_cast<size_t>(nodes), cpus));
  (*set)["SLURM_CPUS_ON_NODE"] = absl::StrCat(cpus);
  if (batch.tasks_per_node() > 1)
    (*set)["SLURM_NTASKS_PER_NODE"] = absl::StrCat(batch.tasks_per_node());
  if (batch.cpus_per_task_given())
    (*set)["SLURM_CPUS_PER_TASK"] = absl::StrCat(batch.cpus_per_task());
  if (batch.memory_per_node() > 0)
    (*set)["SLURM_MEM_PER_NODE"] = absl::StrCat(batch.memory_per_node() / kMiBOfVariable);
  if (batch.memory_per_cpu() > 0)
    (*set)["SLURM_MEM_PER_CPU"] = absl::StrCat(batch.memory_per_cpu() / kMiBOfVariable);
  if (batch.gpus_per_node() > 0) (*set)["SLURM_GPUS_ON_NODE"] = absl::StrCat(batch.gpus_per_node());
}

void AddArray(const cli::v1::SlurmBatch& batch, const Allocation& allocation, Variables* set) {
  if (allocation.array_index.empty()) return;
  (*set)["SLURM_ARRAY_JOB_ID"] = allocation.array_job;
  (*set)["SLURM_ARRAY_TASK_ID"] = allocation.array_index;
  (*set)["SLURM_ARRAY_TASK_COUNT"] = absl::StrCat(allocation.array_count);
  (*set)["SLURM_ARRAY_TASK_MIN"] = absl::StrCat(batch.array_first());
  (*set)["SLURM_ARRAY_TASK_MAX"] = absl::StrCat(batch.array_last());
  (*set)["SLURM_ARRAY_TASK_STEP"] = absl::StrCat(std::max<int64_t>(batch.array_step(), 1));
}

}  // namespace

Variables OwnVariables() {
  Variables own;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    own.insert(parts);
  }
  return own;
}

std::vector<std::string> AddressesOf(const Variables& own) {
  const auto text = ReadTextFile(ValueIn(own, "BERTH_HOSTFILE"));
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

std::vector<std::string> EnvironmentOf(const Variables& variables) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

absl::Status SetBatch(const cli::v1::SlurmBatch& batch, v1::TaskGroup* group) {
  const std::string text = absl::Base64Escape(batch.SerializeAsString());
  if (text.size() > kMostBatchBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the script and the exported environment have ", text.size() >> 10, " KiB, more than ",
        kMostBatchBytes >> 10, ": call a script in a file from a short one, or use --export=NONE"));
  }
  for (size_t at = 0, piece = 0; at < text.size(); at += kVariableBytes, ++piece) {
    v1::EnvVar* variable = group->add_env();
    variable->set_name(absl::StrCat(kBatchVariable, piece));
    variable->set_value(text.substr(at, kVariableBytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<cli::v1::SlurmBatch> BatchOf(const Variables& own) {
  std::string text;
  for (size_t piece = 0;; ++piece) {
    const auto found = own.find(absl::StrCat(kBatchVariable, piece));
    if (found == own.end()) break;
    text += found->second;
  }
  std::string bytes;
  cli::v1::SlurmBatch batch;
  if (text.empty() || !absl::Base64Unescape(text, &bytes) || !batch.ParseFromString(bytes)) {
    return absl::FailedPreconditionError("this is no task of a job that sbatch submitted");
  }
  return batch;
}

Variables JobVariables(const Variables& exported, const Variables& own) {
  Variables result;
  for (const auto& [name, value] : exported) {
    if (!absl::StartsWith(name, "BERTH_") && !IsOfBerthTasks(name)) result[name] = value;
  }
  for (const auto& [name, value] : own) {
    if (IsOfBerthTasks(name) || (IsOfUser(name) && result.contains(name))) continue;
    result[name] = value;
  }
  return result;
}

Allocation AllocationOf(const Variables& own) {
  Allocation allocation;
  allocation.job = ValueIn(own, "BERTH_JOB_UID");
  allocation.array_job = std::string(absl::StripPrefix(ValueIn(own, "BERTH_ARRAY_JOB"), "job-"));
  allocation.array_index = ValueIn(own, "BERTH_ARRAY_INDEX");
  allocation.array_count = NumberIn(own, "BERTH_ARRAY_SIZE", 0);
  allocation.nodes = NodesIn(own);
  allocation.node = NumberIn(own, "NODE_RANK", 0);
  allocation.node_name = ValueIn(own, "BERTH_NODE");
  allocation.restarts = NumberIn(own, "TORCHELASTIC_RESTART_COUNT", 0);
  return allocation;
}

std::vector<int> TasksOfNodes(int tasks, int tasks_per_node, int nodes) {
  std::vector<int> counts;
  int left = tasks;
  for (int node = 0; node < nodes; ++node) {
    // At least one for each node that follows.
    const int most = std::max(left - (nodes - node - 1), 0);
    const int count = std::min(most, std::max(tasks_per_node, 1));
    counts.push_back(count);
    left -= count;
  }
  return counts;
}

Variables SlurmVariables(const cli::v1::SlurmBatch& batch, const Allocation& allocation) {
  Variables set;
  set["SLURM_JOB_ID"] = set["SLURM_JOBID"] = allocation.job;
  set["SLURM_JOB_NAME"] = batch.job_name();
  set["SLURM_JOB_NODELIST"] = set["SLURM_NODELIST"] = CompressHosts(allocation.nodes);
  set["SLURM_JOB_PARTITION"] = batch.partition();
  set["SLURM_JOB_USER"] = batch.user();
  set["SLURM_JOB_UID"] = absl::StrCat(getuid());
  set["SLURM_CLUSTER_NAME"] = batch.cluster();
  set["SLURM_SUBMIT_DIR"] = batch.submit_directory();
  set["SLURM_SUBMIT_HOST"] = batch.submit_host();
  set["SLURMD_NODENAME"] = set["SLURM_TOPOLOGY_ADDR"] = allocation.node_name;
  set["SLURM_NODEID"] = absl::StrCat(allocation.node);
  set["SLURM_PROCID"] = set["SLURM_LOCALID"] = set["SLURM_GTIDS"] = "0";
  set["SLURM_TASK_PID"] = absl::StrCat(getpid());
  set["ENVIRONMENT"] = "BATCH";
  if (!batch.account().empty()) set["SLURM_JOB_ACCOUNT"] = batch.account();
  if (!batch.qos().empty()) set["SLURM_JOB_QOS"] = batch.qos();
  if (allocation.restarts > 0) set["SLURM_RESTART_COUNT"] = absl::StrCat(allocation.restarts);
  AddSizes(batch, allocation, &set);
  AddArray(batch, allocation, &set);
  return set;
}

PatternValues PatternsOf(const cli::v1::SlurmBatch& batch, const Allocation& allocation) {
  const bool array = !allocation.array_index.empty();
  return {.job = allocation.job,
          .array_job = array ? allocation.array_job : allocation.job,
          .array_index = array ? allocation.array_index : "4294967294",
          .name = batch.job_name(),
          .user = batch.user(),
          .host = allocation.node_name,
          .step = "",
          .node = allocation.node};
}

}  // namespace berth
