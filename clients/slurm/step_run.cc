#include "clients/slurm/step_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/slurm/child_process.h"
#include "clients/slurm/frames.h"
#include "clients/slurm/hosts.h"
#include "clients/slurm/step_link.h"

namespace berth {
namespace {

constexpr absl::Duration kSecondInterrupt = absl::Seconds(1);
constexpr size_t kPieceBytes = size_t{32} << 10;
constexpr int kNobody = -2, kEveryone = -1;

struct Part {
  int node = 0;  // in the job
  int step_node = 0;
  int first_rank = 0;
  int count = 0;
  std::unique_ptr<StepLink> link;
  FrameReader frames;
  int running = 0;  // tasks
  size_t sent = 0;  // bytes of input that were not read
  bool open = true;
};

class Step {
 public:
  Step(SlurmContext& context, const StepJob& job, const StepPlan& plan, SignalEvents& events)
      : context_(context),
        job_(job),
        plan_(plan),
        values_(PatternsOf(job.batch, job.allocation)),
        events_(events) {
    values_.step = plan.number;
  }
  ~Step() {
    for (const int fd : {out_, err_, in_}) {
      if (fd > STDERR_FILENO) close(fd);
    }
  }

  int Run() {
    absl::Status status = OpenFiles();
    if (status.ok()) status = Begin();
    if (!status.ok()) {
      parts_.clear();
      return context_.Fail(status);
    }
    while (AnyOpen()) Turn();
    FlushLabels();
    return exit_code_;
  }

 private:
  absl::Status OpenOutput(const std::string& pattern, int usual, int* fd) {
    *fd = usual;
    if (pattern.empty() || IsPerTask(pattern)) return absl::OkStatus();
    const std::string path = ExpandPattern(pattern, values_);
    *fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (plan_.append ? O_APPEND : O_TRUNC),
               0666);
    if (*fd >= 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
  }

  absl::Status OpenFiles() {
    if (absl::Status status = OpenOutput(plan_.stdout_pattern, STDOUT_FILENO, &out_); !status.ok())
      return status;
    const int usual = plan_.stdout_pattern.empty() ? STDERR_FILENO : out_;
    if (absl::Status status = OpenOutput(plan_.stderr_pattern, usual, &err_); !status.ok())
      return status;
    int rank = 0;
    reader_ = kEveryone;
    in_ = STDIN_FILENO;
    if (plan_.input == "none") {
      reader_ = kNobody;
      in_ = -1;
    } else if (absl::SimpleAtoi(plan_.input, &rank)) {
      reader_ = rank;
    } else if (!plan_.input.empty() && plan_.input != "all") {
      const std::string path = ExpandPattern(plan_.input, values_);
      in_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (in_ < 0)
        return absl::FailedPreconditionError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
    return absl::OkStatus();
  }

  Variables StepVariables() const {
    Variables set = plan_.variables;
    std::vector<std::string> nodes;
    std::vector<int> counts;
    for (size_t node = 0; node < plan_.counts.size(); ++node) {
      if (plan_.counts[node] == 0) continue;
      nodes.push_back(job_.allocation.nodes[node]);
      counts.push_back(plan_.counts[node]);
    }
    set["SLURM_STEP_ID"] = set["SLURM_STEPID"] = plan_.number;
    set["SLURM_STEP_NODELIST"] = CompressHosts(nodes);
    set["SLURM_STEP_NUM_NODES"] = set["SLURM_NNODES"] = absl::StrCat(nodes.size());
    set["SLURM_STEP_NUM_TASKS"] = set["SLURM_NTASKS"] = set["SLURM_NPROCS"] =
        absl::StrCat(plan_.tasks);
    set["SLURM_STEP_TASKS_PER_NODE"] = set["SLURM_TASKS_PER_NODE"] = CompressCounts(counts);
    return set;
  }

  absl::Status Begin() {
    cli::v1::SlurmStep step;
    for (const std::string& word : plan_.command) step.add_arguments(word);
    for (const std::string& entry : EnvironmentOf(StepVariables())) step.add_environment(entry);
    step.set_directory(plan_.directory);
    step.set_append(plan_.append);
    step.set_input_rank(reader_);
    step.set_gpus_per_task(job_.batch.gpus_per_task());
    if (IsPerTask(plan_.stdout_pattern))
      step.set_stdout_path(ExpandForNodes(plan_.stdout_pattern, values_));
    if (IsPerTask(plan_.stderr_pattern))
      step.set_stderr_path(ExpandForNodes(plan_.stderr_pattern, values_));
    if (absl::Status status = Connect(); !status.ok()) return status;
    for (Part& part : parts_) {
      step.set_first_rank(part.first_rank);
      step.set_count(part.count);
      step.set_node(part.step_node);
      if (!part.link->Send(EncodeFrame(FrameKind::kBegin, step.SerializeAsString())))
        return absl::UnavailableError("the step could not be started: " + part.link->Trouble());
    }
    return absl::OkStatus();
  }

  absl::Status Connect() {
    std::vector<std::string> names;
    int rank = 0;
    for (size_t node = 0; node < plan_.counts.size(); ++node) {
      if (plan_.counts[node] == 0) continue;
      Part part{.node = static_cast<int>(node),
                .step_node = static_cast<int>(parts_.size()),
                .first_rank = rank,
                .count = plan_.counts[node]};
      part.running = part.count;
      rank += part.count;
      const bool here = job_.inside && part.node == job_.allocation.node;
      if (!here && names.empty()) {
        const absl::StatusOr<Client*> client = context_.client();
        if (!client.ok()) return client.status();
        auto found = TaskNames(**client, job_.name, static_cast<int>(plan_.counts.size()));
        if (!found.ok()) return found.status();
        names = *std::move(found);
      }
      auto link = here ? LinkHere(SlurmProgram({})) : LinkThere(context_, job_.name, names[node]);
      if (!link.ok()) return link.status();
      part.link = *std::move(link);
      parts_.push_back(std::move(part));
    }
    return absl::OkStatus();
  }

  bool AnyOpen() const {
    return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.open; });
  }

  bool TakesInput() const {
    return in_ >= 0 && std::all_of(parts_.begin(), parts_.end(), [](const Part& part) {
             return part.sent < kInputWindow || !part.open;
           });
  }

  void Turn() {
    std::vector<pollfd> fds = {{events_.fd(), POLLIN, 0}, {TakesInput() ? in_ : -1, POLLIN, 0}};
    for (const Part& part : parts_) fds.push_back({part.open ? part.link->fd() : -1, POLLIN, 0});
    poll(fds.data(), fds.size(), WaitMs());
    if (fds[1].revents != 0) ReadInput();
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (fds[i + 2].revents != 0) ReadPart(parts_[i]);
    }
    for (int signal = events_.Take(); signal != 0; signal = events_.Take()) OnSignal(signal);
    if (first_end_.has_value() && absl::Now() - *first_end_ >= plan_.wait) KillRest();
  }

  int WaitMs() const {
    if (!first_end_.has_value() || plan_.wait == absl::InfiniteDuration()) return -1;
    const absl::Duration left = plan_.wait - (absl::Now() - *first_end_);
    return static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 10, 60'000));
  }

  void SendAll(const std::string& frame) {
    for (Part& part : parts_) {
      if (part.open) part.link->Send(frame);
    }
  }

  void Signal(int signal) { SendAll(EncodeFrame(FrameKind::kSignal, EncodeNumber(signal))); }

  void KillRest() {
    if (std::exchange(killed_, true)) return;
    Say("Terminating the other tasks of the step");
    Signal(SIGKILL);
  }

  void Say(const std::string& text) { context_.err() << "srun: " << text << std::endl; }

  // The first Ctrl-C tells how the step stands, a second one soon after ends it.
  void OnSignal(int signal) {
    if (signal == SIGCHLD) return;
    if (signal != SIGINT || !isatty(STDIN_FILENO)) return Signal(signal);
    const absl::Time now = absl::Now();
    if (now - last_interrupt_ > kSecondInterrupt) {
      int running = 0;
      for (const Part& part : parts_) running += part.running;
      Say(absl::StrCat("interrupt (one more within 1 sec to abort): ", running, " tasks running"));
    } else {
      Signal(SIGINT);
    }
    last_interrupt_ = now;
  }

  void ReadInput() {
    std::string buffer(kPieceBytes, '\0');
    const ssize_t n = read(in_, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
      in_ = in_ > STDERR_FILENO ? (close(in_), -1) : -1;
      return SendAll(EncodeFrame(FrameKind::kEnd, ""));
    }
    buffer.resize(static_cast<size_t>(n));
    for (Part& part : parts_) {
      if (!part.open || !Reads(part)) continue;
      part.sent += buffer.size();
      part.link->Send(EncodeFrame(FrameKind::kInput, buffer));
    }
  }

  bool Reads(const Part& part) const {
    return reader_ == kEveryone ||
           (reader_ >= part.first_rank && reader_ < part.first_rank + part.count);
  }

  void ReadPart(Part& part) {
    char buffer[kPieceBytes];
    const ssize_t n = read(part.link->fd(), buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n > 0) {
      part.frames.Add({buffer, static_cast<size_t>(n)});
      while (std::optional<Frame> frame = part.frames.Next()) Handle(part, std::move(*frame));
      return;
    }
    part.open = false;
    if (part.running == 0) return;
    const std::string why = part.link->Trouble();
    Say(absl::StrCat("error: ", job_.allocation.nodes[static_cast<size_t>(part.node)], ": ",
                     part.running, " tasks were lost", why.empty() ? "" : ": ", why));
    exit_code_ = std::max(exit_code_, 1);
  }

  void Handle(Part& part, Frame frame) {
    if (frame.kind == FrameKind::kTrouble) {
      Say(absl::StrCat("error: ", job_.allocation.nodes[static_cast<size_t>(part.node)], ": ",
                       frame.data));
      part.running = 0;
      exit_code_ = std::max(exit_code_, 2);
      return;
    }
    const int number = TakeNumber(&frame.data);
    switch (frame.kind) {
      case FrameKind::kOutput:
        return Print(number, out_, frame.data);
      case FrameKind::kError:
        return Print(number, err_, frame.data);
      case FrameKind::kTaken:
        part.sent -= std::min(part.sent, static_cast<size_t>(number));
        return;
      case FrameKind::kExit:
        return OnExit(part, number, TakeNumber(&frame.data));
      default:
        return;
    }
  }

  void OnExit(Part& part, int rank, int status) {
    --part.running;
    if (!first_end_.has_value()) first_end_ = absl::Now();
    const int code = ExitCodeOfWait(status);
    exit_code_ = std::max(exit_code_, code);
    if (code == 0) return;
    const std::string node = job_.allocation.nodes[static_cast<size_t>(part.node)];
    Say(WIFEXITED(status)
            ? absl::StrCat("error: ", node, ": task ", rank, ": Exited with exit code ", code)
            : absl::StrCat("error: ", node, ": task ", rank, ": ", strsignal(WTERMSIG(status))));
    if (plan_.kill_on_bad_exit) KillRest();
  }

  // With labels, whole lines.
  void Print(int rank, int fd, const std::string& data) {
    if (!plan_.label) {
      WriteAll(fd, data);
      return;
    }
    std::string& begun = lines_[{rank, fd}];
    begun += data;
    size_t end = 0;
    for (size_t newline = begun.find('\n'); newline != std::string::npos;
         newline = begun.find('\n', end)) {
      WriteAll(fd, absl::StrCat(LabelOf(rank), begun.substr(end, newline + 1 - end)));
      end = newline + 1;
    }
    begun.erase(0, end);
  }

  std::string LabelOf(int rank) const {
    const std::string last = absl::StrCat(plan_.tasks - 1), own = absl::StrCat(rank);
    return absl::StrCat(std::string(last.size() - std::min(last.size(), own.size()), ' '), own,
                        ": ");
  }

  void FlushLabels() {
    for (const auto& [place, line] : lines_) {
      if (!line.empty()) WriteAll(place.second, absl::StrCat(LabelOf(place.first), line, "\n"));
    }
  }

  SlurmContext& context_;
  const StepJob& job_;
  const StepPlan& plan_;
  PatternValues values_;
  SignalEvents& events_;
  std::vector<Part> parts_;
  std::map<std::pair<int, int>, std::string> lines_;  // begun ones, by rank and descriptor
  int out_ = STDOUT_FILENO, err_ = STDERR_FILENO, in_ = STDIN_FILENO;
  int reader_ = kEveryone;
  int exit_code_ = 0;
  bool killed_ = false;
  std::optional<absl::Time> first_end_;
  absl::Time last_interrupt_ = absl::InfinitePast();
};

}  // namespace

int RunStep(SlurmContext& context, const StepJob& job, const StepPlan& plan, SignalEvents& events) {
  return Step(context, job, plan, events).Run();
}

}  // namespace berth
