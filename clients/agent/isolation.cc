#include "clients/agent/isolation.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"
#include "clients/agent/image_registries.h"
#include "clients/agent/supervisor/expand.h"
#include "clients/agent/supervisor/namespaces.h"
#include "clients/agent/supervisor/project_quota.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "clients/agent/supervisor/shared_things.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/task_files.h"
#include "clients/agent/volumes.h"

namespace berth {
namespace {

constexpr int64_t kDefaultHookMs = 60'000;
constexpr char kRuntimePath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kDefaultCrun[] = "/usr/bin/crun";
constexpr int64_t kLeastSharedMemoryBytes = int64_t{64} << 20;
constexpr int64_t kPidSpacing = 2048;  // PIDs of one task before those of the job's next task
constexpr int64_t kPidRanges = 14;     // that fit below the smallest pid_max, 32768
constexpr uint64_t kFirstProject = 0x42000000;  // first project id for task quotas
constexpr uint64_t kProjects = 0x01000000;
constexpr int64_t kLeastQuotaInodes = 100'000;

int64_t Milliseconds(const google::protobuf::Duration& d, int64_t otherwise) {
  const int64_t ms = d.seconds() * 1000 + d.nanos() / 1'000'000;
  return ms > 0 ? ms : otherwise;
}

// Whether the addresses of sockets can name files in the task's directory.
bool FitsSockets(const std::string& task_directory) {
  constexpr size_t kLongest =
      std::max(sizeof kNotifySocket, sizeof kDoorInside + sizeof kDoorSocket - 1);
  return task_directory.size() + kLongest <= sizeof sockaddr_un::sun_path;
}

// A directory of the agent that the task's user can pass through.
absl::Status MakePassage(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("create ", path));
}

bool IsBelow(const std::string& path, absl::string_view directory) {
  return path == directory || absl::StartsWith(path, absl::StrCat(directory, "/"));
}

// 0: no limit. Small requests get more than their share: small tasks also have many files.
int64_t QuotaInodes(const std::string& directory, int64_t bytes) {
  const std::optional<DiskSpace> space = ReadDiskSpace(directory);
  if (!space || space->inodes == 0) return 0;
  return std::max(space->InodesOf(bytes), kLeastQuotaInodes);
}

std::vector<std::string> ToList(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

std::vector<std::string> ToEntries(const Environment& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) entries.push_back(absl::StrCat(name, "=", value));
  return entries;
}

std::map<std::string, std::string> ToMap(
    const google::protobuf::Map<std::string, std::string>& field) {
  return {field.begin(), field.end()};
}

}  // namespace

Isolation::Isolation(const config::v1::Agent& config, std::string state_directory)
    : config_(config),
      state_directory_(std::move(state_directory)),
      users_(config.task_user(), ToMap(config.task_users()), config.allow_root_tasks()),
      kept_(std::make_unique<KeptDirectories>(
          state_directory_,
          config.scratch_directory().empty()
              ? ""
              : absl::StrCat(config.scratch_directory(), "/", config.node_name(), "-keep-"))),
      nvidia_(ReadNvidiaFiles()) {}

absl::StatusOr<std::unique_ptr<Isolation>> Isolation::Create(const config::v1::Agent& config,
                                                             const std::string& state_directory) {
  std::unique_ptr<Isolation> isolation(new Isolation(config, state_directory));
  if (absl::Status status = isolation->Init(); !status.ok()) return status;
  return isolation;
}

absl::Status Isolation::Init() {
  if (const auto user = users_.Find(""); !user.ok()) return user.status();
  if (absl::Status status = InitGroups(); !status.ok()) return status;
  if (absl::Status status = InitNamespaces(); !status.ok()) return status;
  InitDisk();
  InitLayers();
  WarnOfLongPaths();
  return absl::OkStatus();
}

void Isolation::WarnOfLongPaths() {
  constexpr char kLongId[] = "/tasks/10000000-9999-100.1800000000000";
  if (FitsSockets(state_directory_ + kLongId)) return;
  warnings_.push_back(
      absl::StrCat("tasks have no NOTIFY_SOCKET and no socket for calls, and tasks with a watchdog "
                   "are refused: the path ",
                   state_directory_, " is too long for sockets below it"));
}

absl::Status Isolation::InitGroups() {
  std::string mountinfo;
  ReadWholeFile("/proc/self/mountinfo", &mountinfo);
  auto groups =
      ControlGroups::Open(config_.cgroups(), config_.node_name(), ReadHierarchies(mountinfo));
  if (groups.ok()) {
    groups_ = *std::move(groups);
  } else if (config_.cgroups().mode() == config::v1::ControlGroups::REQUIRED ||
             absl::IsInvalidArgument(groups.status())) {
    return absl::Status(groups.status().code(),
                        absl::StrCat("cgroups: ", groups.status().message()));
  } else {
    warnings_.push_back(absl::StrCat(
        "no control groups: only plain limits apply to tasks, and a task that uses more memory or "
        "CPU than it requested takes it from other tasks: ",
        groups.status().message()));
  }
  const bool has_devices =
      !nvidia_.minors.empty() || !config_.device_access().empty() || access("/dev/kfd", F_OK) == 0;
  if (groups_ != nullptr && !groups_->denies_devices() && has_devices) {
    warnings_.push_back(absl::StrCat("tasks can open the devices of other tasks: ",
                                     groups_->device_denial_error()));
  }
  return absl::OkStatus();
}

// With a state directory below /tmp, a private /tmp would hide the task's own directory.
absl::Status Isolation::InitNamespaces() {
  const std::string shm = state_directory_ + "/shm";
  const bool hidden = IsBelow(state_directory_, "/tmp") || IsBelow(state_directory_, "/var/tmp");
  const int error = geteuid() == 0 ? TryNamespaces() : EPERM;
  private_tmp_ = !config_.shared_tmp() && error == 0 && !hidden;
  private_pids_ = !config_.shared_pid() && error == 0;
  private_shm_ = !config_.shared_shm() && error == 0;
  has_namespaces_ = error == 0;
  std::vector<std::string> missing;
  if (!config_.shared_tmp() && !private_tmp_) missing.push_back("/tmp (TMPDIR is their own)");
  if (!config_.shared_pid() && !private_pids_)
    missing.push_back("processes (those of one user can read and kill each other)");
  if (!config_.shared_shm() && !private_shm_) missing.push_back("/dev/shm");
  if (geteuid() == 0 && mkdir(shm.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("create ", shm));
  if (missing.empty()) return absl::OkStatus();
  const std::string text = absl::StrCat(
      "tasks share the machine's ", absl::StrJoin(missing, ", "), ": ",
      error != 0 ? absl::StrCat("this agent may not create namespaces: ", std::strerror(error))
                 : "the state directory is below /tmp");
  if (config_.require_namespaces()) return absl::FailedPreconditionError(text);
  warnings_.push_back(text);
  return absl::OkStatus();
}

void Isolation::InitDisk() {
  const std::string& scratch = config_.scratch_directory();
  quotas_ = geteuid() == 0 && HasProjectQuotas(state_directory_);
  scratch_quotas_ = geteuid() == 0 && !scratch.empty() && HasProjectQuotas(scratch);
}

void Isolation::SetDevices(const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                           const DiscoveredDevices& found) {
  nvidia_ = ReadNvidiaFiles();
  nvidia_.mig = found.mig;
  const bool barred = groups_ != nullptr && groups_->denies_devices();
  access_ = AccessOf(config_, devices, found.amd, barred);
}

std::string Isolation::description() const {
  return absl::StrCat("cgroups: ", groups_ != nullptr ? groups_->description() : "none",
                      "; /tmp: ", private_tmp_ ? "private" : "shared",
                      "; processes: ", private_pids_ ? "private" : "shared",
                      "; /dev/shm: ", private_shm_ ? "one per job" : "shared",
                      "; disk: ", quotas_ ? "project quotas" : "watched",
                      scratch_quotas_ && !quotas_ ? ", scratch: project quotas" : "");
}

std::string Isolation::Scratch(const TaskId& id, const std::string& directory) const {
  if (config_.scratch_directory().empty()) return TaskDirectoryOf(directory) + "/scratch";
  return absl::StrCat(config_.scratch_directory(), "/", config_.node_name(), "-", ToString(id));
}

absl::StatusOr<TaskUser> Isolation::Check(const v1::TaskLaunch& launch) const {
  absl::StatusOr<TaskUser> user = users_.Find(launch.run_as());
  if (!user.ok()) return user;
  if (!launch.image().empty() && geteuid() != 0)
    return BlameJob(absl::FailedPreconditionError("images require an agent that runs as root"));
  if (!launch.host_names().empty() && !has_namespaces_) {
    return BlameJob(absl::FailedPreconditionError(
        "hostNames require an agent that runs as root and may create namespaces"));
  }
  if (absl::Status status = CheckVolumesOf(launch, *user); !status.ok()) return status;
  return user;
}

absl::Status Isolation::MakeDirectories(const TaskId& id, const v1::TaskLaunch& launch,
                                        const std::string& directory) const {
  const absl::StatusOr<TaskUser> user = Check(launch);
  if (!user.ok()) return user.status();
  if (launch.has_watchdog() && !FitsSockets(directory)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the task has a watchdog, and its NOTIFY_SOCKET cannot be in ", directory,
                     ": the path is too long; give the agent a shorter stateDirectory"));
  }
  const std::string scratch = Scratch(id, directory);
  RemoveTree(scratch);
  for (const std::string& path :
       {directory + "/work", directory + "/tmp", directory + "/var-tmp", scratch}) {
    if (absl::Status status = MakeOwned(path, *user); !status.ok()) return status;
  }
  if (absl::Status status = MakeDoor(launch, directory); !status.ok()) return status;
  if (HasLayer(launch)) {
    if (absl::Status status = MakePassage(directory + kLayer, 0700); !status.ok()) return status;
  }
  for (const v1::Container& container : launch.containers()) {
    absl::Status status = MakeContainerPlace(LaunchOf(launch, container),
                                             ContainerDirectory(directory, container.name()));
    if (!status.ok()) return status;
  }
  if (absl::Status status = kept_->Make(id, launch, *user); !status.ok()) return status;
  if (absl::Status status = SetQuotas(id, launch, directory); !status.ok()) return status;
  // After the quotas, which apply to what is new.
  absl::Status status = MakeMounts(id, launch, directory, *user);
  for (const v1::Container& container : launch.containers()) {
    if (!status.ok()) break;
    status = MakeMounts(id, LaunchOf(launch, container),
                        ContainerDirectory(directory, container.name()), *user);
  }
  return status;
}

// A task that sees mounts of its own gets the socket by one of them, as its NOTIFY_SOCKET. It is
// mounted with its directory, so that another agent can replace it.
absl::Status Isolation::MakeDoor(const v1::TaskLaunch& launch, const std::string& directory) const {
  if (!FitsSockets(directory)) return absl::OkStatus();
  const bool image = !launch.image().empty();
  if (!image) {
    if (absl::Status status = MakePassage(directory + kOpenDoor, 0711); !status.ok()) return status;
  }
  if (!image && !HasOwnMounts(launch)) return absl::OkStatus();
  absl::Status status = MakePassage(directory + kClosedDoor, 0700);
  return status.ok() ? MakePassage(directory + kDoorInside, 0711) : status;
}

std::string Isolation::Door(const v1::TaskLaunch& launch, const std::string& directory) const {
  if (!FitsSockets(directory)) return "";
  const bool apart = !launch.image().empty() || HasOwnMounts(launch);
  return directory + (apart ? kDoorInside : kOpenDoor);
}

std::string Isolation::ServerInside(const v1::TaskLaunch& launch,
                                    const std::string& directory) const {
  const std::string inside = launch.image().empty() ? directory + kOpenDoor : kImageDoor;
  return absl::StrCat("unix:", inside, kDoorSocket);
}

std::vector<DiskArea> Isolation::DiskAreas(const TaskId& id, const v1::TaskLaunch& launch,
                                           const std::string& directory) const {
  const auto bound = [this](const std::string& place) {
    if (config_.max_scratch_bytes() > 0) return config_.max_scratch_bytes();
    struct statvfs info;
    if (statvfs(place.c_str(), &info) != 0) return int64_t{0};
    return static_cast<int64_t>(info.f_blocks) * static_cast<int64_t>(info.f_frsize) / 2;
  };
  const bool apart = !config_.scratch_directory().empty();
  const int64_t asked = launch.scratch_bytes();
  DiskArea own = {.directories = {directory + "/work", directory + "/tmp", directory + "/var-tmp"},
                  .bound_bytes = !apart && asked > 0 ? asked : bound(state_directory_),
                  .asked = !apart && asked > 0};
  const std::string scratch = Scratch(id, directory);
  if (!apart) own.directories.push_back(scratch);
  if (HasLayer(launch)) own.directories.push_back(directory + kLayer);
  for (const v1::Container& container : launch.containers())
    AddContainerDirectories(container, directory, &own.directories);
  std::vector<DiskArea> areas = {std::move(own)};
  if (apart) {
    areas.push_back({.directories = {scratch},
                     .bound_bytes = asked > 0 ? asked : bound(config_.scratch_directory()),
                     .asked = asked > 0});
  }
  if (launch.keep_disk()) {
    areas.push_back(
        {.directories = {kept_->Disk(id)},
         .bound_bytes = asked > 0 ? asked : bound(scratch.substr(0, scratch.rfind('/'))),
         .asked = asked > 0});
  }
  return areas;
}

// Several agents may share a disk: the search for a free project id only starts at this one.
absl::Status Isolation::SetQuotas(const TaskId& id, const v1::TaskLaunch& launch,
                                  const std::string& directory) const {
  if (!quotas_ && !scratch_quotas_) return absl::OkStatus();
  const auto wish = static_cast<uint32_t>(kFirstProject + (id.job_uid * 64 + id.task) % kProjects);
  const std::vector<DiskArea> areas = DiskAreas(id, launch, directory);
  const size_t own = config_.scratch_directory().empty() ? 1 : 2;  // the job's are not the task's
  for (size_t i = 0; i < own; ++i) {
    if (!(i == 0 ? quotas_ : scratch_quotas_) || areas[i].bound_bytes <= 0) continue;
    const std::string& owner = i == 0 ? directory : areas[i].directories.front();
    const int error = SetProjectQuota(owner, areas[i].directories, wish, areas[i].bound_bytes,
                                      QuotaInodes(owner, areas[i].bound_bytes));
    if (error != 0) return ErrnoStatus(error, absl::StrCat("project quota of ", owner));
  }
  return absl::OkStatus();
}

void Isolation::RemoveDirectory(const std::string& directory) const {
  const uint32_t project = quotas_ ? ReadProjectUse(directory).project : 0;
  RemoveTree(directory);
  ClearProjectQuota(state_directory_, project);
}

absl::Status Isolation::FillContext(const TaskId& id, const v1::TaskLaunch& launch,
                                    EnvironmentContext* context) const {
  const absl::StatusOr<TaskUser> user = users_.Find(launch.run_as());
  if (!user.ok()) return user.status();
  context->user = user->name;
  context->home = user->home;
  context->access = access_;
  const bool image = !launch.image().empty();
  const std::string& directory = context->task_directory;
  context->scratch = image ? kImageScratch : Scratch(id, directory);
  context->tmp = image || private_tmp_ ? "/tmp" : directory + "/tmp";
  if (launch.keep_disk()) context->keep = image ? kImageKeep : kept_->Disk(id);
  if (launch.keep_memory() && HasOwnSharedMemory(launch)) context->keep_memory = "/dev/shm";
  context->hostfile = image ? kImageHostfile : directory + "/hostfile";
  if (FitsSockets(directory))
    context->notify_socket = image ? kImageNotify : directory + kNotifyFile;
  return absl::OkStatus();
}

absl::Status Isolation::Fill(const TaskId& id, const v1::TaskLaunch& launch,
                             const std::string& directory, const Environment& hook_environment,
                             SupervisorSpec* spec) const {
  const absl::StatusOr<TaskUser> user = Check(launch);  // again: the users may have changed
  if (!user.ok()) return user.status();
  spec->user = user->account;
  spec->allow_root = config_.allow_root_tasks();
  if (spec->directory.empty())
    spec->directory = launch.image().empty() ? directory + "/work" : kImageWork;
  FillNamespaces(id, launch, directory, *user, spec);
  FillVolumes(config_, launch, *user, directory, Scratch(id, directory), spec);
  FillNotify(launch, directory, *user, spec);
  spec->remove = {directory + "/tmp", directory + "/var-tmp", directory + "/volumes",
                  Scratch(id, directory), directory + kLayer};
  if (!launch.image().empty())
    spec->remove.push_back(ImageCache() + "/used/" + ImageLink(id, directory));
  FillHooks(hook_environment, spec);
  if (!launch.image().empty()) {
    absl::Status status = FillContainer(id, launch, directory, *user, spec);
    if (!status.ok()) return status;
  }
  return FillGroup(id, launch, spec);
}

// A client of MPS talks to the machine's server through the machine's /dev/shm.
bool Isolation::HasOwnSharedMemory(const v1::TaskLaunch& launch) const {
  const bool mps = config_.sharing().mode() == config::v1::Sharing::MPS;
  return private_shm_ && !(mps && launch.device_uuids_size() > 0);
}

// As the supervisor decides (EnterMounts).
bool Isolation::HasOwnMounts(const v1::TaskLaunch& launch) const {
  return private_tmp_ || private_pids_ || HasOwnSharedMemory(launch) || !launch.volumes().empty() ||
         !launch.host_names().empty();
}

// CUDA imports a handle from another process only if its PID differs, so tasks of one job number
// their PIDs from different offsets.
void Isolation::FillNamespaces(const TaskId& id, const v1::TaskLaunch& launch,
                               const std::string& directory, const TaskUser& user,
                               SupervisorSpec* spec) const {
  const bool image = !launch.image().empty();
  if (private_tmp_ && !image) {
    spec->tmp = directory + "/tmp";
    spec->var_tmp = directory + "/var-tmp";
  }
  spec->own_pids = private_pids_ && !image;  // crun makes its own
  if (launch.host_names_size() > 0) spec->hosts = TaskDirectoryOf(directory) + kHostsFile;
  spec->first_pid = kPidSpacing * (launch.local_rank() % kPidRanges);
  if (HasOwnSharedMemory(launch)) {
    const int64_t otherwise = config_.max_shared_memory_bytes() > 0
                                  ? config_.max_shared_memory_bytes()
                                  : config_.memory_bytes() / 2;
    spec->shm = absl::StrCat(state_directory_, "/shm/", ToString(JobOf(id)));
    spec->shm_bytes = launch.memory_bytes() > 0 ? launch.memory_bytes()
                                                : std::max(otherwise, kLeastSharedMemoryBytes);
    spec->shm_most_bytes =
        std::max({config_.memory_bytes(), spec->shm_bytes, kLeastSharedMemoryBytes});
  } else if (user.uid != geteuid()) {
    spec->sweep_uid = static_cast<int64_t>(user.uid);
    spec->sweep_record = SharedThingsRecord::PathOf(state_directory_ + "/shm", user.uid);
  }
}

// A task that sees mounts of its own gets the socket by one of them. Other tasks, also of the same
// user, cannot enter the directory that it is in.
void Isolation::FillNotify(const v1::TaskLaunch& launch, const std::string& directory,
                           const TaskUser& user, SupervisorSpec* spec) const {
  if (!FitsSockets(directory)) return;
  const bool image = !launch.image().empty();
  const bool mounts = !image && berth::HasOwnMounts(*spec);
  spec->notify = directory + (image || mounts ? kNotifySocket : kNotifyFile);
  spec->notify_uid = static_cast<int64_t>(user.uid);
  if (mounts) spec->notify_at = directory + kNotifyFile;
  spec->door = Door(launch, directory);
  if (mounts) spec->door_at = directory + kOpenDoor;
}

void Isolation::RemoveUnusedSharedMemory() const {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(state_directory_ + "/shm", ignored)) {
    if (entry.is_directory(ignored)) SharedMemory(entry.path()).Release();
    const std::string name = entry.path().filename();
    absl::string_view number = name;
    uid_t user = 0;
    if (absl::ConsumePrefix(&number, kRecordPrefix) && absl::SimpleAtoi(number, &user))
      SharedThingsRecord(entry.path(), user).Release();
  }
}

// Without a group, RLIMIT_DATA limits what a process writes to, not what it only reserves. A task
// with devices has no such limit, because drivers map far more than they use.
absl::Status Isolation::FillGroup(const TaskId& id, const v1::TaskLaunch& launch,
                                  SupervisorSpec* spec) const {
  spec->memory_bytes = launch.memory_bytes();
  spec->memory_nodes = absl::StrJoin(launch.memory_nodes(), ",");
  if (groups_ == nullptr) {
    if (launch.device_uuids().empty()) spec->data_limit_bytes = launch.memory_bytes();
    spec->cpus = launch.cpuset();
    return absl::OkStatus();
  }
  auto group = groups_->Make(id, {.cpu_millis = launch.cpu_millis(),
                                  .memory_bytes = launch.memory_bytes(),
                                  .cpuset = launch.cpuset(),
                                  .denied_devices = DeniedDevices(launch, nvidia_, access_)});
  if (!group.ok()) return group.status();
  spec->groups = *std::move(group);
  return absl::OkStatus();
}

void Isolation::FillHooks(const Environment& environment, SupervisorSpec* spec) const {
  const config::v1::Hooks& hooks = config_.hooks();
  spec->prolog = ToList(hooks.prolog());
  spec->epilog = ToList(hooks.epilog());
  spec->prolog_ms = Milliseconds(hooks.prolog_timeout(), kDefaultHookMs);
  spec->epilog_ms = Milliseconds(hooks.epilog_timeout(), kDefaultHookMs);
  if (!spec->prolog.empty() || !spec->epilog.empty()) spec->hook_env = ToEntries(environment);
}

// Writes crun's description of the task: config.json of its bundle.
absl::Status Isolation::WriteBundle(const TaskId& id, const v1::TaskLaunch& launch,
                                    const std::string& directory, const TaskUser& user,
                                    const SupervisorSpec& spec) const {
  const auto image = Image(id, launch, directory);
  if (!image.ok()) return image.status();
  ContainerSpec container{
      .rootfs = image->rootfs,
      .argv = ExpandCommand(spec.argv, spec.env),  // only root can read it
      .env = spec.env,
      .working_directory = spec.directory,
      .terminal = spec.terminal,
      .user = user,
      .binds = {{directory + "/work", kImageWork, true},
                {Scratch(id, directory), kImageScratch, true},
                {TaskDirectoryOf(directory) + "/hostfile", kImageHostfile, false},
                {directory + "/tmp", "/tmp", true}}};
  if (launch.keep_disk()) container.binds.push_back({kept_->Disk(id), kImageKeep, true});
  if (!spec.hosts.empty()) container.binds.push_back({spec.hosts, "/etc/hosts", false});
  if (!spec.notify.empty()) container.binds.push_back({spec.notify, kImageNotify, true});
  if (!spec.door.empty()) container.binds.push_back({spec.door, kImageDoor, false});
  if (!spec.shm.empty()) container.shm = SharedMemory(spec.shm).files();
  for (const std::string& file : DeviceFiles(launch, nvidia_, access_))
    container.binds.push_back({file, file, true});
  for (const std::string& path : config_.images().binds())
    container.binds.push_back({path, path, false});
  std::vector<std::string> mounted = {"/proc", "/sys", "/dev/shm"};
  for (const Bind& bind : container.binds) mounted.push_back(bind.destination);
  absl::Status status = CheckImagePoints(launch, image->rootfs, mounted);
  if (!status.ok()) return status;
  if (MapsUser(*image, user)) {
    container.seen_uid = image->uid;
    container.seen_gid = image->gid;
  }
  container.writable = !spec.root.empty();
  if (container.writable) container.rootfs = spec.root;
  for (Bind& bind : VolumeBinds(launch, directory)) container.binds.push_back(std::move(bind));
  const std::string bundle = directory + "/bundle";
  if (mkdir(bundle.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("create ", bundle));
  const int error = WriteFileAtomically(bundle, "config.json", ContainerConfig(container));
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("write ", bundle, "/config.json"));
}

// The runtime is started as root in the task's group. From the job's environment it gets only the
// variable that marks its processes.
absl::Status Isolation::FillContainer(const TaskId& id, const v1::TaskLaunch& launch,
                                      const std::string& directory, const TaskUser& user,
                                      SupervisorSpec* spec) const {
  absl::Status status = FillLayer(id, launch, directory, user, spec);
  if (status.ok()) status = WriteBundle(id, launch, directory, user, *spec);
  if (!status.ok()) return status;
  const std::string crun = config_.images().crun().empty() ? kDefaultCrun : config_.images().crun();
  const auto image = Image(id, launch, directory);
  if (!image.ok()) return image.status();
  const bool maps = MapsUser(*image, user);
  const std::string part = ContainerNameOf(directory);
  const std::string name =
      absl::StrCat("berth-", config_.node_name(), "-", ToString(id), part.empty() ? "" : "-", part);
  const std::vector<std::string> common = {crun, absl::StrCat("--root=", directory, "/crun"),
                                           "--cgroup-manager=disabled"};
  spec->exec_argv = common;
  spec->exec_argv.insert(
      spec->exec_argv.end(),
      {"exec", "--no-new-privs", absl::StrCat("--cwd=", spec->directory),
       absl::StrCat("--user=", maps ? image->uid : user.uid, ":", maps ? image->gid : user.gid)});
  spec->exec_tty_argv = spec->exec_argv;
  spec->exec_tty_argv.push_back("--tty");
  spec->exec_argv.push_back(name);
  spec->exec_tty_argv.push_back(name);
  spec->argv = common;
  spec->argv.insert(spec->argv.end(),
                    {"run", absl::StrCat("--bundle=", directory, "/bundle"), name});
  spec->env = {kRuntimePath, TaskMarker(TaskDirectoryOf(directory))};
  spec->container = true;
  spec->container_user = spec->user.empty() ? "root" : spec->user;  // the agent is root
  spec->user.clear();
  spec->directory = std::string("/");
  return absl::OkStatus();
}

void Isolation::Remove(const TaskId& id) const {
  if (groups_ != nullptr) groups_->Remove(id);
  if (!config_.scratch_directory().empty()) {
    const uint32_t project = scratch_quotas_ ? ReadProjectUse(Scratch(id, "")).project : 0;
    RemoveTree(Scratch(id, ""));
    ClearProjectQuota(config_.scratch_directory(), project);
  }
  RemoveImageLinks(id);
}

}  // namespace berth
