#include "clients/slurm/job_end.h"

#include <algorithm>

#include "absl/functional/function_ref.h"
#include "clients/session/ended.h"
#include "clients/slurm/pages.h"

namespace berth {
namespace {

// Looks at the job's state after the watch has begun, so that no change is missed.
absl::StatusOr<v1::JobState> AwaitState(SlurmContext& context, const std::string& job,
                                        absl::FunctionRef<bool(v1::JobState)> reached) {
  const absl::StatusOr<Client*> client = context.client();
  if (!client.ok()) return client.status();
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
  absl::Status failure;
  v1::WatchRequest watch;
  watch.add_jobs(job);
  const auto look = [&] {
    v1::GetJobRequest request;
    request.set_name(job);
    const auto now = (*client)->Call(&v1::JobService::StubInterface::GetJob, request);
    if (now.ok()) state = now->status().state();
    failure = now.status();
    return now.ok() && !reached(state);
  };
  for (;;) {
    const absl::Status status =
        (*client)->Watch(watch, [&](const v1::WatchResponse&) { return look(); });
    if (!failure.ok()) return failure;
    if (reached(state)) return state;
    if (!absl::IsOutOfRange(status) && !status.ok()) return status;
  }
}

}  // namespace

absl::StatusOr<std::vector<v1::Task>> TasksOfJob(Client& client, const std::string& job) {
  v1::ListTasksRequest request;
  request.set_job(job);
  std::vector<v1::Task> tasks;
  const absl::Status status =
      ReadPages(client, &v1::JobService::StubInterface::ListTasks, request,
                [&](const v1::ListTasksResponse& page) {
                  tasks.insert(tasks.end(), page.tasks().begin(), page.tasks().end());
                });
  if (!status.ok()) return status;
  return tasks;
}

JobExit ExitOf(const std::vector<v1::Task>& tasks) {
  const auto of = [](const v1::Task& task) {
    return JobExit{task.has_exit_code() ? task.exit_code() : 0, task.exit_signal()};
  };
  for (const v1::Task& task : tasks) {
    if (task.rank() == 0 && (task.has_exit_code() || task.exit_signal() != 0)) return of(task);
  }
  for (const v1::Task& task : tasks) {
    if (task.state() == v1::TASK_FAILED) return of(task);
  }
  return {};
}

absl::StatusOr<int> AwaitJobEnd(SlurmContext& context, const std::string& job) {
  const auto state = AwaitState(context, job, HasEnded);
  if (!state.ok()) return state.status();
  const auto tasks = TasksOfJob(**context.client(), job);
  if (!tasks.ok()) return tasks.status();
  const JobExit exit = ExitOf(*tasks);
  const int code = exit.signal != 0 ? 128 + exit.signal : exit.code;
  return *state == v1::JOB_SUCCEEDED ? code : std::max(code, 1);
}

absl::StatusOr<v1::JobState> AwaitJobStart(SlurmContext& context, const std::string& job) {
  return AwaitState(context, job, [](v1::JobState state) {
    return state == v1::JOB_RUNNING || state == v1::JOB_COMPLETING || HasEnded(state);
  });
}

}  // namespace berth
