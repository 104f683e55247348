#include "clients/agent/image_unpacker.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/agent/disk.h"
#include "clients/agent/fault.h"

namespace berth {
namespace {

constexpr int kImagesFault = 3;  // exit codes of berth-image
constexpr int kNoRoom = 4;
constexpr size_t kMaxWordsBytes = 4096;
constexpr int kMaxUnpackEvents = 64;
constexpr size_t kMaxLineBytes = 96;

absl::Status SpawnProgram(const std::string& program, const std::string& argument, int output,
                          pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::string path = program;
  std::string request = argument;
  char* argv[] = {path.data(), request.data(), nullptr};
  const int error = posix_spawn(pid, path.c_str(), &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, absl::StrCat("spawn ", program));
}

absl::Status HowItEnded(int wait_status, const std::string& words) {
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) return absl::OkStatus();
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kImagesFault)
    return BlameJob(absl::FailedPreconditionError(words));
  if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == kNoRoom)
    return BlameNobody(absl::ResourceExhaustedError(words));
  if (!words.empty()) return absl::UnavailableError(words);
  return absl::UnavailableError(
      WIFSIGNALED(wait_status)
          ? absl::StrCat("berth-image was killed by signal ", WTERMSIG(wait_status))
          : absl::StrCat("berth-image exited with code ", WEXITSTATUS(wait_status)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageUnpacker>> ImageUnpacker::Create(std::string program) {
  std::unique_ptr<ImageUnpacker> unpacker(new ImageUnpacker(std::move(program)));
  unpacker->epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (unpacker->epoll_fd_ < 0) return ErrnoStatus(errno, "epoll");
  return unpacker;
}

ImageUnpacker::~ImageUnpacker() {
  for (const Work& work : works_) close(work.output);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

void ImageUnpacker::Begin(const TaskId& id, const std::string& name,
                          agent::v1::ImageRequest request) {
  const std::string image =
      request.has_pull() ? absl::StrCat("pull ", request.pull().key(), " ", request.pull().policy(),
                                        " ", request.pull().wanted_digest())
                         : absl::StrCat(request.layout(), ":", request.tag());
  const auto found = std::find_if(works_.begin(), works_.end(),
                                  [&](const Work& work) { return work.image == image; });
  Work& work = found != works_.end() ? *found : works_.emplace_back();
  work.image = image;
  work.wishes.push_back({id, name, std::move(request)});
  if (found == works_.end()) SpawnFirst(work);
  works_.remove_if([](const Work& each) { return each.pid < 0; });
}

void ImageUnpacker::CleanUp(agent::v1::ImageRequest request) {
  request.clear_layout();
  request.clear_pull();
  Work& work = works_.emplace_back();
  if (!Spawn(work, request).ok()) works_.pop_back();
}

// SIGTERM ends a process that waits for its turn, but not one that unpacks.
void ImageUnpacker::Forget(const TaskId& id) {
  for (Work& work : works_) {
    if (!work.wishes.empty() && work.wishes.front().id == id) {
      work.forgotten = true;
      kill(work.pid, SIGTERM);
      continue;
    }
    work.wishes.remove_if([&](const Wish& wish) { return wish.id == id; });
  }
  std::erase_if(results_, [&](const Result& result) { return result.id == id; });
}

absl::Status ImageUnpacker::Spawn(Work& work, const agent::v1::ImageRequest& request) {
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(request, &json).ok())
    return absl::InternalError("the name of the image is not valid UTF-8");
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  const absl::Status status = SpawnProgram(program_, json, pipe[1], &work.pid);
  close(pipe[1]);
  if (!status.ok()) {
    work.pid = -1;
    close(pipe[0]);
    return status;
  }
  work.output = pipe[0];
  work.words.clear();
  work.line.clear();
  work.digest.clear();
  work.forgotten = false;
  fcntl(work.output, F_SETFL, O_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = work.output;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, work.output, &event);
  return absl::OkStatus();
}

void ImageUnpacker::SpawnFirst(Work& work) {
  const absl::Status status = Spawn(work, work.wishes.front().request);
  if (!status.ok()) FailAll(work, status);
}

void ImageUnpacker::FailAll(Work& work, const absl::Status& status) {
  for (const Wish& wish : work.wishes) {
    absl::Status named(status.code(), absl::StrCat("image ", wish.name, ": ", status.message()));
    status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
      named.SetPayload(type, payload);
    });
    results_.push_back({wish.id, std::move(named), ""});
  }
  work.wishes.clear();
}

std::vector<ImageUnpacker::Result> ImageUnpacker::Poll() {
  epoll_event ready[kMaxUnpackEvents];
  const int count = epoll_wait(epoll_fd_, ready, kMaxUnpackEvents, 0);
  for (int i = 0; i < count; ++i) {
    for (Work& work : works_) {
      if (work.output == ready[i].data.fd) Read(work);
    }
  }
  works_.remove_if([](const Work& work) { return work.pid < 0; });
  return std::exchange(results_, {});
}

// Lines "@BYTES OF" tell the progress, "@sha256:HEX" the digest; all else is the reason of a
// failure.
void ImageUnpacker::TakeWords(Work& work, absl::string_view text) {
  for (const char c : text) {
    if (work.words.empty() && (!work.line.empty() || c == '@') &&
        work.line.size() < kMaxLineBytes) {
      work.line.push_back(c);
      if (c != '\n') continue;
      if (absl::StartsWith(work.line, "@sha256:"))
        work.digest = std::string(absl::StripSuffix(absl::StripPrefix(work.line, "@"), "\n"));
      Progress progress;
      const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(
          absl::StripSuffix(absl::StripPrefix(work.line, "@"), "\n"), absl::MaxSplits(' ', 1));
      if (absl::SimpleAtoi(numbers.first, &progress.bytes) &&
          absl::SimpleAtoi(numbers.second, &progress.of)) {
        for (const Wish& wish : work.wishes) {
          progress.id = wish.id;
          progress_.push_back(progress);
        }
      }
      work.line.clear();
    } else if (work.words.size() < kMaxWordsBytes) {
      work.words.push_back(c);
    }
  }
}

std::vector<ImageUnpacker::Progress> ImageUnpacker::TakeProgress() {
  return std::exchange(progress_, {});
}

// The output ends when the process does.
void ImageUnpacker::Read(Work& work) {
  char buffer[4096];
  ssize_t n;
  while ((n = read(work.output, buffer, sizeof buffer)) > 0) {
    TakeWords(work, absl::string_view(buffer, static_cast<size_t>(n)));
  }
  if (n == 0) OnEnd(work);
}

// An error for one task applies to all tasks that wait with it, unless that task was forgotten:
// that may have caused the error.
void ImageUnpacker::OnEnd(Work& work) {
  close(work.output);
  work.output = -1;
  int wait_status = 0;
  while (waitpid(work.pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  work.pid = -1;
  if (work.wishes.empty()) return;
  const absl::Status status = HowItEnded(wait_status, work.words);
  const bool forgotten = work.forgotten;
  if (!status.ok() && !forgotten) return FailAll(work, status);
  results_.push_back({work.wishes.front().id, status, work.digest});
  work.wishes.pop_front();
  if (!work.wishes.empty()) SpawnFirst(work);
}

}  // namespace berth
