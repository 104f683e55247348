#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/by_name.h"
#include "clients/cli/explain_commands.h"
#include "clients/cli/job_ended.h"
#include "clients/cli/job_history.h"
#include "clients/cli/job_list.h"
#include "clients/cli/job_logs.h"
#include "clients/cli/job_selection.h"
#include "clients/cli/job_view.h"
#include "clients/cli/job_wait.h"
#include "clients/cli/resource_names.h"
#include "support/quantity.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

absl::StatusOr<std::vector<v1::Task>> Tasks(Session& session, const std::string& job) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Task> tasks;
  v1::ListTasksRequest request;
  request.set_job(job);
  const absl::Status status = (*client)->List<JobStub, v1::ListTasksRequest, v1::ListTasksResponse>(
      &JobStub::ListTasks, request, [&](const v1::ListTasksResponse& page) {
        tasks.insert(tasks.end(), page.tasks().begin(), page.tasks().end());
        return true;
      });
  if (!status.ok()) return status;
  return tasks;
}

absl::StatusOr<v1::ListTasksResponse> AllTasks(Session& session, const std::string& job) {
  const absl::StatusOr<std::vector<v1::Task>> tasks = Tasks(session, job);
  if (!tasks.ok()) return tasks.status();
  v1::ListTasksResponse all;
  all.mutable_tasks()->Assign(tasks->begin(), tasks->end());
  return all;
}

absl::StatusOr<std::string> JobDescription(Session& session, const v1::Job& job) {
  const absl::StatusOr<std::vector<v1::Task>> tasks = Tasks(session, job.name());
  if (!tasks.ok()) return tasks.status();
  return DescribeJob(job, *tasks, session);
}

ExitCode ShowTasks(Session& session, const std::string& name) {
  const absl::StatusOr<std::vector<v1::Task>> tasks = Tasks(session, name);
  if (!tasks.ok()) return session.Finish(tasks.status());
  switch (session.options.format) {
    case Format::kJson:
    case Format::kYaml: {
      v1::ListTasksResponse all;
      all.mutable_tasks()->Assign(tasks->begin(), tasks->end());
      session.out() << (session.options.format == Format::kJson ? JsonOf(all) + "\n" : YamlOf(all));
      break;
    }
    case Format::kName:
      for (const v1::Task& task : *tasks) {
        session.out() << "job/" << name << "/" << task.group() << "-" << task.index() << "\n";
      }
      break;
    default:
      session.out() << TaskTable(*tasks, session).Render(session.table_style());
  }
  return ExitCode::kOk;
}

constexpr char kNoWalltime[] = "none";

const CLI::Validator kIsWalltime(
    [](const std::string& text) -> std::string {
      if (text == kNoWalltime) return "";
      const auto parsed = ParseDuration(text);
      return parsed.ok() ? "" : absl::StrCat(parsed.status().message(), "; or none");
    },
    "DURATION");

struct UpdateArguments {
  absl::optional<int32_t> priority;
  std::string walltime;
  std::vector<std::string> labels;
};

// Updates one of the named jobs.
absl::Status UpdateOne(Session& session, const UpdateArguments& arguments,
                       const std::string& name) {
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(name);
  v1::JobSpec& spec = *request.mutable_job()->mutable_spec();
  if (arguments.priority) {
    spec.set_priority(*arguments.priority);
    request.mutable_update_mask()->add_paths("spec.priority");
  }
  if (!arguments.labels.empty()) {
    // The mask covers the whole map. To keep labels that are not named, send them again.
    v1::GetJobRequest get;
    get.set_name(name);
    session.exact_answers = true;  // the labels are sent back
    const absl::StatusOr<v1::Job> job = session.Call(&JobStub::GetJob, get);
    session.exact_answers = false;
    if (!job.ok()) return job.status();
    *spec.mutable_labels() = job->spec().labels();
    for (const std::string& label : arguments.labels) {
      const auto pair = KeyValueFrom(label);
      (*spec.mutable_labels())[pair.first] = pair.second;
      if (pair.second.empty()) spec.mutable_labels()->erase(pair.first);
    }
    request.mutable_job()->set_etag(job->etag());
    request.mutable_update_mask()->add_paths("spec.labels");
  }
  if (!arguments.walltime.empty()) {
    if (arguments.walltime != kNoWalltime) {
      const auto walltime = ParseDuration(arguments.walltime);
      spec.mutable_walltime()->set_seconds(walltime->seconds);
      spec.mutable_walltime()->set_nanos(walltime->nanos);
    }
    request.mutable_update_mask()->add_paths("spec.walltime");
  }
  const absl::StatusOr<v1::Job> job = session.Call(&JobStub::UpdateJob, request);
  if (job.ok()) PrintChanged(session, *job, "updated", JobShape());
  return job.status();
}

ExitCode UpdateJobs(Session& session, const UpdateArguments& arguments, const Names& names) {
  if (!arguments.priority && arguments.labels.empty() && arguments.walltime.empty()) {
    session.err() << "berth: nothing to update: give --priority, --walltime or --label\n";
    return ExitCode::kUsage;
  }
  return ForEachName(session, names,
                     [&](const std::string& name) { return UpdateOne(session, arguments, name); });
}

// The tasks that are still running when a cancel or suspend returns.
int32_t TasksBeingStopped(const v1::Job& job) {
  int32_t tasks = 0;
  for (const v1::GroupStatus& group : job.status().groups()) {
    for (const auto& [state, count] : group.tasks()) {
      const bool waits = state == "PENDING" || state == "NOMINATED";
      if (!waits && state != "SUCCEEDED" && state != "FAILED") tasks += count;
    }
  }
  return tasks;
}

// "cancelled", or "cancelling: 3 tasks are being stopped".
std::string StopText(const v1::Job& job, const char* done, const char* doing) {
  const int32_t tasks = TasksBeingStopped(job);
  if (tasks == 0) return done;
  return absl::StrCat(doing, ": ", tasks, tasks == 1 ? " task is" : " tasks are", " being stopped");
}

struct CancelArguments {
  v1::CancelJobRequest request;
  bool wait = false;
};

ExitCode Cancel(Session& session, const Names& names, const CancelArguments& arguments) {
  Names stopping;
  const ExitCode code = ForEachName(session, names, [&](const std::string& name) {
    const absl::StatusOr<v1::Job> job =
        CallByName(session, &JobStub::CancelJob, name, arguments.request);
    if (!job.ok()) return job.status();
    PrintChanged(session, *job, StopText(*job, "cancelled", "cancelling"), JobShape());
    if (TasksBeingStopped(*job) > 0) stopping.push_back(name);
    return absl::OkStatus();
  });
  if (!arguments.wait || stopping.empty()) return code;
  // The user asked for an end: any end of the job is a success.
  const ExitCode ended = WaitForJobs(session, stopping, WaitFor::kAll, absl::InfiniteDuration());
  return code == ExitCode::kOk && ended != ExitCode::kJobFailed ? ended : code;
}

ExitCode Suspend(Session& session, const Names& names, const v1::SuspendJobRequest& request) {
  return ForEachName(session, names, [&](const std::string& name) {
    const absl::StatusOr<v1::Job> job = CallByName(session, &JobStub::SuspendJob, name, request);
    if (!job.ok()) return job.status();
    const std::string text = request.mode() == v1::SuspendJobRequest::FREEZE
                                 ? "pausing: its tasks are being frozen"
                                 : StopText(*job, "suspended", "suspending");
    PrintChanged(session, *job, text, JobShape());
    return absl::OkStatus();
  });
}

void AddSuspend(CLI::App& noun, Session& session) {
  auto request = std::make_shared<v1::SuspendJobRequest>();
  CLI::App* suspend = AddSelecting(
      noun, session, {"suspend", Among::kActive, true},
      "stop or freeze jobs until they are resumed",
      [request](Session& s, const Names& names) { return Suspend(s, names, *request); });
  suspend->add_flag_function(
      "--freeze", [request](int64_t) { request->set_mode(v1::SuspendJobRequest::FREEZE); },
      "freeze their tasks where they are: they keep everything but their CPU");
}

std::string RequeueText(const v1::Job& job) {
  if (job.status().state() == v1::JOB_SUSPENDED) return "is suspended: there is nothing to requeue";
  return StopText(job, "waits in the queue", "requeuing");
}

ExitCode RequeueJobs(Session& session, const Names& names) {
  return ForEachName(session, names, [&](const std::string& name) {
    const absl::StatusOr<v1::Job> job =
        CallByName(session, &JobStub::RequeueJob, name, v1::RequeueJobRequest());
    if (!job.ok()) return job.status();
    PrintChanged(session, *job, RequeueText(*job), JobShape());
    return absl::OkStatus();
  });
}

void AddCancel(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<CancelArguments>();
  v1::CancelJobRequest* pattern = &arguments->request;
  CLI::App* cancel = AddSelecting(
      noun, session, {"cancel", Among::kActive, true}, "cancel jobs: stop them for good",
      [arguments](Session& s, const Names& names) { return Cancel(s, names, *arguments); });
  cancel->add_flag_function(
      "--force", [pattern](int64_t) { pattern->set_force(true); },
      "kill at once, without grace, and do not wait for silent nodes");
  cancel->add_flag("--wait", arguments->wait, "wait until no task of the jobs is running");
  cancel->add_option_function<std::string>(
      "--reason", [pattern](const std::string& reason) { pattern->set_reason(reason); },
      "reason that users see");
}

void AddChanges(CLI::App& noun, Session& session) {
  AddCancel(noun, session);
  AddSuspend(noun, session);
  AddSelecting(noun, session, {"resume", Among::kSuspended, true}, "resume suspended jobs",
               [](Session& s, const Names& names) {
                 return ChangeByName(s, names, &JobStub::ResumeJob, "resumed", JobShape());
               });
  AddSelecting(noun, session, {"requeue", Among::kActive, true},
               "stop jobs and start them again from the queue, without using a retry", RequeueJobs);
  AddSelecting(noun, session, {"delete", Among::kEnded, true}, "delete jobs that have ended",
               [](Session& s, const Names& names) {
                 return DeleteByName(s, names, "job", [](Client& client, const std::string& name) {
                   return client.DeleteJob(name);
                 });
               });
}

// Selects by names and patterns only, because --label sets a label here.
void AddUpdate(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<UpdateArguments>();
  auto selection = std::make_shared<JobSelection>();
  const SelectingVerb verb = {"update", Among::kActive, true};
  CLI::App* update = AddCommand(
      noun, session, verb.name, "change priority, walltime or labels of jobs", [=](Session& s) {
        return RunSelected(s, verb, *selection, [&](Session& same, const Names& names) {
          return UpdateJobs(same, *arguments, names);
        });
      });
  AddSelectionNames(*update, verb, selection.get());
  update->add_option_function<int32_t>(
      "--priority", [arguments](int32_t priority) { arguments->priority = priority; },
      "higher goes first");
  update->add_option("--walltime", arguments->walltime, "longest run of one start: 5h, or none")
      ->check(kIsWalltime);
  update->add_option("--label,-l", arguments->labels, "set a label; KEY= removes it")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
}

void AddWait(CLI::App& noun, Session& session) {
  auto timeout = std::make_shared<std::string>();
  auto any = std::make_shared<bool>(false);
  CLI::App* wait = AddSelecting(
      noun, session, {"wait", Among::kActive, false},
      "wait until jobs have ended; exit code 0 if they succeeded",
      [=](Session& s, const Names& names) {
        return WaitForJobs(s, names, *any ? WaitFor::kAny : WaitFor::kAll,
                           timeout->empty() ? absl::InfiniteDuration() : DurationFrom(*timeout));
      });
  wait->add_flag("--any", *any, "wait until one of them has ended; default: all of them");
  wait->add_option("--timeout", *timeout, "give up after this time (exit code 11)")
      ->check(kIsDuration);
}

void AddTasksAndWatch(CLI::App& noun, Session& session) {
  auto name = std::make_shared<std::string>();
  CLI::App* tasks = AddCommand(noun, session, "tasks", "show where each task runs and how it ended",
                               [name](Session& s) { return ShowTasks(s, *name); });
  tasks->add_option("NAME", *name, "job")->required()->transform(NameOf("job"));
  auto names = std::make_shared<Names>();
  CLI::App* watch = AddCommand(noun, session, "watch",
                               "print a line for each change, until the named jobs have ended",
                               [names](Session& s) { return FollowJobs(s, *names); });
  watch->add_option("NAME", *names, "jobs; default: all")->transform(NameOf("job"));
}

}  // namespace

void AddJobCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "job", "inspect and control jobs");
  AddJobList(noun, session);
  AddSelecting(noun, session, {"get", Among::kAny, false}, "show jobs by name",
               [](Session& s, const Names& names) {
                 return GetByName(s, names, &JobStub::GetJob, JobShape());
               });
  AddSelecting(noun, session, {"describe", Among::kAny, false}, "show details of jobs and tasks",
               [](Session& s, const Names& names) {
                 return DescribeByName(
                     s, names, &JobStub::GetJob, "job",
                     [&](const v1::Job& job) { return JobDescription(s, job); },
                     [&](const v1::Job& job) { return AllTasks(s, job.name()); });
               });
  AddExplainCommands(noun, session);
  AddTasksAndWatch(noun, session);
  AddJobHistory(noun, session);
  AddJobEnded(noun, session);
  AddJobLogs(noun, session);
  AddWait(noun, session);
  AddChanges(noun, session);
  AddUpdate(noun, session);
}

}  // namespace berth
