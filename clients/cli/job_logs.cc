// berth job logs NAME: prints the output of one task unchanged, or of several in lines with their
// names.
#include "clients/cli/job_logs.h"

#include <fnmatch.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/by_name.h"
#include "clients/cli/log_merge.h"
#include "clients/cli/resource_names.h"
#include "support/number_check.h"

namespace berth {
namespace {

using JobStub = v1::JobService::StubInterface;

struct LogArguments {
  std::string job;
  Names tasks;  // or patterns
  v1::ReadLogsRequest request;
  std::string stream;
  bool prefix = false;
  bool timestamps = false;
};

bool IsOneName(const Names& tasks) {
  return tasks.size() == 1 && tasks[0].find_first_of("*?[") == std::string::npos;
}

// The selected tasks, and how many of them have not started.
struct Chosen {
  Names names;
  size_t not_started = 0;
  size_t longest = 0;  // name
};

absl::StatusOr<Chosen> Choose(Session& session, const LogArguments& arguments) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  Chosen chosen;
  const auto wanted = [&](const std::string& name) {
    const auto fits = [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
    };
    return arguments.tasks.empty() ||
           std::any_of(arguments.tasks.begin(), arguments.tasks.end(), fits);
  };
  v1::ListTasksRequest request;
  request.set_job(arguments.job);
  const absl::Status status = (*client)->List<JobStub, v1::ListTasksRequest, v1::ListTasksResponse>(
      &JobStub::ListTasks, request, [&](const v1::ListTasksResponse& page) {
        for (const v1::Task& task : page.tasks()) {
          const std::string name = NameOfTask(task);
          if (!wanted(name)) continue;
          if (task.attempt() == 0) ++chosen.not_started;
          if (task.attempt() > 0) chosen.names.push_back(name);
          chosen.longest = std::max(chosen.longest, name.size());
        }
        return true;
      });
  if (!status.ok()) return status;
  return chosen;
}

ExitCode PrintOne(Session& session, const v1::ReadLogsRequest& request) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return session.Finish(client.status());
  return session.Finish((*client)->ReadLogs(request, [&](const v1::ReadLogsResponse& answer) {
    session.out() << answer.data();
    session.out().flush();
    return session.out().good();  // false: the reader is gone
  }));
}

// "[worker-0]  ", on a terminal in a color for each task.
std::string Prefix(const Session& session, const Chosen& chosen, size_t task) {
  constexpr Color kColors[] = {Color::kBlue, Color::kGreen, Color::kYellow, Color::kGray,
                               Color::kRed};
  const std::string& name = chosen.names[task];
  const std::string blanks(chosen.longest - name.size() + 1, ' ');
  const Word word = {absl::StrCat("[", name, "]"), kColors[task % std::size(kColors)]};
  return Paint(word, session.colors()) + blanks;
}

ExitCode PrintSeveral(Session& session, const LogArguments& arguments, const Chosen& chosen) {
  std::vector<v1::ReadLogsRequest> requests;
  for (const std::string& name : chosen.names) {
    requests.push_back(arguments.request);
    requests.back().set_task(name);
  }
  const auto print = [&](const LogLine& line) {
    std::ostream& out = session.out();
    out << Prefix(session, chosen, line.task);
    if (arguments.timestamps) {
      out << (line.time.has_value()
                  ? absl::FormatTime("%Y-%m-%dT%H:%M:%E1S%Ez ", *line.time, session.io().time_zone)
                  : "- ");
    }
    out << line.text << "\n" << std::flush;
    return out.good();
  };
  const std::vector<absl::Status> statuses = ReadLogsTogether(session, requests, print);
  ExitCode first = ExitCode::kOk;
  for (const absl::Status& status : statuses) {
    const ExitCode code = session.Finish(status);
    if (first == ExitCode::kOk) first = code;
  }
  return first;
}

std::string Wrong(const LogArguments& arguments, const Chosen& chosen) {
  if (arguments.request.follow() && chosen.names.size() > kMaxLogStreams) {
    return absl::StrCat("at most ", kMaxLogStreams, " tasks can be followed at once, not ",
                        chosen.names.size(), ": select some with --task, such as 'worker-[0-9]'");
  }
  return "";
}

ExitCode Logs(Session& session, LogArguments arguments) {
  std::string task;
  SplitTask(&arguments.job, &task);
  if (arguments.tasks.empty() && !task.empty()) arguments.tasks = {task};
  arguments.request.set_job(arguments.job);
  if (!arguments.stream.empty()) {
    arguments.request.set_stream(arguments.stream == "stdout" ? v1::STDOUT : v1::STDERR);
  }
  arguments.request.set_times(arguments.timestamps);
  const bool plain = !arguments.prefix && !arguments.timestamps;
  if (plain && IsOneName(arguments.tasks)) {
    arguments.request.set_task(arguments.tasks[0]);
    return PrintOne(session, arguments.request);
  }
  const absl::StatusOr<Chosen> chosen = Choose(session, arguments);
  if (!chosen.ok()) return session.Finish(chosen.status());
  const size_t all = chosen->names.size() + chosen->not_started;
  if (all == 0 && !arguments.tasks.empty()) {
    session.err() << "berth: no task of job " << arguments.job << " has this name\n";
    return ExitCode::kNotFound;
  }
  // One task, or none has started: the server returns the best error.
  if ((plain && all == 1) || chosen->names.empty()) {
    if (!chosen->names.empty()) arguments.request.set_task(chosen->names[0]);
    return PrintOne(session, arguments.request);
  }
  const std::string wrong = Wrong(arguments, *chosen);
  if (!wrong.empty()) {
    session.err() << "berth: " << wrong << "\n";
    return ExitCode::kUsage;
  }
  if (chosen->not_started > 0) {
    session.Warn(
        absl::StrCat(chosen->not_started, chosen->not_started == 1
                                              ? " task has not started, and has no output"
                                              : " tasks have not started, and have no output"));
  }
  return PrintSeveral(session, arguments, *chosen);
}

}  // namespace

ExitCode FollowOutput(Session& session, const std::string& job) {
  LogArguments arguments;
  arguments.job = job;
  arguments.request.set_follow(true);
  return Logs(session, std::move(arguments));
}

void AddJobLogs(CLI::App& noun, Session& session) {
  auto arguments = std::make_shared<LogArguments>();
  v1::ReadLogsRequest* request = &arguments->request;  // kept by the action
  CLI::App* logs = AddCommand(noun, session, "logs",
                              "print the output of one task, or of all in lines with their names",
                              [arguments](Session& s) { return Logs(s, *arguments); });
  logs->add_option("NAME", arguments->job, "job, or job/JOB/TASK")
      ->required()
      ->transform(JobOrTaskName());
  logs->add_flag_function(
      "--follow,-f", [request](int64_t) { request->set_follow(true); },
      "print new output until the tasks end");
  logs->add_option("--task,-t", arguments->tasks,
                   "GROUP-INDEX, or a pattern; may be repeated; default: all")
      ->allow_extra_args(false)
      ->transform(TaskName());
  logs->add_option_function<int64_t>(
          "--tail", [request](int64_t lines) { request->set_tail_lines(lines); },
          "only the last N lines of each task")
      ->check(WholeNumber<int64_t>(1));
  logs->add_option_function<uint32_t>(
          "--attempt", [request](uint32_t attempt) { request->set_attempt(attempt); },
          "attempt of the task; default: the latest")
      ->check(WholeNumber<uint32_t>(1));
  logs->add_option_function<std::string>(
      "--container,-c", [request](const std::string& name) { request->set_container(name); },
      "container of the tasks; default: their commands");
  logs->add_option("--stream", arguments->stream, "stdout or stderr; default: both")
      ->check(CLI::IsMember({"stdout", "stderr"}));
  logs->add_flag("--prefix", arguments->prefix,
                 "print the task's name before each line, also for a single task");
  logs->add_flag("--timestamps", arguments->timestamps,
                 "print when each line was written, by the clock of its node, within 0.1 s; \"-\" "
                 "if unknown");
}

}  // namespace berth
