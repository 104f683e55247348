#include "clients/cli/attach.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/resource_names.h"
#include "clients/session/exec_call.h"
#include "clients/session/terminal_io.h"
#include "support/visible.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

constexpr absl::Duration kReattachFor = absl::Minutes(10);
constexpr absl::Duration kFirstWait = absl::Milliseconds(200);
constexpr absl::Duration kLongestWait = absl::Seconds(3);
constexpr uint32_t kRows = 24, kColumns = 80;

// The connection is lost, not the task.
bool IsLost(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return true;
    default:
      return false;
  }
}

class Attachment {
 public:
  Attachment(Session& session, const AttachOptions& options) : session_(session) {
    call_.raw = session.io().in_is_terminal;
    call_.keeps_open = true;
    call_.detach_keys = options.detach_keys;
    call_.open.set_job(options.job);
    call_.open.set_task(options.task);
    call_.open.set_attach(true);
    known_ = options.started;
    lost_ = Steady();
  }

  ExitCode Run() {
    for (;;) {
      SetSize();
      const ExecResult result = Attach();
      if (result.exit_code.has_value()) return Ended(*result.exit_code);
      if (result.detached) return Detached();
      if (result.began) Began();
      if (const auto code = AfterFailure(result.status); code.has_value()) return *code;
      session_.io().environment.sleeper->Sleep(wait_);
      wait_ = std::min(2 * wait_, kLongestWait);
    }
  }

 private:
  ExecResult Attach() {
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return {.status = client.status()};
    return RunExecCall(**client, call_, session_.out(), session_.err());
  }
  absl::Duration Steady() const { return session_.io().environment.clock->Steady(); }

  void SetSize() {
    v1::TerminalSize* size = call_.open.mutable_terminal();
    if (WindowSize(size)) return;
    size->set_rows(kRows);
    size->set_columns(kColumns);
  }

  void Began() {
    began_ = known_ = true;
    told_ = false;
    lost_ = Steady();
    wait_ = kFirstWait;
  }

  // Why the whole ends; nothing: try again.
  std::optional<ExitCode> AfterFailure(const absl::Status& status) {
    if (!known_) return session_.Finish(status);
    if (!IsLost(status)) {
      const absl::StatusOr<v1::Task> task = FindTask(session_, call_.open.job(), call_.open.task());
      if (!task.ok() && !IsLost(task.status())) return session_.Finish(status);
      const auto code = task.ok() ? TaskExitCode(*task) : std::nullopt;
      if (code.has_value()) return Ended(*code);
      // A lost task may be found again.
      const bool there =
          !task.ok() || task->state() == v1::TASK_RUNNING || task->state() == v1::TASK_LOST;
      if (!there) return session_.Finish(status);
    }
    if (Steady() - lost_ > kReattachFor) return session_.Finish(status);
    if (!std::exchange(told_, true)) {
      session_.err() << "\r\nberth: connection lost: " << Visible(status.message())
                     << "\nberth: reconnecting; Ctrl-C ends this program, and the job goes on\n"
                     << std::flush;
    }
    return std::nullopt;
  }

  // Says why a job was stopped that did not end by itself.
  ExitCode Ended(int exit_code) {
    if (!began_) PrintOutput();
    v1::GetJobRequest request;
    request.set_name(call_.open.job());
    const absl::StatusOr<v1::Job> job = session_.Call(&JobStub::GetJob, request);
    if (job.ok()) {
      const v1::JobStatus& status = job->status();
      const std::string why = !status.cancel_reason().empty()       ? status.cancel_reason()
                              : status.state() == v1::JOB_SUSPENDED ? status.message()
                                                                    : "";
      if (!why.empty()) session_.err() << "\nberth: job " << job->name() << ": " << why << "\n";
    }
    return static_cast<ExitCode>(exit_code & 0xff);
  }

  // It ended before this program could attach.
  void PrintOutput() {
    const absl::StatusOr<Client*> client = session_.client();
    if (!client.ok()) return;
    v1::ReadLogsRequest request;
    request.set_job(call_.open.job());
    request.set_task(call_.open.task());
    const auto print = [this](const v1::ReadLogsResponse& answer) {
      session_.out() << answer.data() << std::flush;
      return session_.out().good();
    };
    session_.Finish((*client)->ReadLogs(request, print));
  }

  ExitCode Detached() {
    session_.err() << "\nberth: detached; berth attach " << call_.open.job()
                   << (call_.open.task().empty() ? "" : " " + call_.open.task())
                   << " connects again\n";
    return ExitCode::kOk;
  }

  Session& session_;
  ExecCall call_;
  bool began_ = false;  // it was attached once
  bool known_ = false;  // the task has run
  bool told_ = false;   // that the connection is lost
  absl::Duration lost_;
  absl::Duration wait_ = kFirstWait;
};

}  // namespace

absl::StatusOr<v1::Task> FindTask(Session& session, const std::string& job,
                                  const std::string& task) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::optional<v1::Task> found;
  v1::ListTasksRequest request;
  request.set_job(job);
  const absl::Status status = (*client)->List<JobStub, v1::ListTasksRequest, v1::ListTasksResponse>(
      &JobStub::ListTasks, request, [&](const v1::ListTasksResponse& page) {
        for (const v1::Task& one : page.tasks()) {
          const bool wanted = task.empty() ? one.rank() == 0 : NameOfTask(one) == task;
          if (wanted || (task.empty() && !found.has_value())) found = one;
          if (wanted) return false;
        }
        return true;
      });
  if (!status.ok()) return status;
  if (!found.has_value())
    return absl::NotFoundError(absl::StrCat("job \"", job, "\" has no task \"", task, "\""));
  return *found;
}

std::optional<int> TaskExitCode(const v1::Task& task) {
  const bool ended = task.state() == v1::TASK_SUCCEEDED || task.state() == v1::TASK_FAILED;
  if (!ended || !task.has_exit_code()) return std::nullopt;
  return task.exit_code();
}

ExitCode AttachToTask(Session& session, const AttachOptions& options) {
  return Attachment(session, options).Run();
}

}  // namespace berth
