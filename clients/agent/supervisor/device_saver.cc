#include "clients/agent/supervisor/device_saver.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "clients/agent/supervisor/child.h"

namespace berth {
namespace {

constexpr int64_t kNsOfMs = 1'000'000;
constexpr int kMostTurns = 6;  // to bring a process back: ask, restore, ask, unlock, ask
constexpr size_t kMaxAnswer = 200;

std::string MibOf(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// True if a file is mapped whose name begins with one of these: it may have been closed.
bool HasMapped(pid_t pid, const std::vector<std::string>& prefixes) {
  std::string maps;
  if (ReadWholeFile("/proc/" + std::to_string(pid) + "/maps", &maps) != 0) return false;
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
    return maps.find(" " + prefix) != std::string::npos;
  });
}

// True if the process has a file open, or mapped, whose name begins with one of these; also if that
// cannot be seen.
bool HasOpen(pid_t pid, const std::vector<std::string>& prefixes) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return errno != ENOENT && errno != ESRCH;
  bool found = false;
  while (const dirent* entry = readdir(listing)) {
    char name[4096];
    const ssize_t n = readlink((directory + "/" + entry->d_name).c_str(), name, sizeof name);
    if (n <= 0) continue;
    const std::string_view file(name, static_cast<size_t>(n));
    found = found || std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
              return file.starts_with(prefix);
            });
  }
  closedir(listing);
  return found || HasMapped(pid, prefixes);
}

// The first line of what the program wrote, without characters that a terminal would act on.
std::string FirstLineOf(int fd) {
  char buffer[kMaxAnswer];
  const ssize_t n = pread(fd, buffer, sizeof buffer, 0);
  std::string line(buffer, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  line.resize(std::min(line.size(), line.find('\n')));
  std::replace_if(
      line.begin(), line.end(),
      [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return line;
}

std::vector<std::string> ArgumentsOf(const std::string& program, const char* action, pid_t pid) {
  const std::string id = std::to_string(pid);
  if (action == nullptr) return {program, "--get-state", "--pid", id};
  std::vector<std::string> arguments = {program, "--action", action, "--pid", id};
  if (std::strcmp(action, "lock") == 0) {
    arguments.insert(arguments.end(), {"--timeout", std::to_string(kGpuLockMs - kGpuLockMs / 3)});
  }
  return arguments;
}

}  // namespace

std::vector<pid_t> DeviceSaver::Users() const {
  std::vector<pid_t> users;
  for (const pid_t pid : group_.Processes()) {
    if (HasOpen(pid, spec_.gpu_files)) users.push_back(pid);
  }
  return users;
}

pid_t DeviceSaver::OtherUser() const {
  for (const pid_t pid : Users()) {
    if (pid != user_) return pid;
  }
  return 0;
}

// The driver copies into memory of the process, which counts for the task: without room for it, the
// kernel would kill it.
bool DeviceSaver::HasMemory() {
  const int64_t room = group_.MemoryRoom();
  if (room < 0 || spec_.gpu_bytes <= room) return true;
  why_ = "the memory that it requests has " + MibOf(room) + " left, and its GPUs have " +
         MibOf(spec_.gpu_bytes);
  return false;
}

void DeviceSaver::Save() {
  why_.clear();
  if (state_ == State::kUnknown) why_ = "an earlier attempt could not be undone";
  if (state_ != State::kLive) return;
  saving_ = true;
  user_ = 0;
  if (spec_.cuda_checkpoint.empty()) {
    why_ = "the node had no cuda-checkpoint when the task started";
    return;
  }
  const std::vector<pid_t> users = Users();
  if (users.empty()) {
    state_ = State::kSaved;
    return;
  }
  if (users.size() > 1) {
    why_ = std::to_string(users.size()) + " of its processes have GPUs open, such as " +
           std::to_string(users[0]) + " and " + std::to_string(users[1]) +
           "; cuda-checkpoint is used for one";
    return;
  }
  if (!HasMemory()) return;
  user_ = users.front();
  Begin(Step::kLock);
}

void DeviceSaver::Restore() {
  why_.clear();
  saving_ = false;
  if (user_ == 0) state_ = State::kLive;
  if (state_ == State::kLive) return;
  turns_ = 0;
  Begin(Step::kAsk);
}

void DeviceSaver::Begin(Step step) {
  static constexpr const char* kActions[] = {"lock",  "checkpoint", nullptr,
                                             nullptr, "restore",    "unlock"};
  step_ = step;
  const char* action = kActions[static_cast<size_t>(step)];
  const bool copies = step == Step::kCheckpoint || step == Step::kRestore;
  const int64_t limit_ms = copies ? kGpuCopyMs : step == Step::kLock ? kGpuLockMs : kGpuAskMs;
  if (output_ < 0) output_ = memfd_create("cuda-checkpoint", MFD_CLOEXEC);
  if (output_ < 0 || ftruncate(output_, 0) != 0 || lseek(output_, 0, SEEK_SET) != 0) {
    return Fail(std::string("memfd: ") + std::strerror(errno));
  }
  const ChildResult child =
      StartTool(spec_, ArgumentsOf(spec_.cuda_checkpoint, action, user_), output_);
  if (child.pid <= 0) return Fail(child.message);
  child_ = child.pid;
  expired_ = false;
  deadline_ns_ = BoottimeNs() + limit_ms * kNsOfMs;
}

void DeviceSaver::CheckTime(int64_t now_ns) {
  if (child_ <= 0 || now_ns < deadline_ns_) return;
  expired_ = true;
  kill(-child_, SIGKILL);
  deadline_ns_ = now_ns + kGpuAskMs * kNsOfMs;  // it dies, unless the driver holds it
}

void DeviceSaver::OnExit(int wait_status) {
  child_ = 0;
  const std::string answer = FirstLineOf(output_);
  if (expired_) return Fail("cuda-checkpoint did not end in time");
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return OnAnswer(answer);
  const std::string how = WIFSIGNALED(wait_status)
                              ? "was killed by signal " + std::to_string(WTERMSIG(wait_status))
                              : "exited with " + std::to_string(WEXITSTATUS(wait_status));
  Fail("cuda-checkpoint " + how + (answer.empty() ? "" : ": " + answer));
}

void DeviceSaver::OnAnswer(const std::string& answer) {
  switch (step_) {
    case Step::kLock:
      state_ = State::kUnknown;
      return Begin(Step::kCheckpoint);
    case Step::kCheckpoint:
      return Begin(Step::kConfirm);
    case Step::kConfirm:
      if (answer != "checkpointed") return Fail("cuda-checkpoint left it " + answer);
      state_ = State::kSaved;
      return;
    case Step::kRestore:
    case Step::kUnlock:
      return Begin(Step::kAsk);
    case Step::kAsk:
      break;
  }
  if (answer == "running") {
    state_ = State::kLive;
    return;
  }
  state_ = State::kUnknown;
  if (++turns_ > kMostTurns) return Fail("cuda-checkpoint leaves it " + answer);
  if (answer == "checkpointed") return Begin(Step::kRestore);
  if (answer == "locked") return Begin(Step::kUnlock);
  Fail("cuda-checkpoint says that it is " + answer);
}

// A Save that fails is undone once, from where the program says that it is. What cannot be undone
// either is tried again by Restore.
void DeviceSaver::Fail(const std::string& why) {
  if (why_.empty()) why_ = why;
  const bool undoes =
      saving_ && (step_ == Step::kLock || step_ == Step::kCheckpoint || step_ == Step::kConfirm);
  if (undoes) return Undo();
  // A process that the driver does not know of was never locked.
  if (saving_ && state_ == State::kLive) user_ = 0;
}

void DeviceSaver::Undo() {
  turns_ = 0;
  if (step_ == Step::kLock && expired_) state_ = State::kUnknown;
  Begin(Step::kAsk);
}

}  // namespace berth
