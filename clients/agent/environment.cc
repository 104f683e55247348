#include "clients/agent/environment.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr char kTerminalType[] = "xterm-256color";  // in the terminfo of every distribution
constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kMarkerName[] = "BERTH_TASK_DIR";

std::map<std::string, std::string> UuidsByKind(const v1::TaskLaunch& launch) {
  std::map<std::string, std::string> uuids;
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    const std::string kind = i < launch.device_kinds_size() ? launch.device_kinds(i) : "device";
    std::string& list = uuids[kind];
    absl::StrAppend(&list, list.empty() ? "" : ",", launch.device_uuids(i));
  }
  return uuids;
}

// A node with GPUs hides them from tasks that have none. AMD's libraries also read
// CUDA_VISIBLE_DEVICES, but as indexes into ROCR_VISIBLE_DEVICES: tasks with AMD GPUs get none.
void AddDevices(const v1::TaskLaunch& launch, const EnvironmentContext& context, Environment* env) {
  for (const auto& [kind, list] : UuidsByKind(launch)) {
    const std::string name =
        absl::AsciiStrToUpper(absl::StrReplaceAll(kind, {{"-", "_"}, {".", "_"}}));
    (*env)[absl::StrCat("BERTH_DEVICES_", name)] = list;
  }
  for (const auto& [name, list] : AccessVariables(context.access, launch)) (*env)[name] = list;
  std::string cuda;
  bool of_others = false;
  for (const char* kind : {"gpu", "mig"}) {
    for (int i = 0; i < std::min(launch.device_uuids_size(), launch.device_kinds_size()); ++i) {
      if (launch.device_kinds(i) != kind) continue;
      const std::string& uuid = launch.device_uuids(i);
      const bool other = Includes(context.access, uuid);
      of_others = of_others || other;
      if (!other) absl::StrAppend(&cuda, cuda.empty() ? "" : ",", uuid);
    }
  }
  if (cuda.empty() && (of_others || !context.has_gpus)) return;
  (*env)["CUDA_VISIBLE_DEVICES"] = cuda;
  (*env)["NVIDIA_VISIBLE_DEVICES"] = cuda.empty() ? "void" : cuda;
}

// The task's share of a shared device; MPS enforces it. A share by memory limits only memory.
void AddShares(const v1::TaskLaunch& launch, const EnvironmentContext& context, Environment* env) {
  constexpr int64_t kAll = 1000;
  const auto part = [](int64_t thousandths) { return absl::StrFormat("0.%03d", thousandths); };
  const int devices = std::min(launch.device_uuids_size(), launch.device_kinds_size());
  for (int i = 0; i < std::min(launch.device_shares_size(), devices); ++i) {
    const int64_t share = launch.device_shares(i);
    const bool says = i < launch.device_memory_shares_size();
    const int64_t of_memory = says ? launch.device_memory_shares(i) : share;
    if (share <= 0 || of_memory <= 0 || (share >= kAll && of_memory >= kAll)) continue;
    const auto memory = context.device_memory.find(launch.device_uuids(i));
    const int64_t bytes =
        memory == context.device_memory.end() ? 0 : memory->second * of_memory / kAll;
    if (share < kAll) (*env)["BERTH_DEVICE_SHARE"] = part(share);
    if (of_memory < kAll) (*env)["BERTH_DEVICE_MEMORY_SHARE"] = part(of_memory);
    if (bytes > 0) (*env)["BERTH_DEVICE_MEMORY_BYTES"] = absl::StrCat(bytes);
    if (context.mps_pipe_directory.empty() || launch.device_kinds(i) != "gpu") continue;
    if (Includes(context.access, launch.device_uuids(i))) continue;
    (*env)["CUDA_MPS_PIPE_DIRECTORY"] = context.mps_pipe_directory;
    if (share < kAll) {
      (*env)["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = absl::StrCat(std::max<int64_t>(share / 10, 1));
    }
    if (bytes > 0 && of_memory < kAll) {
      (*env)["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = absl::StrCat("0=", bytes >> 20, "M");
    }
  }
}

// "=" makes NCCL match names exactly: otherwise mlx5_1 would also match mlx5_10. A task that
// requested no NICs may use all of them, as NCCL prefers.
void AddNccl(const v1::TaskLaunch& launch, const EnvironmentContext& context, Environment* env) {
  const std::map<std::string, std::string> uuids = UuidsByKind(launch);
  const auto nics = uuids.find("nic");
  if (nics != uuids.end()) (*env)["NCCL_IB_HCA"] = absl::StrCat("=", nics->second);
  const bool has_gpus = uuids.contains("gpu");
  if (has_gpus && !context.nccl_topo_file.empty())
    (*env)["NCCL_TOPO_FILE"] = context.nccl_topo_file;
  if (launch.world_size() < 2 || context.socket_interface.empty()) return;
  (*env)["NCCL_SOCKET_IFNAME"] = absl::StrCat("=", context.socket_interface);
  (*env)["GLOO_SOCKET_IFNAME"] = context.socket_interface;
}

void AddRanks(const v1::TaskLaunch& launch, Environment* env) {
  (*env)["WORLD_SIZE"] = absl::StrCat(launch.world_size());
  if (launch.coordinator()) return;  // it has no rank
  (*env)["RANK"] = absl::StrCat(launch.rank());
  (*env)["LOCAL_RANK"] = absl::StrCat(launch.local_rank());
  (*env)["LOCAL_WORLD_SIZE"] = absl::StrCat(launch.local_world_size());
  (*env)["GROUP_RANK"] = absl::StrCat(launch.node_rank());
  (*env)["NODE_RANK"] = absl::StrCat(launch.node_rank());
}

void AddRendezvous(const v1::Start& start, const EnvironmentContext& context, Environment* env) {
  (*env)["MASTER_ADDR"] = start.master_address().empty() ? context.address : start.master_address();
  if (start.master_port() != 0) (*env)["MASTER_PORT"] = absl::StrCat(start.master_port());
  const std::string nodes =
      start.nodes().empty() ? context.node : absl::StrJoin(start.nodes(), ",");
  if (nodes.size() <= kMaxNodesVariableBytes) (*env)["BERTH_NODES"] = nodes;
  (*env)["BERTH_HOSTFILE"] =
      context.hostfile.empty() ? context.task_directory + "/hostfile" : context.hostfile;
}

// torchrun reads each option that it is not given from PET_OPTION. One task is one of its nodes.
void AddTorchrun(const v1::TaskLaunch& launch, Environment* env) {
  if (launch.coordinator()) return;
  const bool rigid = launch.rigid() || launch.least_world() == 0;
  const int most = rigid ? launch.world_size() : launch.most_world();
  const bool elastic = !rigid && launch.least_world() < most;
  const int processes = static_cast<int>(
      std::count(launch.device_kinds().begin(), launch.device_kinds().end(), "gpu") +
      std::count(launch.device_kinds().begin(), launch.device_kinds().end(), "mig"));
  const std::string& address = (*env)["MASTER_ADDR"];
  const auto port = env->find("MASTER_PORT");
  (*env)["PET_NNODES"] =
      elastic ? absl::StrCat(launch.least_world(), ":", most) : absl::StrCat(most);
  (*env)["PET_NPROC_PER_NODE"] = absl::StrCat(std::max(processes, 1));
  (*env)["PET_NODE_RANK"] = absl::StrCat(launch.rank());
  (*env)["PET_RDZV_BACKEND"] = "c10d";
  (*env)["PET_RDZV_ID"] = (*env)["TORCHELASTIC_RUN_ID"];
  const bool hosts = launch.hosts() || (launch.rank() == 0 && !launch.elsewhere());
  (*env)["PET_RDZV_CONF"] = absl::StrCat("is_host=", hosts ? "true" : "false");
  if (port == env->end()) return;
  (*env)["PET_MASTER_ADDR"] = address;
  (*env)["PET_MASTER_PORT"] = port->second;
  (*env)["PET_RDZV_ENDPOINT"] = absl::StrCat(address, ":", port->second);
}

void AddNames(const TaskId& id, const v1::TaskLaunch& launch, Environment* env) {
  (*env)["BERTH_JOB"] = launch.job();
  (*env)["BERTH_JOB_UID"] = absl::StrCat(id.job_uid);
  (*env)["BERTH_TASK"] = absl::StrCat(launch.group(), "-", launch.index());
  (*env)["BERTH_GROUP"] = launch.group();
  (*env)["BERTH_GROUP_INDEX"] = absl::StrCat(launch.index());
  (*env)["BERTH_GROUP_SIZE"] = absl::StrCat(launch.group_size());
  (*env)["BERTH_ATTEMPT"] = absl::StrCat(id.attempt);
  if (launch.epoch() > 0) (*env)["BERTH_EPOCH"] = absl::StrCat(launch.epoch());
  (*env)["BERTH_QUEUE"] = launch.queue();
  (*env)["TORCHELASTIC_RESTART_COUNT"] = absl::StrCat(launch.restart_count());
  (*env)["TORCHELASTIC_RUN_ID"] = absl::StrCat(launch.job(), "-", id.job_uid);
}

// As systemd does for a service. A program whose library sends WATCHDOG=1 does so if WATCHDOG_USEC
// is set.
void AddNotify(const v1::TaskLaunch& launch, const EnvironmentContext& context, Environment* env) {
  env->erase("NOTIFY_SOCKET");  // of an image
  env->erase("WATCHDOG_USEC");
  if (context.notify_socket.empty()) return;
  (*env)["NOTIFY_SOCKET"] = context.notify_socket;
  if (!launch.has_watchdog()) return;
  const absl::Duration timeout = DurationFrom(launch.watchdog().timeout());
  (*env)["WATCHDOG_USEC"] = absl::StrCat(absl::ToInt64Microseconds(timeout));
}

}  // namespace

Environment BuildEnvironment(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start,
                             const EnvironmentContext& context) {
  Environment env = context.image;
  env.emplace("PATH", kPath);
  if (launch.terminal()) env.emplace("TERM", kTerminalType);
  env["USER"] = context.user;
  env["LOGNAME"] = context.user;
  env["HOME"] = context.home;
  env["BERTH_NODE"] = context.node;
  if (!context.scratch.empty()) env["BERTH_SCRATCH"] = context.scratch;
  if (launch.scratch_bytes() > 0) env["BERTH_SCRATCH_BYTES"] = absl::StrCat(launch.scratch_bytes());
  if (!context.server.empty()) env["BERTH_SERVER"] = context.server;
  if (!context.keep.empty()) env["BERTH_KEEP"] = context.keep;
  if (!context.keep_memory.empty()) env["BERTH_KEEP_MEMORY"] = context.keep_memory;
  if (!context.tmp.empty()) env["TMPDIR"] = context.tmp;
  AddNames(id, launch, &env);
  AddRanks(launch, &env);
  AddRendezvous(start, context, &env);
  AddTorchrun(launch, &env);
  AddDevices(launch, context, &env);
  AddNccl(launch, context, &env);
  AddNotify(launch, context, &env);
  for (const v1::EnvVar& variable : launch.env()) env[variable.name()] = variable.value();
  AddShares(launch, context, &env);
  env[kMarkerName] = context.task_directory;
  return env;
}

std::string TaskMarker(const std::string& task_directory) {
  return absl::StrCat(kMarkerName, "=", task_directory);
}

std::string HostfileText(const v1::Start& start, const EnvironmentContext& context) {
  if (start.nodes().empty()) return absl::StrCat(context.address, "\n");
  std::string text;
  for (int i = 0; i < start.nodes_size(); ++i) {
    const bool addressed = i < start.node_addresses_size() && !start.node_addresses(i).empty();
    absl::StrAppend(&text, addressed ? start.node_addresses(i) : start.nodes(i), "\n");
  }
  return text;
}

}  // namespace berth
