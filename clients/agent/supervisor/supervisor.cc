#include "clients/agent/supervisor/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "clients/agent/supervisor/child.h"
#include "clients/agent/supervisor/hosts.h"
#include "clients/agent/supervisor/project_quota.h"

namespace berth {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kSweepIntervalNs = 50 * kNsPerMs;  // between attempts to kill remaining processes
constexpr int64_t kLeaseLookNs = 250 * kNsPerMs;     // less than half of the shortest lease
constexpr int64_t kResolveNs = 30'000 * kNsPerMs;    // for all host names of a job's tasks
constexpr int64_t kLeaseLapsed = 2;                  // berth.v1.TaskReport.LEASE_LAPSED
constexpr size_t kMaxControlLine = 1024;

int64_t UnixMs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / kNsPerMs;
}

// Field 4 of /proc/PID/stat; 0 if there is no such process.
pid_t ParentOf(const char* pid) {
  std::string text;
  if (ReadWholeFile(std::string("/proc/") + pid + "/stat", &text) != 0) return 0;
  const size_t name_end = text.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::atol(text.c_str() + name_end + 4));
}

std::string HowItEnded(int wait_status, bool timed_out) {
  if (timed_out) return "timed out and was killed";
  if (WIFSIGNALED(wait_status))
    return "was killed by signal " + std::to_string(WTERMSIG(wait_status));
  return "exited with " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

Supervisor::Supervisor(std::string directory)
    : directory_(std::move(directory)), notify_(directory_) {}

int Supervisor::Run() {
  std::string text;
  if (ReadWholeFile(directory_ + "/spec", &text) != 0 || !DecodeSpec(text, &spec_)) return 2;
  status_.supervisor_pid = getpid();
  status_.takes_reasons = status_.saves_devices = true;
  group_ = ControlGroup(spec_.groups);
  log_.emplace(directory_, spec_.log_file_bytes, spec_.log_files);
  if (!OpenFiles()) {
    status_.phase = SupervisorStatus::kRefused;
    status_.message = std::string("supervisor: ") + std::strerror(errno);
    group_.Remove();
    RemoveDirectories();
    WriteStatus();
    return 0;
  }
  MakeSpare(directory_, "status");  // without it, the end is written when there is space
  Begin();
  Loop();
  return 0;
}

bool Supervisor::OpenFiles() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (chdir("/") != 0) return false;
  for (const int ignored : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGTSTP, SIGXFSZ})
    signal(ignored, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  signal_fd_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  timer_fd_ = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  // Read and write, so that no end of file is read while no agent has it open.
  control_fd_ = open((directory_ + "/control").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (signal_fd_ < 0 || timer_fd_ < 0 || control_fd_ < 0) return false;
  errno = pipes_.Open();
  if (errno == 0) errno = containers_.Open(directory_, spec_);
  if (errno != 0) return false;
  if (spec_.lease_file.empty()) return true;
  lease_fd_ = open(spec_.lease_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (lease_fd_ < 0) return false;
  // Missing if the agent does not support longer leases.
  longer_fd_ = open((spec_.lease_file + kLongerLeaseSuffix).c_str(), O_RDONLY | O_CLOEXEC);
  ReadLease();
  return true;
}

void Supervisor::Begin() {
  if (spec_.prolog.empty()) return StartTask();
  ReplaceFile(directory_, "status", EncodeStatus(status_));  // from now on an epilog must run
  if (StartHook(spec_.prolog, spec_.prolog_ms, Phase::kProlog)) return;
  end_phase_ = SupervisorStatus::kRefused;
  Clean(Phase::kCleaning);
}

bool Supervisor::StartHook(const std::vector<std::string>& argv, int64_t timeout_ms, Phase phase) {
  const ChildResult child = berth::StartHook(spec_, argv, pipes_.err_end());
  if (child.pid <= 0) {
    Note((phase == Phase::kProlog ? "prolog: " : "epilog: ") + child.message);
    return false;
  }
  phase_ = phase;
  main_pid_ = child.pid;
  hook_timed_out_ = false;
  hook_end_ns_ = BoottimeNs() + timeout_ms * kNsPerMs;
  return true;
}

// From now on the command may have run: whoever finds this supervisor dead must know that. If it
// cannot be recorded, the command is not started.
bool Supervisor::MarkBeginning() {
  status_.phase = SupervisorStatus::kBeginning;
  const int error = ReplaceFile(directory_, "status", EncodeStatus(status_));
  if (error == 0) return true;
  Note(std::string("cannot write the task's status: ") + std::strerror(error));
  end_phase_ = SupervisorStatus::kRefused;
  Clean(Phase::kCleaning);
  return false;
}

// Without a record, nothing is removed.
bool Supervisor::HoldSharedMemory() {
  if (spec_.sweep_uid > 0 && !spec_.sweep_record.empty()) {
    shared_things_.emplace(spec_.sweep_record, static_cast<uid_t>(spec_.sweep_uid));
    if (shared_things_->Hold() != 0) shared_things_.reset();
  }
  if (spec_.shm.empty()) return true;
  shared_memory_.emplace(spec_.shm);
  const int error = shared_memory_->Hold(spec_.shm_bytes, spec_.shm_most_bytes);
  if (error != 0)
    Note(std::string("cannot set up the task's shared memory: ") + std::strerror(error));
  return error == 0;
}

void Supervisor::ReleaseSharedMemory() {
  if (shared_memory_) shared_memory_->Release();
  if (shared_things_) shared_things_->Release();
}

// May take long, so the lease is looked at again.
bool Supervisor::MakeHosts() {
  if (spec_.hosts.empty()) return true;
  const int error = CompleteHosts(spec_.hosts, BoottimeNs() + kResolveNs);
  if (error != 0) Note(std::string("cannot make the task's /etc/hosts: ") + std::strerror(error));
  if (lease_end_ns_ == 0) return error == 0;
  ReadLease();
  const bool lapsed = BoottimeNs() >= lease_end_ns_;
  if (lapsed) Note("the node's lease lapsed before the command began");
  return error == 0 && !lapsed;
}

bool Supervisor::OpenNotify() {
  if (spec_.notify.empty()) return true;
  const int error = notify_.Open(spec_.notify, spec_.notify_uid, spec_.notify_at);
  if (error != 0)
    Note(std::string("cannot create the task's NOTIFY_SOCKET: ") + std::strerror(error));
  return error == 0;
}

bool Supervisor::OpenTerminal() {
  if (!spec_.terminal) return true;
  const int error = terminal_.Open(directory_);
  if (error != 0) Note(std::string("cannot create the task's terminal: ") + std::strerror(error));
  return error == 0;
}

void Supervisor::StartTask() {
  if (!MakeHosts() || !HoldSharedMemory() || !OpenNotify() || !OpenTerminal()) {
    end_phase_ = SupervisorStatus::kRefused;
    return Clean(Phase::kCleaning);
  }
  if (!MarkBeginning()) return;
  if (!containers_.Exist()) return StartCommand();
  phase_ = Phase::kStarting;
  AdvanceContainers();
}

void Supervisor::StartCommand() {
  const ChildResult child = terminal_.is_open()
                                ? StartOnTerminal(spec_, terminal_.task_end())
                                : StartChild(spec_, pipes_.out_end(), pipes_.err_end());
  if (!child.message.empty()) Note(child.message);
  if (child.pid <= 0) {
    status_.exit_code = child.exit_code;
    status_.own_fault = child.own_fault;
    end_phase_ = child.refused ? SupervisorStatus::kRefused : SupervisorStatus::kExited;
    return Clean(Phase::kCleaning);
  }
  phase_ = Phase::kRunning;
  main_pid_ = child.pid;
  status_.pid = child.pid;
  if (spec_.container) terminal_.SetRuntime(child.pid);
  status_.started_ns = BoottimeNs();
  status_.phase = SupervisorStatus::kRunning;
  WriteStatus();
}

void Supervisor::Loop() {
  while (phase_ != Phase::kDone) {
    bool notified = false;
    Wait(&notified);
    ReadOutput();
    terminal_.Work(BoottimeNs(), [this](std::string_view data) { PrintTerminal(data); });
    notify_.Work(BoottimeNs(), notified);
    ReadControl();
    CheckDeadlines();
    Reap();
  }
  Finish();
}

void Supervisor::Wait(bool* notified) {
  ArmTimer();
  std::vector<pollfd> fds = {{notify_.fd(), POLLIN, 0},
                             {signal_fd_, POLLIN, 0},
                             {timer_fd_, POLLIN, 0},
                             {control_fd_, POLLIN, 0}};
  pipes_.AddTo(&fds);
  containers_.AddTo(&fds);
  terminal_.AddTo(&fds);
  if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) std::abort();
  *notified = fds[0].revents != 0;
  uint64_t ignored[32];
  while (read(signal_fd_, ignored, 128) > 0) {
  }
  if (read(timer_fd_, ignored, 8) < 0) ignored[0] = 0;
}

void Supervisor::PrintTerminal(std::string_view data) {
  log_->Append(OutputStream::kStdout, data, UnixMs());
}

void Supervisor::Note(const std::string& text) {
  if (!status_.message.empty()) status_.message += "; ";
  status_.message += text;
}

void Supervisor::Finish() {
  terminal_.End(static_cast<int>(status_.exit_code));
  terminal_.Close();
  containers_.Close(UnixMs());
  const int64_t kills = group_.OomKills();
  if (kills > 0) Note(OutOfMemoryText(kills, spec_.memory_bytes));
  if (log_->dropped_bytes() > 0)
    Note(std::to_string(log_->dropped_bytes()) + " bytes of output lost: cannot write the log");
  group_.Remove();
  ReleaseSharedMemory();
  NoteDisk();
  if (!failure_.empty()) {  // it filled the disk
    spec_.remove.push_back(directory_ + "/work");
    for (const std::string& name : spec_.container_names)
      spec_.remove.push_back(directory_ + kContainers + name + "/work");
  }
  RemoveDirectories();
  status_.phase = end_phase_;
  status_.has_output = log_->written();
  WriteStatus();
}

// libstdc++ walks with openat and O_NOFOLLOW: a task's user cannot redirect it.
void Supervisor::RemoveDirectories() {
  for (const std::string& directory : spec_.remove) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }
}

int64_t Supervisor::NextDeadlineNs() const {
  int64_t next = INT64_MAX;
  const int64_t look_ns = lease_end_ns_ != 0 ? lease_look_ns_ : 0;
  const int64_t notify_ns = notify_.NextNs();
  for (const int64_t at :
       {kill_at_ns_, look_ns, next_sweep_ns_, hook_end_ns_, notify_ns, terminal_.NextNs(),
        containers_.NextNs(), freeze_look_ns_, saver_.deadline_ns()}) {
    if (at != 0) next = std::min(next, at);
  }
  return next;
}

void Supervisor::ArmTimer() {
  const int64_t at = NextDeadlineNs();
  itimerspec spec{};
  if (at != INT64_MAX) {
    const int64_t ns = std::max<int64_t>(at, 1);
    spec.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  }
  timerfd_settime(timer_fd_, TFD_TIMER_ABSTIME, &spec, nullptr);
}

void Supervisor::ReadOutput() {
  pipes_.Read(*log_, UnixMs());
  containers_.ReadOutput(UnixMs());
}

void Supervisor::ReadControl() {
  char buffer[4096];
  ssize_t n;
  while ((n = read(control_fd_, buffer, sizeof buffer)) > 0) {
    control_buffer_.append(buffer, static_cast<size_t>(n));
    size_t end;
    while ((end = control_buffer_.find('\n')) != std::string::npos) {
      Command(control_buffer_.substr(0, end));
      control_buffer_.erase(0, end + 1);
    }
    if (control_buffer_.size() > kMaxControlLine) control_buffer_.clear();
  }
}

void Supervisor::Command(const std::string& line) {
  int signal = 0;
  long long grace_ms = 0;
  long long cause = 0;
  int used = 0;
  if (std::sscanf(line.c_str(), "%d %lld %lld %n", &signal, &grace_ms, &cause, &used) != 3) return;
  if (signal <= 0 || signal >= NSIG) return;
  if (grace_ms == kSignalOnly && kill_at_ns_ == 0 && phase_ == Phase::kRunning) SendSignal(signal);
  if (grace_ms == kFreezeOnly) Freeze(std::max<int64_t>(cause, 0), false);
  if (grace_ms == kSaveAndFreeze) Freeze(std::max<int64_t>(cause, 0), true);
  if (grace_ms < 0) return;
  const std::string reason = line.substr(std::min(static_cast<size_t>(used), line.size()));
  if (!reason.empty()) {
    if (!IsUnderWay() || stop_cause_ != 0 || MainEnded()) return;
    failure_ = reason;
  }
  Stop(signal, grace_ms, cause);
}

bool Supervisor::MainEnded() const {
  if (main_pid_ == 0) return !containers_.AnyRuns();
  siginfo_t info{};
  const int options = WEXITED | WNOHANG | WNOWAIT;
  return waitid(P_PID, static_cast<id_t>(main_pid_), &info, options) != 0 || info.si_pid != 0;
}

// To the command. Processes that left the process group also get it, but none of the containers';
// in an image, its first process passes it on. A shell gives each of its commands a group of its
// own.
void Supervisor::SendSignal(int signal) {
  if (main_pid_ == 0) return;
  kill(-main_pid_, signal);
  const pid_t foreground = terminal_.Foreground();
  if (!group_.exists() && foreground > 0 && foreground != main_pid_) kill(-foreground, signal);
  if (phase_ != Phase::kRunning || spec_.container) return;
  const bool apart = containers_.Exist();
  if (apart && !spec_.own_pids) return;
  group_.Signal(signal, main_pid_, apart ? PidNamespaceOf(main_pid_) : "", freeze_request_ != 0);
}

// The first cause counts; a later call can only bring the end forward. An epilog is not stopped: it
// has a separate time limit.
void Supervisor::Stop(int signal, int64_t grace_ms, int64_t cause) {
  if (!IsUnderWay() && phase_ != Phase::kProlog && phase_ != Phase::kEnding) return;
  const bool first = stop_cause_ == 0 && failure_.empty();
  if (first && phase_ != Phase::kEnding) stop_cause_ = cause;
  Thaw();  // it shall end by itself
  if (grace_ms > 0) SendSignal(signal);
  if (grace_ms > 0 && phase_ == Phase::kStarting) containers_.Signal(SIGTERM);
  if (grace_ms > 0 && phase_ == Phase::kRunning) containers_.SignalPeers(SIGTERM);
  // A command that was stopped at its terminal takes the signal only if it goes on.
  if (grace_ms > 0 && terminal_.is_open()) SendSignal(SIGCONT);
  const int64_t at = BoottimeNs() + std::min<int64_t>(grace_ms, int64_t{1} << 40) * kNsPerMs;
  kill_at_ns_ = kill_at_ns_ == 0 ? at : std::min(kill_at_ns_, at);
}

// Reads the longer lease first: the agent writes it last, so that one of the two is valid during a
// write. A longer lease may end early, so it is read repeatedly.
void Supervisor::ReadLease() {
  int64_t longer = 0;
  int64_t end = 0;
  if (longer_fd_ >= 0 && pread(longer_fd_, &longer, sizeof longer, 0) != sizeof longer) longer = 0;
  if (pread(lease_fd_, &end, sizeof end, 0) != sizeof end) end = 0;
  lease_end_ns_ = std::max<int64_t>({end, longer, 1});
  lease_look_ns_ = longer > end ? std::min(longer, BoottimeNs() + kLeaseLookNs) : lease_end_ns_;
}

void Supervisor::CheckDeadlines() {
  const int64_t now = BoottimeNs();
  if (lease_end_ns_ != 0 && now >= lease_look_ns_) {
    ReadLease();  // the agent may have extended it, or a longer one has ended
    if (now >= lease_end_ns_) {
      // The server also counts the grace from the lease's end: after a suspend it is used up.
      const int64_t late_ms = (now - lease_end_ns_) / kNsPerMs;
      lease_end_ns_ = 0;
      Stop(static_cast<int>(spec_.lapse_signal),
           std::max<int64_t>(spec_.lapse_grace_ms - late_ms, 0), kLeaseLapsed);
    }
  }
  if (kill_at_ns_ != 0 && now >= kill_at_ns_) {
    KillNow();
    kill_at_ns_ = now + kSweepIntervalNs;  // until it is dead
  }
  if (containers_.Exist() && phase_ != Phase::kDone) {
    if (const auto failure = containers_.CheckTime(now, !IsUnderWay())) FailBy(*failure);
  }
  if (hook_end_ns_ != 0 && now >= hook_end_ns_) {
    hook_timed_out_ = true;
    kill(-main_pid_, SIGKILL);
    hook_end_ns_ = now + kSweepIntervalNs;
  }
  saver_.CheckTime(now);
  if (freeze_look_ns_ != 0 && now >= freeze_look_ns_) CheckFrozen(now);
  if (next_sweep_ns_ != 0 && now >= next_sweep_ns_) KillStragglers();
}

void Supervisor::KillNow() {
  if (main_pid_ > 0) kill(-main_pid_, SIGKILL);
  if (phase_ == Phase::kProlog) return;
  containers_.Signal(SIGKILL);
  group_.Kill();
}

// Children are examined before they are reaped: while the main process is a zombie, its process
// group id cannot be reused, and the rest of the group can be killed safely.
void Supervisor::Reap() {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
    if (info.si_pid == 0) return;  // there are children, but none has ended
    const bool main = info.si_pid == main_pid_;
    const bool container = containers_.Owns(info.si_pid);
    if (main || container) kill(-info.si_pid, SIGKILL);
    int wait_status = 0;
    waitpid(info.si_pid, &wait_status, 0);
    if (main) OnMainExit(wait_status);
    if (container) OnContainerExit(info.si_pid, wait_status);
    if (saver_.Owns(info.si_pid)) OnSaverExit(wait_status);
    containers_.Forget(info.si_pid);
  }
  if (phase_ != Phase::kDone && group_.Empty()) OnAllExited();
}

void Supervisor::OnMainExit(int wait_status) {
  main_pid_ = 0;
  hook_end_ns_ = 0;
  if (phase_ == Phase::kProlog) {
    kill_at_ns_ = 0;
    return OnPrologExit(wait_status);
  }
  if (phase_ == Phase::kRunning || phase_ == Phase::kEnding) return OnTaskExit(wait_status);
  OnEpilogExit(wait_status);
}

// No child remains, so nobody writes any more: the pipes contain the rest of the output.
void Supervisor::OnAllExited() {
  terminal_.Drain([this](std::string_view data) { PrintTerminal(data); });
  ReadOutput();
  notify_.Close(BoottimeNs());
  next_sweep_ns_ = 0;
  if (phase_ == Phase::kCleaning) return BeginEpilog();
  phase_ = Phase::kDone;
}

void Supervisor::OnPrologExit(int wait_status) {
  if (stop_cause_ != 0) {
    Note("stopped during the prolog");
    return OnTaskExit(wait_status);
  }
  if (!hook_timed_out_ && wait_status == 0) return StartTask();
  Note("prolog " + HowItEnded(wait_status, hook_timed_out_));
  end_phase_ = SupervisorStatus::kRefused;
  Clean(Phase::kCleaning);
}

// Until no process remains: OnAllExited.
void Supervisor::Clean(Phase phase) {
  phase_ = phase;
  lease_end_ns_ = 0;
  freeze_look_ns_ = 0;
  saver_.Abandon();
  freeze_request_ = status_.frozen = 0;  // KillStragglers thaws what remains
  next_sweep_ns_ = 1;                    // at once
}

void Supervisor::BeginEpilog() {
  if (!spec_.epilog.empty()) {
    if (StartHook(spec_.epilog, spec_.epilog_ms, Phase::kEpilog)) return;
    status_.node_problem = status_.message;
  }
  phase_ = Phase::kDone;
}

// Processes that the epilog left running are killed.
void Supervisor::OnEpilogExit(int wait_status) {
  if (hook_timed_out_ || wait_status != 0) {
    status_.node_problem = "epilog " + HowItEnded(wait_status, hook_timed_out_);
    Note(status_.node_problem);
  }
  Clean(Phase::kCleaningEpilog);
}

// The command has ended. A task with containers goes on while one of its peers runs, unless it has
// failed.
void Supervisor::OnTaskExit(int wait_status) {
  const bool known = phase_ == Phase::kEnding;  // a container has ended the task before
  const bool killed = WIFSIGNALED(wait_status);
  if (!known && killed) RecordEnd(128 + WTERMSIG(wait_status), WTERMSIG(wait_status));
  if (!known && !killed) RecordEnd(WEXITSTATUS(wait_status), 0);
  EndTerminal();
  if (!known && status_.exit_code == 0 && containers_.PeersRun()) return;
  EndContainers();
}

void Supervisor::RecordEnd(int exit_code, int exit_signal) {
  status_.cause = stop_cause_;
  status_.exit_code = exit_code;
  status_.exit_signal = exit_signal;
  if (!failure_.empty()) Note(failure_);
  if (!failure_.empty() && status_.exit_code == 0) {
    status_.exit_signal = SIGKILL;  // a clean exit after a stop for failure is still a failure
    status_.exit_code = 128 + SIGKILL;
  }
}

// Clients get the output that the command left, and how it ended.
void Supervisor::EndTerminal() {
  terminal_.Drain([this](std::string_view data) { PrintTerminal(data); });
  terminal_.End(static_cast<int>(status_.exit_code));
}

void Supervisor::NoteDisk() {
  if (status_.exit_code == 0 || !failure_.empty()) return;
  std::vector<std::string> places = spec_.remove;
  places.push_back(directory_);
  const std::string text = ReachedQuotaText(places);
  if (!text.empty()) Note(text);
}

// Kills descendants that left the process group: once orphaned, they (and later their children) are
// children of this process. Also kills everything else in the control group.
void Supervisor::KillStragglers() {
  next_sweep_ns_ = BoottimeNs() + kSweepIntervalNs;
  if (!group_.Empty()) group_.Kill();
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  const pid_t self = getpid();
  while (const dirent* entry = readdir(proc)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || ParentOf(entry->d_name) != self)
      continue;
    kill(static_cast<pid_t>(std::atol(entry->d_name)), SIGKILL);
  }
  closedir(proc);
}

// A full disk must not lose an exit status: it is retried until it is written. The end is written
// at once, into the spare space, as the disk may stay full for long.
void Supervisor::WriteStatus() {
  const std::string text = EncodeStatus(status_);
  const bool ended = status_.phase != SupervisorStatus::kRunning;
  while (WriteFileAtomically(directory_, "status", text) != 0) {
    if (ended && WriteIntoSpare(directory_, "status", text) == 0) break;
    struct stat unused;
    if (stat(directory_.c_str(), &unused) != 0) return;  // the task was removed
    sleep(1);
  }
  if (ended) RemoveSpare(directory_, "status");
}

}  // namespace berth
