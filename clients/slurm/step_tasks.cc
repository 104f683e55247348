// A node's part of a step: starts its processes, passes their output to srun and srun's signals and
// input to them.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/frames.h"
#include "clients/slurm/step_daemon.h"
#include "clients/slurm/variables.h"

namespace berth {
namespace {

constexpr size_t kReadBytes = size_t{32} << 10;
constexpr int kAllRanks = -1;

struct StepTask {
  int rank = 0;
  pid_t pid = 0;
  int in = -1, out = -1, err = -1;  // our ends of its pipes
  std::string input;                // that it has not read
  bool ended = false;
  int status = 0;
};

void CloseEnd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

class NodeStep {
 public:
  int Run() {
    signal(SIGPIPE, SIG_IGN);
    if (!AwaitBegin()) return 1;
    for (int local = 0; local < step_.count(); ++local) {
      absl::Status started = StartTask(local);
      if (started.ok()) continue;
      Send(FrameKind::kTrouble, started.message());
      for (StepTask& task : tasks_) kill(task.pid, SIGKILL);
      return 1;
    }
    HandleFrames();  // what came together with the first one
    while (!Done()) Turn();
    return 0;
  }

 private:
  void Send(FrameKind kind, absl::string_view data) {
    if (!WriteAll(STDOUT_FILENO, EncodeFrame(kind, data))) lost_ = true;
  }

  bool AwaitBegin() {
    for (;;) {
      while (std::optional<Frame> frame = frames_.Next()) {
        if (frame->kind != FrameKind::kBegin) continue;
        return step_.ParseFromString(frame->data) && step_.arguments_size() > 0;
      }
      char buffer[kReadBytes];
      const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
      if (n == 0 || frames_.broken() || (n < 0 && errno != EINTR)) return false;
      if (n > 0) frames_.Add({buffer, static_cast<size_t>(n)});
    }
  }

  Variables VariablesOf(int local) const {
    Variables exported;
    for (const std::string& entry : step_.environment()) {
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(entry, absl::MaxSplits('=', 1));
      exported.insert(parts);
    }
    Variables set = JobVariables(exported, own_);
    const int rank = step_.first_rank() + local;
    set["SLURM_PROCID"] = absl::StrCat(rank);
    set["SLURM_LOCALID"] = absl::StrCat(local);
    set["SLURM_NODEID"] = absl::StrCat(step_.node());
    set["SLURMD_NODENAME"] = own_.contains("BERTH_NODE") ? own_.at("BERTH_NODE") : "";
    std::vector<int> ranks;
    for (int i = 0; i < step_.count(); ++i) ranks.push_back(step_.first_rank() + i);
    set["SLURM_GTIDS"] = absl::StrJoin(ranks, ",");
    if (const auto directory = exported.find("BERTH_SLURM_DIRECTORY"); directory != exported.end())
      set[directory->first] = directory->second;
    GiveGpus(local, &set);
    return set;
  }

  // --gpus-per-task: each task sees its own part of the node's.
  void GiveGpus(int local, Variables* set) const {
    const auto all = set->find("CUDA_VISIBLE_DEVICES");
    const auto each = static_cast<size_t>(std::max(step_.gpus_per_task(), 0));
    if (each == 0 || all == set->end()) return;
    const std::vector<std::string> uuids = absl::StrSplit(all->second, ',', absl::SkipEmpty());
    const size_t first = static_cast<size_t>(local) * each;
    if (first + each > uuids.size()) return;
    all->second = absl::StrJoin(uuids.begin() + static_cast<long>(first),
                                uuids.begin() + static_cast<long>(first + each), ",");
  }

  absl::StatusOr<int> OpenFile(const std::string& pattern, int rank) const {
    PatternValues values{.node = step_.node(), .task = rank};
    values.host = own_.contains("BERTH_NODE") ? own_.at("BERTH_NODE") : "";
    const std::string path = ExpandPattern(pattern, values);
    const std::string place =
        path.empty() || path[0] == '/' ? path : absl::StrCat(step_.directory(), "/", path);
    const int fd =
        open(place.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (step_.append() ? O_APPEND : O_TRUNC),
             0666);
    if (fd >= 0) return fd;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", place, ": ", std::strerror(errno)));
  }

  // The descriptor for the child; `ours` gets the other end of a pipe, or -1.
  absl::StatusOr<int> OutputEnd(const std::string& pattern, int rank, int* ours) const {
    if (!pattern.empty()) return OpenFile(pattern, rank);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe");
    *ours = ends[0];
    return ends[1];
  }

  absl::Status StartTask(int local) {
    StepTask task{.rank = step_.first_rank() + local};
    const absl::StatusOr<int> out = OutputEnd(step_.stdout_path(), task.rank, &task.out);
    if (!out.ok()) return out.status();
    const bool shared = !step_.stdout_path().empty() && step_.stderr_path().empty();
    const absl::StatusOr<int> err = shared ? absl::StatusOr<int>(fcntl(*out, F_DUPFD_CLOEXEC, 3))
                                           : OutputEnd(step_.stderr_path(), task.rank, &task.err);
    if (!err.ok()) return err.status();
    const bool reads = step_.input_rank() == kAllRanks || step_.input_rank() == task.rank;
    int in[2] = {-1, -1};
    if (reads && pipe2(in, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("pipe");
    task.in = in[1];
    if (task.in >= 0) fcntl(task.in, F_SETFL, O_NONBLOCK);
    ChildProcess child{.environment = EnvironmentOf(VariablesOf(local)),
                       .directory = step_.directory(),
                       .in = in[0],
                       .out = *out,
                       .err = *err};
    for (const std::string& word : step_.arguments()) child.arguments.push_back(word);
    const absl::StatusOr<pid_t> pid = StartChild(child);
    for (int fd : {*out, *err, in[0]}) CloseEnd(&fd);
    if (!pid.ok()) return pid.status();
    task.pid = *pid;
    tasks_.push_back(std::move(task));
    return absl::OkStatus();
  }

  bool Done() const {
    return std::all_of(tasks_.begin(), tasks_.end(), [](const StepTask& task) {
      return task.ended && task.out < 0 && task.err < 0;
    });
  }

  void Turn() {
    std::vector<pollfd> fds = {{events_.fd(), POLLIN, 0}, {open_ ? STDIN_FILENO : -1, POLLIN, 0}};
    for (const StepTask& task : tasks_) {
      fds.push_back({task.out, POLLIN, 0});
      fds.push_back({task.err, POLLIN, 0});
      fds.push_back({task.input.empty() ? -1 : task.in, POLLOUT, 0});
    }
    // The output of processes that a task left behind is not waited for.
    const bool ended =
        std::all_of(tasks_.begin(), tasks_.end(), [](const StepTask& task) { return task.ended; });
    const int ready = poll(fds.data(), fds.size(), ended ? kLastOutputMs : -1);
    if (fds[1].revents != 0) ReadFrames();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      StepTask& task = tasks_[i];
      if (fds[2 + 3 * i].revents != 0) Pass(task, &task.out, FrameKind::kOutput);
      if (fds[3 + 3 * i].revents != 0) Pass(task, &task.err, FrameKind::kError);
      Feed(task);
      if (ended && ready == 0) {
        CloseEnd(&task.out);
        CloseEnd(&task.err);
      }
    }
    while (events_.Take() != 0) {  // the node's signals reach the tasks by themselves
    }
    Reap();
    TellTaken();
    if (lost_) KillAll(SIGKILL);
  }

  void Pass(const StepTask& task, int* fd, FrameKind kind) {
    char buffer[kReadBytes];
    const ssize_t n = read(*fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) return CloseEnd(fd);
    Send(kind,
         absl::StrCat(EncodeNumber(task.rank), absl::string_view(buffer, static_cast<size_t>(n))));
  }

  void ReadFrames() {
    char buffer[kReadBytes];
    const ssize_t n = read(STDIN_FILENO, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {  // srun has gone
      open_ = false;
      lost_ = true;
      return;
    }
    frames_.Add({buffer, static_cast<size_t>(n)});
    HandleFrames();
  }

  void HandleFrames() {
    while (std::optional<Frame> frame = frames_.Next()) Handle(std::move(*frame));
    lost_ = lost_ || frames_.broken();
    for (StepTask& task : tasks_) Feed(task);
  }

  void Handle(Frame frame) {
    if (frame.kind == FrameKind::kSignal) return KillAll(TakeNumber(&frame.data));
    input_ended_ = input_ended_ || frame.kind == FrameKind::kEnd;
    if (frame.kind != FrameKind::kInput) return;
    not_taken_ += frame.data.size();
    for (StepTask& task : tasks_) {
      if (task.in >= 0) task.input += frame.data;
    }
  }

  // srun sends more once all tasks have read what came before (kInputWindow).
  void TellTaken() {
    const bool taken = std::all_of(tasks_.begin(), tasks_.end(),
                                   [](const StepTask& task) { return task.input.empty(); });
    if (not_taken_ == 0 || !taken) return;
    Send(FrameKind::kTaken, EncodeNumber(static_cast<int32_t>(not_taken_)));
    not_taken_ = 0;
  }

  void Feed(StepTask& task) {
    while (task.in >= 0 && !task.input.empty()) {
      const ssize_t n = write(task.in, task.input.data(), task.input.size());
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0 && errno != EINTR) {
        task.input.clear();  // nobody reads it
        return CloseEnd(&task.in);
      }
      if (n > 0) task.input.erase(0, static_cast<size_t>(n));
    }
    if (input_ended_) CloseEnd(&task.in);
  }

  void Reap() {
    for (StepTask& task : tasks_) {
      int status = 0;
      if (task.ended || waitpid(task.pid, &status, WNOHANG) != task.pid) continue;
      task.ended = true;
      task.status = status;
      task.input.clear();
      CloseEnd(&task.in);
      Send(FrameKind::kExit, absl::StrCat(EncodeNumber(task.rank), EncodeNumber(status)));
    }
  }

  void KillAll(int signal) {
    for (const StepTask& task : tasks_) {
      if (!task.ended) kill(task.pid, signal);
    }
  }

  static constexpr int kLastOutputMs = 200;

  const Variables own_ = OwnVariables();
  SignalEvents events_;
  FrameReader frames_;
  cli::v1::SlurmStep step_;
  std::deque<StepTask> tasks_;
  size_t not_taken_ = 0;  // bytes of input
  bool open_ = true;
  bool input_ended_ = false;
  bool lost_ = false;
};

}  // namespace

int RunNodeStep() { return NodeStep().Run(); }

}  // namespace berth
