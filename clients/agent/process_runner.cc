#include "clients/agent/process_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"
#include "clients/agent/host_names.h"
#include "clients/agent/leftovers.h"
#include "clients/agent/read_as.h"
#include "clients/agent/supervisor/control_group.h"
#include "clients/agent/supervisor/shared_memory.h"
#include "clients/agent/supervisor/shared_things.h"
#include "clients/agent/task_files.h"
#include "clients/agent/task_signals.h"
#include "clients/agent/task_sockets.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kRecheckInterval = absl::Seconds(1);
constexpr int kMaxEvents = 64;
// The maximum grace of a task that exceeds its disk limit, whatever it requested: it may keep
// filling the disk in the meantime.
constexpr absl::Duration kMaxDiskGrace = absl::Seconds(10);

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool IsExecutable(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

// A supervisor that ignores reasons still ends its task, but does not name the reason.
TaskEvent BlamedEvent(TaskEvent event, const SupervisorStatus& status, const std::string& blame) {
  const bool named = status.takes_reasons || absl::StrContains(event.message, blame);
  if (blame.empty() || named || event.cause != v1::TaskReport::CAUSE_UNSPECIFIED) return event;
  absl::StrAppend(&event.message, event.message.empty() ? "" : "; ", blame);
  if (event.exit_code != 0) return event;
  event.exit_signal = SIGKILL;  // a failure, however it ended
  event.exit_code = 128 + SIGKILL;
  return event;
}

}  // namespace

ProcessRunner::ProcessRunner(Options options)
    : options_(std::move(options)), ports_(options_.first_port, options_.last_port) {}

absl::StatusOr<std::unique_ptr<ProcessRunner>> ProcessRunner::Create(Options options) {
  std::unique_ptr<ProcessRunner> runner(new ProcessRunner(std::move(options)));
  if (absl::Status status = runner->Init(); !status.ok()) return status;
  return runner;
}

absl::Status ProcessRunner::Init() {
  if (!IsExecutable(options_.supervisor)) {
    return absl::NotFoundError(
        absl::StrCat("supervisor program ", options_.supervisor, ": ", std::strerror(errno)));
  }
  if (mkdir(tasks_directory().c_str(), 0711) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, absl::StrCat("create ", tasks_directory()));
  }
  const std::string lease = options_.state_directory + "/lease";
  lease_fd_ = open(lease.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lease_fd_ < 0) return ErrnoStatus(errno, absl::StrCat("open ", lease));
  const std::string longer = lease + kLongerLeaseSuffix;
  longer_fd_ = open(longer.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (longer_fd_ < 0) return ErrnoStatus(errno, absl::StrCat("open ", longer));
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  inotify_fd_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  disk_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd_ < 0 || inotify_fd_ < 0 || disk_fd_ < 0)
    return ErrnoStatus(errno, "epoll, inotify or eventfd");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = inotify_fd_;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, inotify_fd_, &event);
  auto images = ImageUnpacker::Create(options_.image_program);
  if (!images.ok()) return images.status();
  images_ = *std::move(images);
  event.data.fd = images_->fd();
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, images_->fd(), &event);
  event.data.fd = disk_fd_;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, disk_fd_, &event);
  const DiskWatch::Options watch = {.tasks_directory = tasks_directory(),
                                    .min_free_bytes = options_.min_free_bytes,
                                    .interval = options_.disk_interval,
                                    .kept_output_bytes = options_.kept_output_bytes};
  disk_ = std::make_unique<DiskWatch>(watch, [this] {
    const uint64_t one = 1;
    if (write(disk_fd_, &one, sizeof one) < 0) return;  // full: it is readable anyway
  });
  return absl::OkStatus();
}

ProcessRunner::~ProcessRunner() {
  for (auto& [id, live] : live_) {
    Unpin(live);
    if (live.control_fd >= 0) close(live.control_fd);
  }
  disk_.reset();
  for (const int fd : {epoll_fd_, inotify_fd_, lease_fd_, longer_fd_, disk_fd_}) {
    if (fd >= 0) close(fd);
  }
}

std::string ProcessRunner::Directory(const TaskId& id) const {
  return absl::StrCat(tasks_directory(), "/", ToString(id));
}

absl::Status ProcessRunner::MakeDirectory(const TaskId& id, const v1::TaskLaunch& launch) {
  const std::string directory = Directory(id);
  options_.isolation->RemoveDirectory(
      directory);  // left by a Prepare that was not journaled before a crash
  const std::string control = directory + "/control";
  if (mkdir(directory.c_str(), 0711) != 0)
    return ErrnoStatus(errno, absl::StrCat("create ", directory));
  if (mkfifo(control.c_str(), 0600) != 0)
    return ErrnoStatus(errno, absl::StrCat("create ", control));
  return options_.isolation->MakeDirectories(id, launch, directory);
}

void ProcessRunner::Prepare(const TaskId& id, const v1::TaskLaunch& launch,
                            std::optional<int> port) {
  TaskEvent event;
  event.id = id;
  event.kind = TaskEvent::Kind::kPrepared;
  if (port.has_value()) {
    const absl::StatusOr<int> reserved = ports_.Reserve(id, *port);
    if (!reserved.ok()) return Refuse(id, reserved.status());
    event.port = *reserved;
  }
  absl::Status status = MakeDirectory(id, launch);
  if (status.ok()) status = MakeReady(id, launch, std::move(event));
  if (!status.ok()) Refuse(id, status);
}

void ProcessRunner::Refuse(const TaskId& id, const absl::Status& status) {
  RemoveAll(id);
  TaskEvent event;
  event.kind = TaskEvent::Kind::kRefused;
  event.fault = FaultOf(status);
  event.message = std::string(status.message());
  Finish(id, std::move(event));
}

void ProcessRunner::RemoveAll(const TaskId& id) {
  options_.isolation->RemoveDirectory(Directory(id));
  options_.isolation->Remove(id);
}

void ProcessRunner::Discard(const TaskId& id) {
  images_->Forget(id);
  unpacking_.erase(id);
  ports_.Release(id);
  RemoveAll(id);
  std::erase_if(events_, [&](const TaskEvent& event) { return event.id == id; });
}

absl::StatusOr<SupervisorSpec> ProcessRunner::MakeSpec(const TaskId& id,
                                                       const v1::TaskLaunch& launch,
                                                       const v1::Start& start) const {
  EnvironmentContext context = options_.context;
  context.task_directory = Directory(id);
  absl::Status status = options_.isolation->FillContext(id, launch, &context);
  if (!status.ok()) return status;
  const absl::StatusOr<TaskUser> user = options_.isolation->Check(launch);
  if (!user.ok()) return user.status();
  SupervisorSpec spec;
  const std::string directory = Directory(id);
  if (OpenDoor(id, options_.isolation->Door(launch, directory), user->uid)) {
    context.server = options_.isolation->ServerInside(launch, directory);
  }
  status = FillCommand(id, launch, start, directory, *user, std::move(context), &spec);
  if (!status.ok()) return status;
  if (launch.device_uuids_size() > 0) FillSaving(launch, &spec);
  spec.terminal = launch.terminal();
  spec.log_file_bytes = options_.log_file_bytes;
  spec.log_files = options_.log_files;
  if (launch.fence()) {
    spec.lease_file = options_.state_directory + "/lease";
    spec.lapse_grace_ms = absl::ToInt64Milliseconds(StopGrace(launch));
    spec.lapse_signal = StopSignal(launch);
  }
  spec.marks_beginning = true;
  spec.stop_signal = StopSignal(launch);
  spec.grace_ms = absl::ToInt64Milliseconds(StopGrace(launch));
  status =
      options_.isolation->Fill(id, launch, directory, HookEnvironment(id, launch, start), &spec);
  if (status.ok()) status = FillContainers(id, launch, start, &spec);
  if (!status.ok()) return status;
  return spec;
}

void ProcessRunner::FillSaving(const v1::TaskLaunch& launch, SupervisorSpec* spec) const {
  spec->cuda_checkpoint = options_.cuda_checkpoint;
  spec->gpu_files = options_.gpu_files;
  for (const std::string& uuid : launch.device_uuids()) {
    const auto memory = options_.context.device_memory.find(uuid);
    if (memory != options_.context.device_memory.end()) spec->gpu_bytes += memory->second;
  }
}

// False: the task has no socket; it runs without one.
bool ProcessRunner::OpenDoor(const TaskId& id, const std::string& directory, uid_t user) const {
  if (options_.sockets == nullptr || directory.empty()) return false;
  const absl::Status opened = options_.sockets->Open(id, directory + kDoorSocket, user);
  if (!opened.ok()) LogWarn("a task has no socket", {{"task", ToString(id)}, {"error", opened}});
  return opened.ok();
}

// The environment of prolog and epilog: nothing in it comes from the job.
Environment ProcessRunner::HookEnvironment(const TaskId& id, const v1::TaskLaunch& launch,
                                           const v1::Start& start) const {
  v1::TaskLaunch plain = launch;
  plain.clear_env();
  EnvironmentContext context = options_.context;
  context.task_directory = Directory(id);
  options_.isolation->FillContext(id, launch, &context).IgnoreError();  // checked just before
  Environment environment = BuildEnvironment(id, plain, start, context);
  environment["BERTH_USER"] = context.user;
  for (const char* own : {"HOME", "USER", "LOGNAME", "TMPDIR", "NOTIFY_SOCKET", "WATCHDOG_USEC"})
    environment.erase(own);
  return environment;
}

void ProcessRunner::Start(const TaskId& id, const v1::TaskLaunch& launch, const v1::Start& start) {
  absl::Status status =
      WriteTextFile(Directory(id) + "/hostfile", HostfileText(start, options_.context), 0644);
  if (status.ok() && !launch.host_names().empty()) {
    status = WriteTextFile(Directory(id) + kHostsFile,
                           HostsText(id, launch, start, options_.context), 0644);
  }
  if (!status.ok()) return Refuse(id, status);
  const absl::StatusOr<SupervisorSpec> spec = MakeSpec(id, launch, start);
  if (!spec.ok()) return Refuse(id, spec.status());
  status = Spawn(id, *spec, &live_[id]);
  if (status.ok()) return WatchDisk(id, launch, spec->groups);
  ControlGroup(spec->groups).Remove();
  Refuse(id, status);
}

// The agent takes the lock and hands it over, so that no supervisor ever runs without it.
absl::Status ProcessRunner::Spawn(const TaskId& id, const SupervisorSpec& spec, Live* live) {
  const std::string directory = Directory(id);
  if (absl::Status status = WriteTextFile(directory + "/spec", EncodeSpec(spec), 0600);
      !status.ok())
    return status;
  const int lock = open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return ErrnoStatus(errno, "create lock");
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::InternalError("the task's directory is locked: it has a supervisor already");
  }
  Watch(id, live);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  for (const int fd : {0, 1, 2})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  // dup2 onto itself would keep close-on-exec; glibc clears it in that case.
  posix_spawn_file_actions_adddup2(&actions, lock, kSupervisorLockFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kSupervisorLockFd + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::string program = options_.supervisor;
  std::string argument = directory;
  char* argv[] = {program.data(), argument.data(), nullptr};
  const int error =
      posix_spawn(&live->supervisor, program.c_str(), &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(lock);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("spawn ", program));
  live->child = true;
  if (!Pin(id, live->supervisor, live)) recheck_.insert(id);
  return absl::OkStatus();
}

void ProcessRunner::Watch(const TaskId& id, Live* live) {
  live->watch = inotify_add_watch(inotify_fd_, Directory(id).c_str(), IN_MOVED_TO);
  if (live->watch >= 0)
    by_watch_[live->watch] = id;
  else
    recheck_.insert(id);  // out of inotify watches
  // Read and write: opens at once, and data waits for a supervisor that has not opened its end yet.
  live->control_fd = open((Directory(id) + "/control").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

bool ProcessRunner::Pin(const TaskId& id, pid_t pid, Live* live) {
  live->pid_fd = PidfdOpen(pid);
  if (live->pid_fd < 0) return false;
  fcntl(live->pid_fd, F_SETFD, FD_CLOEXEC);
  by_pid_fd_[live->pid_fd] = id;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = live->pid_fd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, live->pid_fd, &event);
  return true;
}

void ProcessRunner::Adopt(const agent::v1::TaskRecord& record) {
  const TaskId id = ToTaskId(record.key());
  if (record.port() != 0) ports_.Adopt(id, record.port());
  if (record.phase() == agent::v1::TaskRecord::PREPARED) return;
  Live& live = live_[id];
  live.begun = record.phase() != agent::v1::TaskRecord::STARTING;
  Watch(id, &live);
  if (!IsLocked(Directory(id))) return OnSupervisorEnd(id);
  const SupervisorSpec spec = ReadSpec(Directory(id));
  const auto user = spec.notify_uid >= 0 ? static_cast<uid_t>(spec.notify_uid) : geteuid();
  OpenDoor(id, spec.door, user);
  WatchDisk(id, record.launch(), spec.groups);
  CheckStatus(id);
}

void ProcessRunner::WatchDisk(const TaskId& id, const v1::TaskLaunch& launch,
                              const std::vector<std::string>& groups) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second.stop_signal = StopSignal(launch);
  found->second.stop_grace = std::min(StopGrace(launch), kMaxDiskGrace);
  disk_->Add(id, options_.isolation->DiskAreas(id, launch, Directory(id)),
             groups.empty() ? "" : groups.front());
}

void ProcessRunner::EndCulprits() {
  uint64_t count;
  if (read(disk_fd_, &count, sizeof count) < 0) return;  // no culprit was found
  for (const DiskCulprit& culprit : disk_->Take()) {
    const auto found = live_.find(culprit.id);
    if (found == live_.end()) continue;
    found->second.blame = culprit.message;
    LogWarn("ending a task that exceeds its disk limit",
            {{"task", ToString(culprit.id)}, {"reason", culprit.message}});
    Command(culprit.id, found->second.stop_signal, found->second.stop_grace,
            v1::TaskReport::CAUSE_UNSPECIFIED, culprit.message);
  }
}

void ProcessRunner::Kill(const TaskId& id, const std::string& signal, absl::Duration grace,
                         v1::TaskReport::Cause cause) {
  const int number = SignalNumber(signal);
  Command(id, number != 0 ? number : SIGTERM, grace, cause, "");
}

void ProcessRunner::Command(const TaskId& id, int signal, absl::Duration grace,
                            v1::TaskReport::Cause cause, const std::string& reason) {
  Write(id, absl::StrCat(signal, " ", std::max<int64_t>(absl::ToInt64Milliseconds(grace), 0), " ",
                         static_cast<int>(cause), reason.empty() ? "" : " ", reason, "\n"));
}

void ProcessRunner::Signal(const TaskId& id, const std::string& signal) {
  const int number = SignalNumber(signal);
  if (number != 0) Write(id, absl::StrCat(number, " ", kSignalOnly, " 0\n"));
}

void ProcessRunner::Freeze(const TaskId& id, int64_t request, bool saves_devices) {
  const bool saves = saves_devices && ReadStatus(Directory(id)).saves_devices;
  Write(id, absl::StrCat(SIGCONT, " ", saves ? kSaveAndFreeze : kFreezeOnly, " ", request, "\n"));
}

void ProcessRunner::Write(const TaskId& id, const std::string& line) {
  const auto found = live_.find(id);
  if (found == live_.end() || found->second.control_fd < 0) return;
  // A full FIFO means that the supervisor is not reading, and earlier stop orders are in it.
  if (write(found->second.control_fd, line.data(), line.size()) < 0) return;
}

void ProcessRunner::Remove(const TaskId& id) { RemoveAll(id); }

// Eight aligned bytes of one page: readers see the old or the new value. A supervisor reads the
// longer lease first, so it sees one of the two even during a write.
bool ProcessRunner::SetLease(absl::Duration soon, absl::Duration deadline) {
  const int64_t soon_ns = absl::ToInt64Nanoseconds(soon);
  const int64_t longer_ns = deadline > soon ? absl::ToInt64Nanoseconds(deadline) : 0;
  if (pwrite(lease_fd_, &soon_ns, sizeof soon_ns, 0) != sizeof soon_ns) return false;
  if (longer_ns == longer_lease_ns_) return true;
  if (pwrite(longer_fd_, &longer_ns, sizeof longer_ns, 0) != sizeof longer_ns) return false;
  longer_lease_ns_ = longer_ns;
  return true;
}

std::optional<absl::Duration> ProcessRunner::ReadLease(const std::string& state_directory) {
  const std::string path = state_directory + "/lease";
  const int64_t ns = std::max(ReadLeaseFile(path), ReadLeaseFile(path + kLongerLeaseSuffix));
  if (ns == 0) return std::nullopt;
  return absl::Nanoseconds(ns);
}

absl::Duration ProcessRunner::PollInterval() const {
  if (!events_.empty()) return absl::ZeroDuration();
  return recheck_.empty() ? absl::InfiniteDuration() : kRecheckInterval;
}

std::vector<TaskEvent> ProcessRunner::Poll() {
  epoll_event ready[kMaxEvents];
  const int count = epoll_wait(epoll_fd_, ready, kMaxEvents, 0);
  PollImages();
  EndCulprits();
  std::vector<TaskId> ended;
  for (int i = 0; i < count; ++i) {
    const auto found = by_pid_fd_.find(ready[i].data.fd);
    if (found != by_pid_fd_.end()) ended.push_back(found->second);
  }
  alignas(inotify_event) char buffer[16384];
  ssize_t length;
  while ((length = read(inotify_fd_, buffer, sizeof buffer)) > 0) {
    for (ssize_t at = 0; at < length;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      const auto found = by_watch_.find(event->wd);
      if (found != by_watch_.end()) CheckStatus(TaskId(found->second));
    }
  }
  for (const TaskId& id : ended) OnSupervisorEnd(id);
  const std::set<TaskId> recheck = recheck_;
  for (const TaskId& id : recheck) {
    if (IsLocked(Directory(id)))
      CheckStatus(id);
    else
      OnSupervisorEnd(id);
  }
  return std::exchange(events_, {});
}

// A status file shows that the command runs; the exit of the supervisor shows the end.
void ProcessRunner::CheckStatus(const TaskId& id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  Live& live = found->second;
  const SupervisorStatus status = ReadStatus(Directory(id));
  if (live.pid_fd < 0) {
    // The lock is checked after the pid was pinned: if it is held, the pid is still the
    // supervisor's.
    const bool pinned =
        status.supervisor_pid > 0 && Pin(id, static_cast<pid_t>(status.supervisor_pid), &live);
    if (!IsLocked(Directory(id))) return OnSupervisorEnd(id);
    live.supervisor = static_cast<pid_t>(status.supervisor_pid);
    if (pinned && live.watch >= 0)
      recheck_.erase(id);
    else
      recheck_.insert(id);
  }
  if (status.phase != SupervisorStatus::kRunning) return;
  if (!live.running) ReportRunning(id, status, live);
  ReportFrozen(id, status, live);
}

// Of a task that was never frozen, nothing.
void ProcessRunner::ReportFrozen(const TaskId& id, const SupervisorStatus& status, Live& live) {
  if (live.frozen == status.frozen || (status.frozen == 0 && status.thawed_ns == 0)) return;
  live.frozen = status.frozen;
  TaskEvent event;
  event.id = id;
  event.kind = status.frozen != 0 ? TaskEvent::Kind::kPaused : TaskEvent::Kind::kResumed;
  event.freeze_request = status.frozen;
  event.devices_released = status.devices_saved;
  event.message = status.kept_devices;
  if (status.frozen == 0) event.began = absl::Nanoseconds(status.thawed_ns);
  events_.push_back(std::move(event));
}

void ProcessRunner::ReportRunning(const TaskId& id, const SupervisorStatus& status, Live& live) {
  live.running = live.begun = true;
  TaskEvent event;
  event.id = id;
  event.kind = TaskEvent::Kind::kRunning;
  event.mute = status.started_ns == 0;
  if (!event.mute) event.began = absl::Nanoseconds(status.started_ns);
  events_.push_back(std::move(event));
}

void ProcessRunner::OnSupervisorEnd(const TaskId& id) {
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  Live& live = found->second;
  if (live.child) {
    waitpid(live.supervisor, nullptr, WNOHANG);
    live.child = false;
  }
  const SupervisorStatus status = ReadStatus(Directory(id));
  if (status.pid > 0 && !live.running) ReportRunning(id, status, live);  // a short task
  if (status.phase == SupervisorStatus::kExited)
    return Finish(id, BlamedEvent(ExitedEvent(status), status, live.blame));
  if (status.phase == SupervisorStatus::kRefused) {
    TaskEvent event;
    event.kind = TaskEvent::Kind::kRefused;
    event.fault = status.own_fault ? v1::TaskReport::JOB : v1::TaskReport::NODE;
    event.message = status.message;
    event.has_output = status.has_output;
    event.node_problem = status.node_problem;
    return Finish(id, std::move(event));
  }
  if (live.supervisor == 0) live.supervisor = static_cast<pid_t>(status.supervisor_pid);
  OnSupervisorLost(id, live);
}

// The command never began: the agent ended before it spawned a supervisor, or the supervisor ended
// before it recorded the beginning. Supervisors of older agents did not record it.
bool ProcessRunner::NeverBegan(const TaskId& id, const Live& live) const {
  if (live.begun || ReadStatus(Directory(id)).phase != SupervisorStatus::kNone) return false;
  std::string text;
  SupervisorSpec spec;
  const bool spawned = ReadWholeFile(Directory(id) + "/spec", &text) == 0 &&
                       DecodeSpec(text, &spec) && !spec.argv.empty();  // otherwise it is incomplete
  return !spawned || spec.marks_beginning;
}

// Reports only when no process of the task remains.
void ProcessRunner::OnSupervisorLost(const TaskId& id, Live& live) {
  Unpin(live);
  recheck_.insert(id);
  const SupervisorSpec spec = ReadSpec(Directory(id));
  const ControlGroup group(spec.groups);
  group.Kill();
  if (KillLeftovers(TaskMarker(Directory(id)), live.supervisor) > 0 || !group.Empty()) return;
  group.Remove();
  if (!spec.shm.empty()) SharedMemory(spec.shm).Release();
  if (spec.sweep_uid > 0)
    SharedThingsRecord(spec.sweep_record, static_cast<uid_t>(spec.sweep_uid)).Release();
  for (const std::string& directory : spec.remove) RemoveTree(directory);
  TaskEvent event;
  const bool began = !NeverBegan(id, live);
  if (began) {
    event.kind = TaskEvent::Kind::kExited;
    event.cause = v1::TaskReport::SUPERVISOR_LOST;
    event.exit_code = 128 + SIGKILL;
    event.exit_signal = SIGKILL;
    event.message = "the task's supervisor was killed";
  } else {
    event.kind = TaskEvent::Kind::kRefused;
    event.message = "the agent or the task's supervisor was killed before the command began";
  }
  const bool hooks_ran = began || ReadStatus(Directory(id)).supervisor_pid > 0;
  if (hooks_ran && !spec.epilog.empty())
    event.node_problem = "epilog did not run: the supervisor was killed";
  Finish(id, std::move(event));
}

void ProcessRunner::Unpin(Live& live) {
  if (live.pid_fd < 0) return;
  by_pid_fd_.erase(live.pid_fd);
  close(live.pid_fd);
  live.pid_fd = -1;
}

void ProcessRunner::Finish(const TaskId& id, TaskEvent event) {
  if (const auto found = live_.find(id); found != live_.end()) {
    Live& live = found->second;
    Unpin(live);
    if (live.control_fd >= 0) close(live.control_fd);
    if (live.watch >= 0) {
      by_watch_.erase(live.watch);
      inotify_rm_watch(inotify_fd_, live.watch);
    }
    live_.erase(found);
  }
  if (options_.sockets != nullptr) options_.sockets->Close(id);
  disk_->Remove(id);
  recheck_.erase(id);
  ports_.Release(id);
  event.id = id;
  events_.push_back(std::move(event));
}

}  // namespace berth
