#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/by_name.h"
#include "clients/cli/explain_commands.h"
#include "clients/cli/job_history.h"
#include "clients/cli/job_view.h"
#include "clients/cli/job_wait.h"
#include "support/number_check.h"
#include "support/yaml_proto_scalar.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

struct ListArguments {
  std::string queue;
  std::vector<std::string> states;
  std::vector<std::string> labels;
  bool active = false;
  bool watch = false;
  size_t limit = 0;
};

const CLI::Validator kIsJobState(
    [](const std::string& text) -> std::string {
      if (FindEnumValue(v1::JobState_descriptor(), text) != nullptr) return "";
      return absl::StrCat("unknown state \"", text,
                          "\"; known: ", absl::StrJoin(EnumTexts(v1::JobState_descriptor()), ", "));
    },
    "STATE");

v1::ListJobsRequest ListRequest(const ListArguments& arguments) {
  v1::ListJobsRequest request;
  v1::JobFilter& filter = *request.mutable_filter();
  filter.set_queue(arguments.queue);
  filter.set_active_only(arguments.active);
  for (const std::string& state : arguments.states) {
    filter.add_states(
        static_cast<v1::JobState>(FindEnumValue(v1::JobState_descriptor(), state)->number()));
  }
  for (const std::string& label : arguments.labels) {
    const auto pair = KeyValueFrom(label);
    (*filter.mutable_labels())[pair.first] = pair.second;
  }
  return request;
}

absl::Status ListOnce(Session& session, const ListArguments& arguments) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  std::vector<v1::Job> jobs;
  const absl::Status status = (*client)->List<JobStub, v1::ListJobsRequest, v1::ListJobsResponse>(
      &JobStub::ListJobs, ListRequest(arguments), [&](const v1::ListJobsResponse& page) {
        jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
        return arguments.limit == 0 || jobs.size() < arguments.limit;
      });
  if (!status.ok()) return status;
  if (arguments.limit != 0 && jobs.size() > arguments.limit) jobs.resize(arguments.limit);
  Print(session, jobs, false, JobShape());
  return absl::OkStatus();
}

ExitCode List(Session& session, const ListArguments& arguments) {
  if (!arguments.watch) return session.Finish(ListOnce(session, arguments));
  return WatchList(session, v1::WatchRequest(), [&] { return ListOnce(session, arguments); });
}

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

absl::StatusOr<std::string> Describe(Session& session, const v1::Job& job) {
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
      for (const v1::Task& task : *tasks)
        session.out() << task.group() << "-" << task.index() << "\n";
      break;
    default:
      session.out() << TaskTable(*tasks, session).Render(session.table_style());
  }
  return ExitCode::kOk;
}

struct UpdateArguments {
  std::string name;
  absl::optional<int32_t> priority;
  std::vector<std::string> labels;
};

ExitCode Update(Session& session, const UpdateArguments& arguments) {
  v1::UpdateJobRequest request;
  request.mutable_job()->set_name(arguments.name);
  v1::JobSpec& spec = *request.mutable_job()->mutable_spec();
  if (arguments.priority) {
    spec.set_priority(*arguments.priority);
    request.mutable_update_mask()->add_paths("spec.priority");
  }
  if (!arguments.labels.empty()) {
    // The mask covers the whole map: labels that are not named stay, so they are sent again.
    v1::GetJobRequest get;
    get.set_name(arguments.name);
    const absl::StatusOr<v1::Job> job = session.Call(&JobStub::GetJob, get);
    if (!job.ok()) return session.Finish(job.status());
    *spec.mutable_labels() = job->spec().labels();
    for (const std::string& label : arguments.labels) {
      const auto pair = KeyValueFrom(label);
      (*spec.mutable_labels())[pair.first] = pair.second;
      if (pair.second.empty()) spec.mutable_labels()->erase(pair.first);
    }
    request.mutable_job()->set_etag(job->etag());
    request.mutable_update_mask()->add_paths("spec.labels");
  }
  if (request.update_mask().paths().empty()) {
    session.err() << "berth: nothing to update: give --priority or --label\n";
    return ExitCode::kUsage;
  }
  const absl::StatusOr<v1::Job> job = session.Call(&JobStub::UpdateJob, request);
  if (job.ok()) PrintChanged(session, *job, "updated", JobShape());
  return session.Finish(job.status());
}

ExitCode Logs(Session& session, const v1::ReadLogsRequest& request) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  return session.Finish((*client)->ReadLogs(request, [&](const v1::ReadLogsResponse& answer) {
    session.out() << answer.data();
    session.out().flush();
    return session.out().good();  // else nobody reads any more
  }));
}

void AddList(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* list = AddCommand(noun, session, "list", "jobs, oldest first",
                              [arguments](Session& s) { return List(s, *arguments); });
  list->add_option("--queue,-q", arguments->queue, "only of this queue");
  list->add_option("--state", arguments->states, "only in these states, as in running,pending")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kIsJobState);
  list->add_option("--label,-l", arguments->labels, "only with this label; may be repeated")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
  list->add_flag("--active,-a", arguments->active, "leave out jobs that have ended");
  list->add_flag("--watch,-w", arguments->watch, "show the list again at every change");
  list->add_option("--limit", arguments->limit, "at most so many");
}

void AddLogs(CLI::App& noun, Session& session) {
  auto request = std::make_shared<v1::ReadLogsRequest>();
  auto job = std::make_shared<std::string>();
  auto stream = std::make_shared<std::string>();
  CLI::App* logs = AddCommand(noun, session, "logs", "output of a task", [=](Session& s) {
    request->set_job(*job);
    if (!stream->empty()) request->set_stream(*stream == "stdout" ? v1::STDOUT : v1::STDERR);
    return Logs(s, *request);
  });
  logs->add_option("NAME", *job, "job")->required();
  logs->add_flag_function(
      "--follow,-f", [request](int64_t) { request->set_follow(true); }, "until the task ends");
  logs->add_option_function<std::string>(
      "--task,-t", [request](const std::string& task) { request->set_task(task); },
      "GROUP-INDEX; default: rank 0");
  logs->add_option_function<int64_t>(
          "--tail", [request](int64_t lines) { request->set_tail_lines(lines); },
          "only the last so many lines")
      ->check(WholeNumber<int64_t>(1));
  logs->add_option_function<uint32_t>(
      "--attempt", [request](uint32_t attempt) { request->set_attempt(attempt); },
      "default: the latest");
  logs->add_option("--stream", *stream, "stdout or stderr; default: both")
      ->check(CLI::IsMember({"stdout", "stderr"}));
}

// What still runs when a cancel is answered.
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

std::string CancelText(const v1::Job& job) {
  const int32_t tasks = TasksBeingStopped(job);
  if (tasks == 0) return "cancelled";
  return absl::StrCat("cancelling: ", tasks, tasks == 1 ? " task is" : " tasks are",
                      " being stopped");
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
    PrintChanged(session, *job, CancelText(*job), JobShape());
    if (TasksBeingStopped(*job) > 0) stopping.push_back(name);
    return absl::OkStatus();
  });
  if (!arguments.wait || code != ExitCode::kOk) return code;
  // Cancelled is what was asked for: any end of the job is a good one.
  ExitCode first = ExitCode::kOk;
  for (const std::string& name : stopping) {
    const ExitCode ended = WaitForJob(session, name, absl::InfiniteDuration());
    if (first == ExitCode::kOk && ended != ExitCode::kJobFailed) first = ended;
  }
  return first;
}

void AddCancel(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<CancelArguments>();
  v1::CancelJobRequest* pattern = &arguments->request;
  CLI::App* cancel = AddNames(
      noun, session, "cancel", "stop jobs for good",
      [arguments](Session& s, const Names& names) { return Cancel(s, names, *arguments); });
  cancel->add_flag_function(
      "--force", [pattern](int64_t) { pattern->set_force(true); },
      "kill at once, without grace, and do not wait for nodes that are silent");
  cancel->add_flag("--wait", arguments->wait, "until nothing of the jobs runs any more");
  cancel->add_option_function<std::string>(
      "--reason", [pattern](const std::string& reason) { pattern->set_reason(reason); },
      "told to whoever looks");
}

void AddUpdate(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<UpdateArguments>();
  CLI::App* update = AddCommand(noun, session, "update", "change a job's priority or labels",
                                [arguments](Session& s) { return Update(s, *arguments); });
  update->add_option("NAME", arguments->name, "job")->required();
  update->add_option_function<int32_t>(
      "--priority", [arguments](int32_t priority) { arguments->priority = priority; },
      "higher goes first");
  update->add_option("--label,-l", arguments->labels, "set a label; KEY= removes it")
      ->allow_extra_args(false)
      ->check(kIsKeyValue);
}

void AddWait(CLI::App& noun, Session& session) {
  auto timeout = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  CLI::App* wait = AddCommand(
      noun, session, "wait", "until a job has ended; exit code 0 if it succeeded", [=](Session& s) {
        return WaitForJob(s, *name,
                          timeout->empty() ? absl::InfiniteDuration() : DurationFrom(*timeout));
      });
  wait->add_option("NAME", *name, "job")->required();
  wait->add_option("--timeout", *timeout, "give up after this time (exit code 11)")
      ->check(kIsDuration);
}

void AddTasksAndWatch(CLI::App& noun, Session& session) {
  auto name = std::make_shared<std::string>();
  CLI::App* tasks = AddCommand(noun, session, "tasks", "where each task runs, and how it ended",
                               [name](Session& s) { return ShowTasks(s, *name); });
  tasks->add_option("NAME", *name, "job")->required();
  auto names = std::make_shared<Names>();
  CLI::App* watch =
      AddCommand(noun, session, "watch", "a line for each change, until the jobs named have ended",
                 [names](Session& s) { return FollowJobs(s, *names); });
  watch->add_option("NAME", *names, "jobs; default: all");
}

}  // namespace

void AddJobCommands(CLI::App& app, Session& session) {
  CLI::App& noun = *AddNoun(app, "job", "what runs and what waits");
  AddList(noun, session);
  AddNames(noun, session, "get", "jobs by name", [](Session& s, const Names& names) {
    return GetByName(s, names, &JobStub::GetJob, JobShape());
  });
  AddNames(noun, session, "describe", "all about jobs, with their tasks",
           [](Session& s, const Names& names) {
             return DescribeByName(s, names, &JobStub::GetJob,
                                   [&](const v1::Job& job) { return Describe(s, job); });
           });
  AddExplainCommands(noun, session);
  AddTasksAndWatch(noun, session);
  AddJobHistory(noun, session);
  AddLogs(noun, session);
  AddWait(noun, session);
  AddCancel(noun, session);
  AddNames(noun, session, "suspend", "stop jobs until they are resumed",
           [](Session& s, const Names& names) {
             return ChangeByName(s, names, &JobStub::SuspendJob, "suspended", JobShape());
           });
  AddNames(noun, session, "resume", "let suspended jobs go on", [](Session& s, const Names& names) {
    return ChangeByName(s, names, &JobStub::ResumeJob, "resumed", JobShape());
  });
  AddUpdate(noun, session);
  AddNames(noun, session, "delete", "forget jobs that have ended",
           [](Session& s, const Names& names) {
             return DeleteByName(s, names, "job", [](Client& client, const std::string& name) {
               return client.DeleteJob(name);
             });
           });
}

}  // namespace berth
