#include "clients/agent/isolation.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"

namespace berth {
namespace {

constexpr int64_t kDefaultHookMs = 60'000;
constexpr char kRuntimePath[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kDefaultCrun[] = "/usr/bin/crun";
constexpr char kDefaultUmoci[] = "/usr/bin/umoci";
constexpr int64_t kDefaultUnpackMs = 3'600'000;
constexpr int64_t kDefaultImageFiles = 4'000'000;
constexpr int64_t kDefaultImageBytes = int64_t{64} << 30;
constexpr int64_t kDefaultCacheBytes = int64_t{256} << 30;
constexpr int64_t kDefaultMinFreeBytes = int64_t{256} << 20;  // of health.minFree

int64_t Milliseconds(const google::protobuf::Duration& d, int64_t otherwise) {
  const int64_t ms = d.seconds() * 1000 + d.nanos() / 1'000'000;
  return ms > 0 ? ms : otherwise;
}

bool IsBelow(const std::string& path, absl::string_view directory) {
  return path == directory || absl::StartsWith(path, absl::StrCat(directory, "/"));
}

absl::Status MakeOwned(const std::string& path, const TaskUser& user) {
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoStatus(errno, absl::StrCat("create ", path));
  if (geteuid() != 0 || lchown(path.c_str(), user.uid, user.gid) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("chown ", path));
}

// libstdc++ walks with openat and O_NOFOLLOW: a task's user cannot lead it out of the directory.
void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
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

bool CanUnshareMounts() {
  const pid_t pid = fork();
  if (pid < 0) return false;
  if (pid == 0) {
    const bool done =
        unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
    _exit(done ? 0 : 1);
  }
  int status = 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

Isolation::Isolation(const config::v1::Agent& config, std::string state_directory)
    : config_(config),
      state_directory_(std::move(state_directory)),
      users_(config.task_user(), ToMap(config.task_users()), config.allow_root_tasks()),
      nvidia_(ReadNvidiaFiles()) {}

absl::StatusOr<std::unique_ptr<Isolation>> Isolation::Create(const config::v1::Agent& config,
                                                             const std::string& state_directory) {
  std::unique_ptr<Isolation> isolation(new Isolation(config, state_directory));
  if (absl::Status status = isolation->Init(); !status.ok()) return status;
  return isolation;
}

absl::Status Isolation::Init() {
  if (const auto user = users_.Find(""); !user.ok()) return user.status();
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
        "no control groups: tasks are held to plain limits only, and one that uses more memory or "
        "CPU than it asked for takes it from others: ",
        groups.status().message()));
  }
  const bool has_devices =
      !nvidia_.minors.empty() || !config_.device_access().empty() || access("/dev/kfd", F_OK) == 0;
  if (groups_ != nullptr && !groups_->bars_devices() && has_devices) {
    warnings_.push_back(absl::StrCat("tasks can open the devices of other tasks, if they try: ",
                                     groups_->why_devices_are_open()));
  }
  if (config_.shared_tmp()) return absl::OkStatus();
  // Over a state directory below /tmp a private one would hide the task's own directory.
  const bool hidden = IsBelow(state_directory_, "/tmp") || IsBelow(state_directory_, "/var/tmp");
  private_tmp_ = geteuid() == 0 && !hidden && CanUnshareMounts();
  if (!private_tmp_) {
    warnings_.push_back(absl::StrCat(
        "tasks share the machine's /tmp (TMPDIR is their own): ",
        hidden ? "the state directory is below it" : "this agent may not make mount namespaces"));
  }
  return absl::OkStatus();
}

void Isolation::SetDevices(const google::protobuf::RepeatedPtrField<v1::Device>& devices,
                           const DiscoveredDevices& found) {
  nvidia_ = ReadNvidiaFiles();
  nvidia_.mig = found.mig;
  const bool barred = groups_ != nullptr && groups_->bars_devices();
  access_ = AccessOf(config_, devices, found.amd, barred);
}

std::string Isolation::description() const {
  return absl::StrCat("cgroups: ", groups_ != nullptr ? groups_->description() : "none",
                      "; /tmp: ", private_tmp_ ? "private" : "shared");
}

std::string Isolation::Scratch(const TaskId& id, const std::string& directory) const {
  if (config_.scratch_directory().empty()) return directory + "/scratch";
  return absl::StrCat(config_.scratch_directory(), "/", config_.node_name(), "-", ToString(id));
}

absl::StatusOr<TaskUser> Isolation::Check(const v1::TaskLaunch& launch) const {
  absl::StatusOr<TaskUser> user = users_.Find(launch.run_as());
  if (!user.ok() || launch.image().empty()) return user;
  if (geteuid() != 0)
    return JobsFault(absl::FailedPreconditionError("only an agent that is root can run images"));
  return user;
}

std::string Isolation::ImageCache() const {
  const std::string& cache = config_.images().cache();
  return cache.empty() ? state_directory_ + "/images" : cache;
}

// The same machine may have several agents.
std::string Isolation::ImageLink(const TaskId& id) const {
  return absl::StrCat(config_.node_name(), "-", ToString(id));
}

// Twice what the node is drained for: images must not be what brings it there.
agent::v1::ImageRequest Isolation::ImageDefaults() const {
  const config::v1::Images& images = config_.images();
  const auto or_else = [](int64_t given, int64_t otherwise) {
    return given > 0 ? given : otherwise;
  };
  agent::v1::ImageRequest request;
  request.set_cache(ImageCache());
  request.set_umoci(images.umoci().empty() ? kDefaultUmoci : images.umoci());
  request.set_cache_bytes(or_else(images.cache_bytes(), kDefaultCacheBytes));
  request.set_max_image_bytes(or_else(images.max_image_bytes(), kDefaultImageBytes));
  request.set_max_image_files(or_else(images.max_image_files(), kDefaultImageFiles));
  request.set_timeout_ms(Milliseconds(images.unpack_timeout(), kDefaultUnpackMs));
  request.set_min_free_bytes(2 * or_else(config_.health().min_free_bytes(), kDefaultMinFreeBytes));
  return request;
}

absl::StatusOr<std::optional<agent::v1::ImageRequest>> Isolation::ImageToUnpack(
    const TaskId& id, const v1::TaskLaunch& launch) const {
  if (launch.image().empty()) return std::nullopt;
  const auto image = FindImage(config_.images().directory(), launch.image());
  if (!image.ok()) return image.status();
  if (image->layout.empty()) return std::nullopt;
  agent::v1::ImageRequest request = ImageDefaults();
  request.set_layout(image->layout);
  request.set_tag(image->tag);
  request.set_link(ImageLink(id));
  return request;
}

std::optional<agent::v1::ImageRequest> Isolation::ImageCleaning() const {
  if (config_.images().directory().empty() || geteuid() != 0) return std::nullopt;
  return ImageDefaults();
}

absl::StatusOr<TaskImage> Isolation::Image(const TaskId& id, const v1::TaskLaunch& launch) const {
  auto linked = LinkedImage(ImageCache(), ImageLink(id));
  if (!absl::IsNotFound(linked.status())) return linked;
  const auto image = FindImage(config_.images().directory(), launch.image());
  if (!image.ok()) return image.status();
  if (image->rootfs.empty()) return linked.status();
  return TaskImage{.rootfs = image->rootfs, .env = {}, .working_directory = ""};
}

void Isolation::KeepImagesOf(const std::set<TaskId>& tasks) const {
  std::set<std::string> kept;
  for (const TaskId& id : tasks) kept.insert(ImageLink(id));
  std::error_code ignored;
  for (const auto& link : std::filesystem::directory_iterator(ImageCache() + "/used", ignored)) {
    const std::string name = link.path().filename();
    absl::string_view id = name;  // "12-0-1", if it is one of this node
    const bool ours = absl::ConsumePrefix(&id, config_.node_name() + "-") &&
                      std::count(id.begin(), id.end(), '-') == 2;
    if (ours && !kept.contains(name)) unlink(link.path().c_str());
  }
}

absl::Status Isolation::MakeDirectories(const TaskId& id, const v1::TaskLaunch& launch,
                                        const std::string& directory) const {
  const absl::StatusOr<TaskUser> user = Check(launch);
  if (!user.ok()) return user.status();
  const std::string scratch = Scratch(id, directory);
  RemoveTree(scratch);
  for (const std::string& path :
       {directory + "/work", directory + "/tmp", directory + "/var-tmp", scratch}) {
    if (absl::Status status = MakeOwned(path, *user); !status.ok()) return status;
  }
  return absl::OkStatus();
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
  context->hostfile = image ? kImageHostfile : directory + "/hostfile";
  return absl::OkStatus();
}

absl::Status Isolation::Fill(const TaskId& id, const v1::TaskLaunch& launch,
                             const std::string& directory, const Environment& hook_environment,
                             SupervisorSpec* spec) const {
  const absl::StatusOr<TaskUser> user = Check(launch);  // again: the machine may have changed
  if (!user.ok()) return user.status();
  spec->user = user->account;
  spec->allow_root = config_.allow_root_tasks();
  if (spec->directory.empty())
    spec->directory = launch.image().empty() ? directory + "/work" : kImageWork;
  if (private_tmp_ && launch.image().empty()) {
    spec->tmp = directory + "/tmp";
    spec->var_tmp = directory + "/var-tmp";
  }
  spec->remove = {directory + "/tmp", directory + "/var-tmp", Scratch(id, directory)};
  if (!launch.image().empty()) spec->remove.push_back(ImageCache() + "/used/" + ImageLink(id));
  FillHooks(hook_environment, spec);
  if (!launch.image().empty()) {
    absl::Status status = FillContainer(id, launch, directory, *user, spec);
    if (!status.ok()) return status;
  }
  return FillGroup(id, launch, spec);
}

// Without a group: RLIMIT_DATA bounds what a process writes to, not what it only reserves. A task
// with devices has none, because their drivers map far more than they use.
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
                                  .denied_devices = OthersDevices(launch, nvidia_, access_)});
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

// What crun is told of the task: config.json of its bundle.
absl::Status Isolation::WriteBundle(const TaskId& id, const v1::TaskLaunch& launch,
                                    const std::string& directory, const TaskUser& user,
                                    const SupervisorSpec& spec) const {
  const auto image = Image(id, launch);
  if (!image.ok()) return image.status();
  ContainerSpec container{.rootfs = image->rootfs,
                          .argv = spec.argv,
                          .env = spec.env,
                          .working_directory = spec.directory,
                          .user = user,
                          .binds = {{directory + "/work", kImageWork, true},
                                    {Scratch(id, directory), kImageScratch, true},
                                    {directory + "/hostfile", kImageHostfile, false},
                                    {directory + "/tmp", "/tmp", true}}};
  for (const std::string& file : DeviceFiles(launch, nvidia_, access_))
    container.binds.push_back({file, file, true});
  for (const std::string& path : config_.images().binds())
    container.binds.push_back({path, path, false});
  const std::string bundle = directory + "/bundle";
  if (mkdir(bundle.c_str(), 0700) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, absl::StrCat("create ", bundle));
  const int error = WriteFileAtomically(bundle, "config.json", ContainerConfig(container));
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, absl::StrCat("write ", bundle, "/config.json"));
}

// The runtime is started as root in the task's group and gets nothing of the job's environment but
// the mark by which its processes are found.
absl::Status Isolation::FillContainer(const TaskId& id, const v1::TaskLaunch& launch,
                                      const std::string& directory, const TaskUser& user,
                                      SupervisorSpec* spec) const {
  if (absl::Status status = WriteBundle(id, launch, directory, user, *spec); !status.ok())
    return status;
  const std::string crun = config_.images().crun().empty() ? kDefaultCrun : config_.images().crun();
  const std::string name = absl::StrCat("berth-", config_.node_name(), "-", ToString(id));
  const std::vector<std::string> common = {crun, absl::StrCat("--root=", directory, "/crun"),
                                           "--cgroup-manager=disabled"};
  spec->exec_argv = common;
  spec->exec_argv.insert(spec->exec_argv.end(),
                         {"exec", "--no-new-privs", absl::StrCat("--cwd=", spec->directory),
                          absl::StrCat("--user=", user.uid, ":", user.gid)});
  spec->exec_tty_argv = spec->exec_argv;
  spec->exec_tty_argv.push_back("--tty");
  spec->exec_argv.push_back(name);
  spec->exec_tty_argv.push_back(name);
  spec->argv = common;
  spec->argv.insert(spec->argv.end(),
                    {"run", absl::StrCat("--bundle=", directory, "/bundle"), name});
  spec->env = {kRuntimePath, TaskMarker(directory)};
  spec->container = true;
  spec->user.clear();
  spec->directory = std::string("/");
  return absl::OkStatus();
}

void Isolation::Remove(const TaskId& id) const {
  if (groups_ != nullptr) groups_->Remove(id);
  if (!config_.scratch_directory().empty()) RemoveTree(Scratch(id, ""));
  unlink((ImageCache() + "/used/" + ImageLink(id)).c_str());
}

}  // namespace berth
