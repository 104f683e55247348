#include "server/services/log_stream.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/validation/findings.h"
#include "server/validation/no_such.h"
#include "server/validation/text.h"
#include "server/validation/values.h"

namespace berth {
namespace {

using LogReactor = grpc::ServerWriteReactor<v1::ReadLogsResponse>;

// Between the relay, which may call at any time, and the reactor, which lives until OnDone. One
// write at a time.
class LogPump final : public LogReader {
 public:
  LogPump(LogRelay* relay, LogReactor* reactor, uint32_t attempt)
      : relay_(relay), reactor_(reactor) {
    message_.set_attempt(attempt);
  }

  void OnChunk(v1::LogChunk chunk) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    chunks_.push_back(std::move(chunk));
    Advance();
  }
  void OnEnd(absl::Status status) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = std::move(status);
    Advance();
  }

  void OnWritten(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    relay_->Consumed(RequestOfWrite(), message_.data().size());
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok && !end_.has_value()) end_ = absl::CancelledError("the client disconnected");
    if (!ok) chunks_.clear();
    Advance();
  }
  // The client is gone, or the request could not be opened.
  void Abandon(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::optional<LogRelay::RequestId> opened;
    {
      absl::MutexLock lock(&mutex_);
      abandoned_ = true;
      opened = opened_;
      chunks_.clear();
      if (!end_.has_value()) end_ = std::move(status);
      Advance();
    }
    if (opened.has_value()) relay_->Cancel(*opened);
  }
  void Opened(LogRelay::RequestId request) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      opened_ = request;
      if (!abandoned_) return;
    }
    relay_->Cancel(request);
  }

 private:
  LogRelay::RequestId RequestOfWrite() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return write_request_;
  }

  // Begins the next write, or finishes. After Finish the reactor is not used again.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || reactor_ == nullptr) return;
    if (chunks_.empty()) {
      if (end_.has_value()) std::exchange(reactor_, nullptr)->Finish(ToGrpcStatus(*end_));
      return;
    }
    v1::LogChunk chunk = std::move(chunks_.front());
    chunks_.pop_front();
    write_request_ = chunk.request();
    message_.set_data(std::move(*chunk.mutable_data()));
    message_.set_stream(chunk.stream());
    message_.clear_next();
    if (chunk.has_next()) *message_.mutable_next() = std::move(*chunk.mutable_next());
    message_.clear_time();
    if (chunk.has_time()) *message_.mutable_time() = chunk.time();
    writing_ = true;
    reactor_->StartWrite(&message_);
  }

  LogRelay* const relay_;
  v1::ReadLogsResponse message_;  // of the current write; all have the same attempt

  absl::Mutex mutex_;
  LogReactor* reactor_ ABSL_GUARDED_BY(mutex_);              // null once finished
  std::deque<v1::LogChunk> chunks_ ABSL_GUARDED_BY(mutex_);  // bounded by the relay
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  LogRelay::RequestId write_request_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<LogRelay::RequestId> opened_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

class LogStream final : public LogReactor {
 public:
  LogStream(LogRelay* relay, uint32_t attempt)
      : pump_(std::make_shared<LogPump>(relay, this, attempt)) {}
  const std::shared_ptr<LogPump>& pump() const { return pump_; }
  absl::Status Hold(UserShares* shares, const Caller& caller) {
    absl::StatusOr<UserShares::Part> part = shares->BeginStream(caller);
    if (part.ok()) part_ = *std::move(part);
    return part.status();
  }
  void EndWith(OpenStreams* streams, OpenStreams::May may) {
    entry_ = streams->Add(std::move(may),
                          [pump = pump_](const absl::Status& status) { pump->Abandon(status); });
  }

  void OnWriteDone(bool ok) override { pump_->OnWritten(ok); }
  void OnCancel() override { pump_->Abandon(absl::CancelledError("the client disconnected")); }
  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<LogPump> pump_;
  UserShares::Part part_;
  std::unique_ptr<OpenStreams::Entry> entry_;
};

absl::Status ValidateReadLogs(const v1::ReadLogsRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckRange({root, "tail_lines"}, request.tail_lines(), 0, INT64_MAX, findings);
  CheckEnum({root, "stream"}, request.stream(), findings);
  if (!request.container().empty())
    CheckDnsLabel({root, "container"}, request.container(), findings);
  if (!request.has_from()) return findings.ToStatus();
  const FieldPath from(root, "from");
  CheckRange({from, "stdout_bytes"}, request.from().stdout_bytes(), 0, INT64_MAX, findings);
  CheckRange({from, "stderr_bytes"}, request.from().stderr_bytes(), 0, INT64_MAX, findings);
  if (request.attempt() == 0) findings.Invalid({root, "attempt"}, "required with from");
  if (request.tail_lines() > 0) findings.Invalid({root, "tail_lines"}, "not with from");
  return findings.ToStatus();
}

// That was bound with rank 0; the job's first task if none was yet, or if that is a coordinator.
uint32_t FirstInRank(const Job& job) {
  if (job.tasks.size() == 0 || job.tasks[0].rank == kNoRank) return 0;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].attempt > 0 && job.tasks[i].rank == 0) return i;
  }
  return 0;
}

// "worker-3" -> index in the job; "" is rank 0. Group names may contain dashes: the number follows
// the last one.
std::optional<uint32_t> TaskIndex(const Job& job, const std::string& name) {
  if (name.empty()) return FirstInRank(job);
  const size_t dash = name.rfind('-');
  int32_t index = -1;
  if (dash == std::string::npos || !absl::SimpleAtoi(name.substr(dash + 1), &index)) {
    return std::nullopt;
  }
  for (const Group& group : job.groups) {
    if (name.compare(0, dash, group.name) != 0) continue;
    if (index < 0 || index >= group.replicas) return std::nullopt;
    return group.first_task + static_cast<uint32_t>(index);
  }
  return std::nullopt;
}

// A node that exists but is not connected will be in a moment, after a restart: the relay reports
// UNAVAILABLE. A node that fell silent may never be.
absl::Status CheckNode(const ClusterState& state, NodeId id) {
  const Node* node = state.nodes().Find(id);
  if (node == nullptr) return absl::NotFoundError("the node with the output was deleted");
  if (node->status.state == NodeState::kReady) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("node ", Quoted(node->spec.name), ", which has the output, is silent"));
}

}  // namespace

absl::Status MayUseJob(const ClusterState& state, Rights& rights, Rpc rpc, const std::string& job,
                       Time now) {
  absl::Status status = Admit(state, rights, rpc, now);
  if (!status.ok()) return status;
  const Job* found = state.FindJob(job);
  return found == nullptr ? NoSuchJob(state, rights, job) : PermitOnJob(state, rights, rpc, *found);
}

absl::StatusOr<LogRequest> FindLog(const ClusterState& state, const v1::ReadLogsRequest& request) {
  if (absl::Status status = ValidateReadLogs(request); !status.ok()) return status;
  const Job* job = state.FindJob(request.job());
  if (job == nullptr) return NoSuchJob(request.job());
  if (job->series) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", Quoted(job->name), " is ", job->series->IsSchedule() ? "a schedule" : "an array",
        " and has no tasks: its jobs have them (`berth job list --of ", job->name, "`)"));
  }
  const std::optional<uint32_t> index = TaskIndex(*job, request.task());
  if (!index.has_value()) {
    return absl::NotFoundError(absl::StrCat("job ", Quoted(job->name), " has no task ",
                                            Quoted(request.task()),
                                            "; tasks are named GROUP-INDEX"));
  }
  const Task& task = job->tasks[*index];
  if (task.attempt == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("task ", TaskNameOf(*job, *index), " has not started yet"));
  }
  if (request.attempt() > task.attempt) {
    return absl::NotFoundError(absl::StrCat("task ", TaskNameOf(*job, *index), " is at attempt ",
                                            task.attempt, "; there is no attempt ",
                                            request.attempt()));
  }
  if (absl::Status status = CheckNode(state, task.node); !status.ok()) return status;
  return LogRequest{.node = task.node,
                    .task = {job->id, *index},
                    .attempt = request.attempt() > 0 ? request.attempt() : task.attempt,
                    .stream = request.stream(),
                    .tail_lines = request.tail_lines(),
                    .from = request.from(),
                    .follow = request.follow(),
                    .times = request.times(),
                    .container = request.container()};
}

LogReactor* StartLogStream(const ServiceContext& context, LogRelay* relay, const Call& call,
                           const v1::ReadLogsRequest& request) {
  const auto find = [&](const ClusterState& state) -> absl::StatusOr<LogRequest> {
    Rights rights(call.caller);
    absl::Status may = MayUseJob(state, rights, call.rpc, request.job(), context.clock->Now());
    if (!may.ok()) return may;
    return FindLog(state, request);
  };
  ReadView view(*context.loop);
  absl::StatusOr<LogRequest> log = view.Step(find);
  auto* stream = new LogStream(relay, log.ok() ? log->attempt : 0);
  const std::shared_ptr<LogPump> pump = stream->pump();
  context.NoteIfRefused(call, log.status());
  if (absl::Status held = stream->Hold(context.shares, *call.caller); log.ok() && !held.ok()) {
    log = held;
  }
  if (log.ok()) {
    stream->EndWith(context.streams, MayStill(context, call, log->task.job));
    const auto may = MayStill(context, call, log->task.job);
    const absl::Status still = view.Step([&](const ClusterState& state) { return may(state); });
    if (!still.ok()) log = still;
  }
  if (!log.ok()) {
    pump->Abandon(log.status());
    return stream;
  }
  LogCall(context, call);
  const absl::StatusOr<LogRelay::RequestId> opened = relay->Open(*log, pump);
  if (opened.ok()) {
    pump->Opened(*opened);
  } else {
    pump->Abandon(opened.status());
  }
  return stream;
}

}  // namespace berth
