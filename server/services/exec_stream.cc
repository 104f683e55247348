#include "server/services/exec_stream.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/services/cold_part.h"
#include "server/services/log_stream.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

using ExecReactor = grpc::ServerBidiReactor<v1::ExecRequest, v1::ExecResponse>;

constexpr size_t kMaxDataBytes = size_t{64} << 10;
constexpr size_t kMaxCommandBytes = size_t{64} << 10;
constexpr uint32_t kMaxTerminalSide = 10'000;
constexpr uint32_t kMaxExecPort = 65'535;

void CheckTerminal(const FieldPath& path, const v1::TerminalSize& size, Findings& findings) {
  CheckRange({path, "rows"}, size.rows(), 1, kMaxTerminalSide, findings);
  CheckRange({path, "columns"}, size.columns(), 1, kMaxTerminalSide, findings);
}

// An open without a command of its own.
void CheckConnection(const FieldPath& path, const v1::ExecRequest::Open& open, Findings& findings) {
  if (!open.command().empty())
    findings.Invalid({path, "command"}, "not together with attach or port");
  if (open.attach() && open.port() != 0)
    findings.Invalid({path, "port"}, "not together with attach");
  if (open.port() != 0) CheckRange({path, "port"}, open.port(), 1, kMaxExecPort, findings);
  if (open.port() != 0 && open.has_terminal())
    findings.Invalid({path, "terminal"}, "not together with port: a connection has no terminal");
  if (open.attach() && !open.has_terminal())
    findings.Invalid({path, "terminal"}, "required with attach: the size of the client's window");
}

absl::Status ValidateOpen(const v1::ExecRequest::Open& open) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "open");
  size_t bytes = 0;
  const bool other = open.attach() || open.port() != 0;
  if (!open.container().empty()) CheckDnsLabel({path, "container"}, open.container(), findings);
  if (other && !open.container().empty())
    findings.Invalid({path, "container"}, "not together with attach or port");
  if (!other && (open.command().empty() || open.command(0).empty()))
    findings.Invalid({path, "command"}, "required: the program and its arguments");
  if (other) CheckConnection(path, open, findings);
  for (int i = 0; i < open.command_size(); ++i) {
    CheckNoNul({path, "command", i}, open.command(i), findings);
    bytes += open.command(i).size() + 1;
  }
  if (bytes > kMaxCommandBytes) findings.Invalid({path, "command"}, "at most 64 KiB");
  if (open.has_terminal()) CheckTerminal({path, "terminal"}, open.terminal(), findings);
  return findings.ToStatus();
}

// Messages after `open`.
absl::Status ValidateInput(const v1::ExecRequest& request, bool terminal) {
  Findings findings;
  const FieldPath root;
  if (request.has_open()) findings.Invalid({root, "open"}, "must be the first message, sent once");
  if (request.input().size() > kMaxDataBytes) findings.Invalid({root, "input"}, "at most 64 KiB");
  if (request.has_resize() && !terminal) findings.Invalid({root, "resize"}, "there is no terminal");
  if (request.has_resize()) CheckTerminal({root, "resize"}, request.resize(), findings);
  if (request.message_case() == v1::ExecRequest::MESSAGE_NOT_SET)
    findings.Invalid(root, "is empty");
  return findings.ToStatus();
}

struct ExecTarget {
  NodeId node;
  std::string job;
  std::string task;
  uint32_t group = 0;
  v1::OpenExec open;
};

// The task, if it runs. FindLog resolves names and nodes.
absl::StatusOr<ExecTarget> FindTarget(const ClusterState& state,
                                      const v1::ExecRequest::Open& open) {
  v1::ReadLogsRequest as_log;
  as_log.set_job(open.job());
  as_log.set_task(open.task());
  const absl::StatusOr<LogRequest> found = FindLog(state, as_log);
  if (!found.ok()) return found.status();
  const Job& job = state.jobs().At(found->task.job);
  if (job.tasks.at(found->task.task).state != TaskState::kRunning) {
    return absl::FailedPreconditionError(absl::StrCat("task ", TaskNameOf(job, found->task.task),
                                                      " of job ", Quoted(job.name),
                                                      " is not running"));
  }
  if (job.tasks[found->task.task].pause != PauseState::kRuns) {
    return absl::FailedPreconditionError(
        absl::StrCat("task ", TaskNameOf(job, found->task.task), " of job ", Quoted(job.name),
                     " is paused: run `berth job resume ", job.name, "` first"));
  }
  ExecTarget target{.node = found->node,
                    .job = job.name,
                    .task = TaskNameOf(job, found->task.task),
                    .group = GroupOf(job, found->task.task),
                    .open = {}};
  target.open.mutable_key()->set_job_uid(job.id.value);
  target.open.mutable_key()->set_task(found->task.task);
  target.open.mutable_key()->set_attempt(found->attempt);
  *target.open.mutable_command() = open.command();
  if (open.has_terminal()) *target.open.mutable_terminal() = open.terminal();
  target.open.set_attach(open.attach());
  target.open.set_port(open.port());
  target.open.set_container(open.container());
  return target;
}

absl::Status CheckTerminalOf(const ExecTarget& target, const v1::JobSpec& cold) {
  const auto group = static_cast<int>(target.group);
  const bool has = group < cold.groups_size() && cold.groups(group).terminal();
  if (!target.open.attach() || has) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("task ", target.task, " of job ", Quoted(target.job),
                   " has no terminal (`terminal` of its group): berth exec runs a command in it, "
                   "and berth job logs shows its output"));
}

// Between the relay and the executor, which may call at any time, and the reactor, which lives
// until OnDone.
class ExecBridge final : public ExecPeer, public std::enable_shared_from_this<ExecBridge> {
 public:
  ExecBridge(const ServiceContext& context, ExecRelay* relay, Executor* executor, Call call,
             ExecReactor* reactor)
      : context_(context),
        relay_(relay),
        executor_(executor),
        call_(std::move(call)),
        reactor_(reactor) {}

  void Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    reactor_->StartRead(&request_);
  }

  void OnReadDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (IsFirst(ok)) return Open(request_.open());
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (ended_.has_value()) return;
    if (!ok) return SendEnd();
    if (absl::Status status = ValidateInput(request_, terminal_); !status.ok())
      return End(std::move(status));
    Forward();
    ReadMore();
  }

  void OnWriteDone(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && !ended_.has_value()) return End(absl::CancelledError("the client disconnected"));
    if (opened_.has_value() && !response_.output().empty()) {
      v1::ExecInput confirmed;
      confirmed.set_consumed(response_.output().size());
      relay_->Send(*opened_, std::move(confirmed));
    }
    Advance();
  }

  void OnCancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!ended_.has_value()) End(absl::CancelledError("the client disconnected"));
  }

  // The caller may not go on.
  void Revoke(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!ended_.has_value()) End(status);
  }

  void OnOutput(v1::ExecOutput output) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ended_.has_value()) return;
    opened_ = output.request();  // it may come before the relay has returned it
    under_way_ -= std::min<size_t>(under_way_, output.consumed());
    queued_bytes_ += output.data().size();
    if (queued_bytes_ > 2 * kExecWindow)
      return End(absl::InternalError("the agent sent more output than its window allows"));
    // Of a port: the other side sends nothing more.
    const bool last = !output.end() && output.data().empty() &&
                      output.stream() != v1::LOG_STREAM_UNSPECIFIED && !output_over_;
    output_over_ |= last;
    if (output.started() || last || !output.data().empty()) {
      v1::ExecResponse response;
      response.set_stream(output.stream());
      response.set_output(std::move(*output.mutable_data()));
      queue_.push_back(std::move(response));
    }
    if (output.end()) {
      opened_.reset();
      if (!output.error().empty()) return End(absl::FailedPreconditionError(output.error()));
      v1::ExecResponse response;
      response.set_exit_code(output.exit_code());
      queue_.push_back(std::move(response));
      ended_ = absl::OkStatus();
    } else {
      ReadMore();
    }
    Advance();
  }

  void OnGone(absl::Status status) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    opened_.reset();
    if (!ended_.has_value()) End(std::move(status));
  }

 private:
  // Whether the message just read is the first one and can be processed.
  bool IsFirst(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (opening_ || ended_.has_value()) return false;
    reading_ = false;
    opening_ = true;
    terminal_ = request_.open().has_terminal();
    absl::Status status = ok && request_.has_open()
                              ? ValidateOpen(request_.open())
                              : absl::InvalidArgumentError("the first message must be open");
    if (status.ok()) return true;
    End(std::move(status));
    return false;
  }

  // Looks the task up here, but reads the user that it runs as on the executor: that may touch the
  // disk.
  void Open(const v1::ExecRequest::Open& open) ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto find = [&](const ClusterState& state) -> absl::StatusOr<ExecTarget> {
      Rights rights(call_.caller);
      absl::Status may = MayUseJob(state, rights, call_.rpc, open.job(), context_.clock->Now());
      if (!may.ok()) return may;
      return FindTarget(state, open);
    };
    ReadView view(*context_.loop);
    absl::StatusOr<ExecTarget> target = view.Step(find);
    absl::StatusOr<UserShares::Part> part = context_.shares->BeginStream(*call_.caller);
    if (target.ok() && !part.ok()) target = part.status();
    if (target.ok()) {
      Hold(*std::move(part));
      const auto may = MayStill(context_, call_, JobId{target->open.key().job_uid()});
      Watch(may);
      const absl::Status still = view.Step([&](const ClusterState& state) { return may(state); });
      if (!still.ok()) target = still;
    }
    if (!target.ok()) {
      context_.NoteIfRefused(AboutJob(open.job()), target.status());
      absl::MutexLock lock(&mutex_);
      if (!ended_.has_value()) End(target.status());
      return;
    }
    executor_->Run([self = shared_from_this(), target = *std::move(target)]() mutable {
      self->Connect(std::move(target));
    });
  }

  Call AboutJob(const std::string& job) const {
    Call call = call_;
    call.target = absl::StrCat("job/", job);
    return call;
  }

  void Hold(UserShares::Part part) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    part_ = std::move(part);
  }

  // Ends the session when the caller loses the right to it.
  void Watch(OpenStreams::May may) ABSL_LOCKS_EXCLUDED(mutex_) {
    auto entry = context_.streams->Add(std::move(may),
                                       [weak = weak_from_this()](const absl::Status& status) {
                                         if (const auto self = weak.lock(); self != nullptr)
                                           self->Revoke(status);
                                       });
    absl::MutexLock lock(&mutex_);
    entry_ = std::move(entry);
  }

  // A task runs as the user of its job already.
  absl::Status MayRunAs(const std::string& user) const {
    if (!call_.caller->task.has_value()) {
      return context_.CheckRunAs(*call_.caller, OwnerBy(call_), user);
    }
    if (relay_->HasPlaceForTask()) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        "tasks run too many commands inside tasks (three quarters of limits.execs)");
  }

  void Connect(ExecTarget target) ABSL_LOCKS_EXCLUDED(mutex_) {
    v1::JobSpec cold;
    absl::Status status =
        ReadColdPart(*context_.store, JobId{target.open.key().job_uid()}, target.job, &cold);
    if (status.ok()) status = MayRunAs(cold.run_as());
    if (status.ok()) status = CheckTerminalOf(target, cold);
    if (status.ok()) {
      LogCall(context_, AboutJob(target.job));
      auto opened = relay_->Open(target.node, std::move(target.open), shared_from_this());
      if (opened.ok()) return Connected(*opened);
      status = opened.status();
    }
    absl::MutexLock lock(&mutex_);
    if (!ended_.has_value()) End(std::move(status));
  }

  // The command may have ended already: then the relay no longer has the request.
  void Connected(ExecRelay::RequestId request) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (ended_.has_value()) return relay_->Cancel(request);
    opened_ = request;
    ReadMore();
  }

  void Forward() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::ExecInput input;
    under_way_ += request_.input().size();
    if (request_.has_resize()) *input.mutable_resize() = request_.resize();
    input.set_end(request_.input_end());
    input.set_data(std::move(*request_.mutable_input()));
    if (opened_.has_value()) relay_->Send(*opened_, std::move(input));
  }

  // A client that sends nothing more has ended its input.
  void SendEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::ExecInput input;
    input.set_end(true);
    input_over_ = true;
    if (opened_.has_value()) relay_->Send(*opened_, std::move(input));
  }

  void ReadMore() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (reading_ || input_over_ || !opened_.has_value() || ended_.has_value() ||
        under_way_ + kMaxDataBytes > kExecWindow) {
      return;
    }
    reading_ = true;
    reactor_->StartRead(&request_);
  }

  void End(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ended_ = std::move(status);
    queue_.clear();
    if (opened_.has_value()) relay_->Cancel(*std::exchange(opened_, std::nullopt));
    Advance();
  }

  // Begins the next write, or finishes. After Finish the reactor is not used again.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || reactor_ == nullptr) return;
    if (queue_.empty()) {
      if (ended_.has_value()) std::exchange(reactor_, nullptr)->Finish(ToGrpcStatus(*ended_));
      return;
    }
    response_ = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= response_.output().size();
    writing_ = true;
    reactor_->StartWrite(&response_);
  }

  const ServiceContext& context_;
  ExecRelay* const relay_;
  Executor* const executor_;
  const Call call_;
  v1::ExecRequest request_;    // of the current read
  v1::ExecResponse response_;  // of the current write

  absl::Mutex mutex_;
  ExecReactor* reactor_ ABSL_GUARDED_BY(mutex_);  // null once finished
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool opening_ ABSL_GUARDED_BY(mutex_) = false;
  bool terminal_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool output_over_ ABSL_GUARDED_BY(mutex_) = false;
  size_t under_way_ ABSL_GUARDED_BY(mutex_) = 0;  // input that the command has not consumed
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::ExecResponse> queue_ ABSL_GUARDED_BY(mutex_);
  UserShares::Part part_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<OpenStreams::Entry> entry_ ABSL_GUARDED_BY(mutex_);
  std::optional<ExecRelay::RequestId> opened_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> ended_ ABSL_GUARDED_BY(mutex_);
};

class ExecStream final : public ExecReactor {
 public:
  ExecStream(const ServiceContext& context, ExecRelay* relay, Executor* executor, Call call)
      : bridge_(std::make_shared<ExecBridge>(context, relay, executor, std::move(call), this)) {
    bridge_->Begin();
  }

  void OnReadDone(bool ok) override { bridge_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { bridge_->OnWriteDone(ok); }
  void OnCancel() override { bridge_->OnCancel(); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<ExecBridge> bridge_;
};

}  // namespace

ExecReactor* StartExecStream(const ServiceContext& context, ExecRelay* relay, Executor* executor,
                             Call call) {
  return new ExecStream(context, relay, executor, std::move(call));
}

}  // namespace berth
