#include "clients/agent/agent_config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pwd.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/agent/cuda_checkpoint.h"
#include "clients/agent/device_access.h"
#include "clients/agent/disk_space.h"
#include "clients/agent/disk_use.h"
#include "clients/agent/health_checks.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/supervisor/project_quota.h"
#include "clients/agent/supervisor/spec.h"
#include "clients/agent/task_book.h"
#include "clients/agent/volumes.h"
#include "support/config_file.h"
#include "support/fetch/https_client.h"
#include "support/proto_time.h"
#include "support/server_list.h"
#include "support/tls.h"

namespace berth {
namespace {

constexpr int kMaxMpsTasks = 48;  // clients per GPU, from NVIDIA's documentation

using Problems = std::vector<std::string>;

void Add(Problems* problems, absl::string_view text) {
  problems->emplace_back(text.data(), text.size());
}

std::string HostName() {
  utsname info;
  return uname(&info) == 0 ? info.nodename : "localhost";
}

void CheckDevices(const config::v1::Agent& config, Problems* problems) {
  std::set<std::string> uuids;
  for (const v1::Device& device : config.devices()) {
    if (device.kind().empty() || device.uuid().empty()) {
      Add(problems, "devices: each device needs kind and uuid");
    } else if (!uuids.insert(device.uuid()).second) {
      Add(problems, absl::StrCat("devices: uuid ", device.uuid(), " is listed twice"));
    }
  }
}

void CheckDiscovery(const config::v1::Discovery& discovery, Problems* problems) {
  const absl::Duration timeout = DurationFrom(discovery.timeout());
  if (discovery.has_timeout() && (timeout < absl::Seconds(1) || timeout > absl::Minutes(10)))
    Add(problems, "discovery.timeout: must be 1s..10m");
  const absl::Duration interval = DurationFrom(discovery.interval());
  if (discovery.has_interval() && (interval < absl::Seconds(10) || interval > absl::Hours(24)))
    Add(problems, "discovery.interval: must be 10s..24h");
}

void CheckUser(const config::v1::Agent& config, unsigned uid, Problems* problems) {
  if (config.task_user().empty()) {
    if (uid == 0 && !config.allow_root_tasks()) {
      Add(problems, "taskUser: required when the agent is root (or set allowRootTasks: true)");
    }
    return;
  }
  const passwd* user = getpwnam(config.task_user().c_str());
  if (user == nullptr) {
    Add(problems, absl::StrCat("taskUser: no such user: ", config.task_user()));
  } else if (user->pw_uid == 0 && !config.allow_root_tasks()) {
    Add(problems, "taskUser: root requires allowRootTasks: true");
  } else if (uid != 0 && user->pw_uid != uid) {
    Add(problems, "taskUser: only an agent that runs as root can run tasks as another user");
  }
}

bool IsAccount(const std::string& name) { return getpwnam(name.c_str()) != nullptr; }

void CheckTaskUsers(const config::v1::Agent& config, unsigned uid, Problems* problems) {
  const std::map<std::string, std::string> users(config.task_users().begin(),
                                                 config.task_users().end());
  for (const auto& [name, account] : users) {
    const std::string& known = account.empty() ? name : account;
    if (!IsAccount(known)) {
      Add(problems, absl::StrCat("taskUsers: no such user: ", known));
    } else if (getpwnam(known.c_str())->pw_uid == 0 && !config.allow_root_tasks()) {
      Add(problems,
          absl::StrCat("taskUsers: ", name, " is root, which requires allowRootTasks: true"));
    }
  }
  if (!users.empty() && uid != 0)
    Add(problems, "taskUsers: only an agent that runs as root can run tasks as other users");
}

void CheckPath(const char* what, const std::string& path, Problems* problems) {
  const absl::Status status = CheckAbsolutePath(path);
  if (!status.ok()) Add(problems, absl::StrCat(what, ": ", status.message()));
}

void CheckPlaces(const config::v1::Agent& config, Problems* problems) {
  const absl::Status server = CheckServerList(config.server());
  if (!server.ok()) Add(problems, absl::StrCat("server: ", server.message()));
  CheckPath("stateDirectory", config.state_directory(), problems);
  CheckPath("log.file", config.log().file(), problems);
  CheckPath("tls.certificate", config.tls().certificate(), problems);
  CheckPath("tls.key", config.tls().key(), problems);
  CheckPath("tls.ca", config.tls().ca(), problems);
  CheckPath("discovery.topologyFile", config.discovery().topology_file(), problems);
  const std::string& http = config.http_listen();
  const absl::Status listen = http.empty() ? absl::OkStatus() : CheckServerAddress(http);
  if (!listen.ok()) Add(problems, absl::StrCat("httpListen: ", listen.message()));
  if (listen.ok() && !http.empty() && !IsLoopbackAddress(http)) {
    Add(problems, absl::StrCat("httpListen: ", http,
                               " can be reached from other machines, and HTTP has no certificates "
                               "here: listen on 127.0.0.1, behind a TLS proxy that asks for them "
                               "(docs/operators/monitoring.md)"));
  }
}

void CheckJoin(const config::v1::Agent& config, Problems* problems) {
  const config::v1::Join& join = config.join();
  CheckPath("join.ca", join.ca(), problems);
  if (join.token_file() != "-") CheckPath("join.tokenFile", join.token_file(), problems);
  if (!config.has_join()) return;
  if (!IsHttpsUrl(join.url())) {
    Add(problems, "join.url: must be the https URL of berth-authd: https://login.example:7081");
  }
  if (config.has_tls()) {
    Add(problems, "join: not together with tls: with it, the agent gets its own certificate");
  }
}

void CheckWithin(const char* what, const google::protobuf::Duration& duration, absl::Duration low,
                 absl::Duration high, Problems* problems) {
  const absl::Duration value = DurationFrom(duration);
  if (duration.ByteSizeLong() == 0 || (value >= low && value <= high)) return;
  Add(problems,
      absl::StrCat(what, ": ", absl::FormatDuration(low), "..", absl::FormatDuration(high)));
}

void CheckImages(const config::v1::Images& images, Problems* problems) {
  CheckPath("images.umoci", images.umoci(), problems);
  CheckPath("images.cache", images.cache(), problems);
  CheckWithin("images.unpackTimeout", images.unpack_timeout(), absl::Seconds(1), absl::Hours(24),
              problems);
  CheckPath("images.skopeo", images.skopeo(), problems);
  CheckWithin("images.pullTimeout", images.pull_timeout(), absl::Seconds(1), absl::Hours(24),
              problems);
  for (const std::string& problem : RegistryProblems(images)) Add(problems, problem);
  if (images.cache_bytes() < 0 || images.max_image_bytes() < 0 || images.max_image_files() < 0)
    Add(problems,
        "images.cacheSize, images.maxImageSize, images.maxImageFiles: must not be negative");
}

void CheckIsolation(const config::v1::Agent& config, Problems* problems) {
  for (const std::string& problem : DeviceAccessProblems(config)) Add(problems, problem);
  const config::v1::Hooks& hooks = config.hooks();
  CheckPath("scratchDirectory", config.scratch_directory(), problems);
  if (!hooks.prolog().empty()) CheckPath("hooks.prolog", hooks.prolog(0) + " ", problems);
  if (!hooks.epilog().empty()) CheckPath("hooks.epilog", hooks.epilog(0) + " ", problems);
  CheckWithin("hooks.prologTimeout", hooks.prolog_timeout(), absl::Seconds(1), absl::Hours(1),
              problems);
  CheckWithin("hooks.epilogTimeout", hooks.epilog_timeout(), absl::Seconds(1), absl::Hours(1),
              problems);
  CheckPath("images.directory", config.images().directory(), problems);
  CheckPath("images.crun", config.images().crun(), problems);
  if (config.cuda_checkpoint() != kNoCudaCheckpoint)
    CheckPath("cudaCheckpoint", config.cuda_checkpoint(), problems);
  for (const std::string& path : config.images().binds())
    CheckPath("images.binds", path + " ", problems);
  CheckImages(config.images(), problems);
  for (const std::string& problem : VolumeProblems(config.volumes())) Add(problems, problem);
  if (config.max_scratch_bytes() < 0 || config.max_shared_memory_bytes() < 0 ||
      config.kept_log_bytes() < 0)
    Add(problems, "maxScratch, maxSharedMemory, keptLogs: must not be negative");
  const bool all_shared = config.shared_tmp() && config.shared_pid() && config.shared_shm();
  if (config.require_namespaces() && all_shared)
    Add(problems, "requireNamespaces: has no effect with sharedTmp, sharedPid and sharedShm");
  if (config.cgroups().max_processes() < 0)
    Add(problems, "cgroups.maxProcesses: must not be negative");
}

void CheckSharing(const config::v1::Sharing& sharing, Problems* problems) {
  const bool mps = sharing.mode() == config::v1::Sharing::MPS;
  const bool any = sharing.mode() != config::v1::Sharing::MODE_UNSPECIFIED;
  if (!any && sharing.ByteSizeLong() > 0) Add(problems, "sharing.mode: set TIME_SLICING or MPS");
  if (sharing.max_tasks() != 0 && (sharing.max_tasks() < 2 || sharing.max_tasks() > 100))
    Add(problems, "sharing.maxTasks: must be 2..100");
  if (sharing.oversubscription() != 0 &&
      (sharing.oversubscription() < 100 || sharing.oversubscription() > 1000))
    Add(problems, "sharing.oversubscription: must be 100..1000 percent");
  if (mps && sharing.max_tasks() > kMaxMpsTasks)
    Add(problems, absl::StrCat("sharing.maxTasks: the maximum with MPS is ", kMaxMpsTasks));
  const std::string& pipes = sharing.mps_pipe_directory();
  const bool below_tmp = pipes == "/tmp" || absl::StartsWith(pipes, "/tmp/");
  if (mps && (pipes.empty() || pipes[0] != '/' || below_tmp))
    Add(problems, "sharing.mpsPipeDirectory: must be an absolute path outside /tmp");
  if (!mps && !pipes.empty()) Add(problems, "sharing.mpsPipeDirectory: requires mode MPS");
}

void CheckHealth(const config::v1::Health& health, Problems* problems) {
  CheckWithin("health.interval", health.interval(), absl::Seconds(1), absl::Hours(1), problems);
  CheckWithin("health.commandTimeout", health.command_timeout(), absl::Seconds(1),
              absl::Minutes(10), problems);
  CheckWithin("health.maxClockOffset", health.max_clock_offset(), absl::Milliseconds(1),
              absl::Hours(1), problems);
  if (health.fail_after() < 0 || health.fail_after() > 100 || health.recover_after() < 0 ||
      health.recover_after() > 100)
    Add(problems, "health.failAfter, health.recoverAfter: must be 1..100");
  if (health.min_free_bytes() < 0 || health.drain_free_bytes() < 0)
    Add(problems, "health.minFree, health.drainFree: must not be negative");
  if (health.drain_free_bytes() > MinFreeBytes(health))
    Add(problems, "health.drainFree: must not exceed health.minFree");
  if (health.drain_free_bytes() > 0 &&
      health.disk_space() != config::v1::Health::EFFECT_UNSPECIFIED)
    Add(problems, "health.drainFree: not allowed with health.diskSpace, which sets the effect");
  if (health.max_nvlink_crc_per_second() < 0)
    Add(problems, "health.maxNvlinkCrcPerSecond: must not be negative");
  using config::v1::Health;
  for (const Health::Effect effect :
       {health.disk_space(), health.clock(), health.infiniband(), health.command_effect(),
        health.gpu_driver(), health.devices()}) {
    if (effect == Health::DEVICE)
      Add(problems, "health: only gpuXid, gpuEcc, gpuMemory and gpuNvlink allow the effect device");
  }
  if (!health.command().empty()) CheckPath("health.command", health.command(0) + " ", problems);
}

// The kernel must not assign a port of the range to an outgoing connection.
void CheckPorts(const config::v1::Agent& config, Problems* problems) {
  if (config.first_port() < 1024 || config.last_port() > 65535 ||
      config.first_port() > config.last_port()) {
    Add(problems, "firstPort, lastPort: must be a range within 1024..65535");
    return;
  }
  std::string text;
  int low = 0;
  int high = 0;
  if (ReadWholeFile("/proc/sys/net/ipv4/ip_local_port_range", &text) != 0) return;
  if (std::sscanf(text.c_str(), "%d %d", &low, &high) != 2) return;
  if (config.first_port() <= high && config.last_port() >= low) {
    Add(problems,
        absl::StrCat("firstPort, lastPort: ", config.first_port(), "..", config.last_port(),
                     " overlaps the kernel's ephemeral ports ", low, "..", high));
  }
}

// "12-0-1" or "12-0-1.1795575600000".
bool IsTaskName(absl::string_view name) {
  return std::count(name.begin(), name.end(), '-') == 2 &&
         name.find_first_not_of("0123456789-.") == name.npos;
}

// Scratch of the tasks that an earlier agent started: they keep running with what they requested.
int64_t ScratchInUse(const config::v1::Agent& config) {
  int64_t bytes = 0;
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(config.scratch_directory(), ignored)) {
    const std::string name = entry.path().filename();
    absl::string_view id = name;
    if (!absl::ConsumePrefix(&id, config.node_name() + "-") || !IsTaskName(id)) continue;
    const ProjectUse use = ReadProjectUse(entry.path());
    bytes += use.project != 0 ? use.used_bytes : DiskUseOf({entry.path()}).bytes;
  }
  return bytes;
}

// The scratch that tasks may request: excludes what others use and what must stay free. 0: there is
// no such directory.
int64_t ScratchBytes(const config::v1::Agent& config) {
  const std::optional<DiskSpace> space = ReadDiskSpace(config.scratch_directory());
  if (!space) return 0;
  const int64_t theirs = space->free_bytes + ScratchInUse(config);
  return std::max<int64_t>(theirs - MinFreeBytes(config.health()), 0);
}

}  // namespace

void SetAgentDefaults(config::v1::Agent* config) {
  if (config->server().empty()) config->set_server("127.0.0.1:7070");
  if (config->node_name().empty()) config->set_node_name(HostName());
  if (config->address().empty()) config->set_address(HostName());
  if (config->state_directory().empty()) config->set_state_directory("/var/lib/berth-agent");
  if (config->cpu_millis() == 0) config->set_cpu_millis(1000 * sysconf(_SC_NPROCESSORS_ONLN));
  if (config->memory_bytes() == 0)
    config->set_memory_bytes(sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
  if (config->scratch_bytes() == 0 && !config->scratch_directory().empty())
    config->set_scratch_bytes(ScratchBytes(*config));
  if (config->first_port() == 0) config->set_first_port(20000);
  if (config->last_port() == 0) config->set_last_port(24999);
  if (config->log_file_bytes() == 0) config->set_log_file_bytes(int64_t{16} << 20);
  if (config->log_files() == 0) config->set_log_files(4);
  if (!config->has_keep_ended()) config->mutable_keep_ended()->set_seconds(24 * 3600);
}

absl::Status CheckAgentConfig(const config::v1::Agent& config, unsigned uid) {
  Problems problems;
  CheckPlaces(config, &problems);
  CheckJoin(config, &problems);
  CheckDevices(config, &problems);
  CheckDiscovery(config.discovery(), &problems);
  CheckUser(config, uid, &problems);
  CheckTaskUsers(config, uid, &problems);
  CheckIsolation(config, &problems);
  CheckHealth(config.health(), &problems);
  CheckSharing(config.sharing(), &problems);
  if (config.mig().reconfigure() && config.discovery().disabled())
    Add(&problems, "mig.reconfigure: requires discovery, but discovery.disabled is set");
  for (const v1::Device& device : config.devices()) {
    const bool mps = config.sharing().mode() == config::v1::Sharing::MPS && device.kind() == "gpu";
    if (mps && device.max_tasks() > kMaxMpsTasks)
      Add(&problems,
          absl::StrCat("devices: MPS supports at most ", kMaxMpsTasks, " tasks per GPU"));
  }
  CheckPorts(config, &problems);
  if (config.cpu_millis() < 0 || config.memory_bytes() < 0 || config.scratch_bytes() < 0)
    Add(&problems, "cpu, memory, scratch: must not be negative");
  if (config.log_file_bytes() < 4096) Add(&problems, "logFileSize: must be at least 4Ki");
  if (config.log_files() < 1 || config.log_files() > 1000)
    Add(&problems, "logFiles: must be 1..1000");
  if (DurationFrom(config.keep_ended()) < absl::ZeroDuration())
    Add(&problems, "keepEnded: must not be negative");
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

// 1: GPUs are not shared.
static int TasksPerGpu(const config::v1::Sharing& sharing) {
  if (sharing.mode() == config::v1::Sharing::MODE_UNSPECIFIED) return 1;
  return sharing.max_tasks() > 0 ? sharing.max_tasks() : kMaxMpsTasks;
}

v1::NodeInventory MakeInventory(const config::v1::Agent& config) {
  v1::NodeInventory inventory;
  inventory.set_cpu_millis(config.cpu_millis());
  inventory.set_memory_bytes(config.memory_bytes());
  *inventory.mutable_devices() = config.devices();
  for (v1::Device& device : *inventory.mutable_devices()) {
    const bool says = device.max_tasks() > 0;  // set in the configuration
    if (!says && device.kind() == "gpu") device.set_max_tasks(TasksPerGpu(config.sharing()));
    const bool oversubscribes = config.sharing().oversubscription() > 0 && device.kind() == "gpu";
    if (oversubscribes && device.oversubscription() == 0)
      device.set_oversubscription(config.sharing().oversubscription());
  }
  inventory.set_scratch_bytes(config.scratch_bytes());
  inventory.set_divides_gpus(config.mig().reconfigure());
  inventory.set_max_tasks(kMaxLiveTasks);
  *inventory.mutable_extended() = config.extended();
  *inventory.mutable_labels() = config.labels();
  *inventory.mutable_taints() = config.taints();
  inventory.set_address(config.address());
  utsname info;
  if (uname(&info) == 0) {
    inventory.set_os(absl::StrCat(info.sysname, " ", info.release));
    inventory.set_architecture(info.machine);
  }
  return inventory;
}

std::string NcclTopologyFile(const config::v1::Discovery& config) {
  if (config.disabled() || config.topology_file().empty()) return "";
  constexpr size_t kHeadBytes = 64 << 10;
  std::string head(kHeadBytes, '\0');
  std::ifstream file(config.topology_file(), std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  if (!absl::StrContains(head, "<system")) return "";
  return std::filesystem::absolute(config.topology_file());
}

std::string SocketInterface(const config::v1::Agent& config) {
  if (!config.socket_interface().empty()) return config.socket_interface();
  in6_addr wanted{};
  int family = AF_INET;
  if (inet_pton(AF_INET, config.address().c_str(), &wanted) != 1) {
    family = AF_INET6;
    if (inet_pton(AF_INET6, config.address().c_str(), &wanted) != 1) return "";
  }
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* one = all; one != nullptr && found.empty(); one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
    if (family == AF_INET) {
      sockaddr_in address;
      memcpy(&address, one->ifa_addr, sizeof address);
      if (memcmp(&address.sin_addr, &wanted, sizeof address.sin_addr) == 0) found = one->ifa_name;
    } else {
      sockaddr_in6 address;
      memcpy(&address, one->ifa_addr, sizeof address);
      if (memcmp(&address.sin6_addr, &wanted, sizeof wanted) == 0) found = one->ifa_name;
    }
  }
  freeifaddrs(all);
  return found;
}

absl::Status ReadBootId(std::string* boot_id) {
  if (ReadWholeFile("/proc/sys/kernel/random/boot_id", boot_id) != 0 || boot_id->empty()) {
    return absl::InternalError("cannot read /proc/sys/kernel/random/boot_id");
  }
  boot_id->erase(boot_id->find_last_not_of('\n') + 1);
  return absl::OkStatus();
}

std::string NewAgentId() {
  char bytes[16];
  size_t done = 0;
  while (done < sizeof bytes) {
    const ssize_t n = getrandom(bytes + done, sizeof bytes - done, 0);
    if (n > 0) done += static_cast<size_t>(n);
  }
  return absl::BytesToHexString(absl::string_view(bytes, sizeof bytes));
}

TlsFiles ToTlsFiles(const config::v1::Tls& tls) {
  return {.certificate = tls.certificate(), .key = tls.key(), .ca = tls.ca()};
}

std::string IdentityDirectory(const config::v1::Agent& config) {
  return absl::StrCat(config.state_directory(), "/identity");
}

std::string ExplainedError(const config::v1::Tls& tls, const std::string& error) {
  const std::string hint = ConnectionHint(ToTlsFiles(tls), error);
  return absl::StrCat(error, hint.empty() ? "" : "; ", hint);
}

}  // namespace berth
