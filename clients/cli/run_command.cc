// berth run [-it] -- COMMAND...: submits a job, waits for it, and shows it until it ends.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/cli/apply.h"
#include "clients/cli/attach.h"
#include "clients/cli/command.h"
#include "clients/cli/job_logs.h"
#include "clients/cli/quick_form.h"
#include "clients/cli/run_wait.h"
#include "clients/session/terminal_io.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using Strings = std::vector<std::string>;
using JobStub = v1::JobService::StubInterface;

struct RunArguments {
  bool terminal = false;
  bool input = false;
  bool detach = false;
  std::string idle;
  std::string idle_action;
  std::string detach_keys;
  std::shared_ptr<QuickForm> quick = std::make_shared<QuickForm>();
};

ExitCode RunUsage(Session& session, const std::string& text) {
  session.err() << "berth: " << text << "; see berth run --help\n";
  return ExitCode::kUsage;
}

std::string WrongRun(const Session& session, const RunArguments& arguments,
                     const Strings& command) {
  if (command.empty() && arguments.quick->group.image().empty())
    return "give a command after --, or an image";
  if (arguments.input && !arguments.terminal)
    return "-i needs -t: only a terminal gives a task input";
  if (arguments.terminal && !arguments.detach && !session.io().in_is_terminal)
    return "-t needs a terminal as standard input, or --detach";
  if (arguments.idle.empty() && !arguments.idle_action.empty()) return "--idle-action needs --idle";
  return "";
}

void SetInteractive(const RunArguments& arguments, QuickForm* form) {
  form->group.set_terminal(arguments.terminal);
  if (arguments.idle.empty()) return;
  v1::Interactive* interactive = form->job.mutable_spec()->mutable_interactive();
  ToProto(DurationFrom(arguments.idle), interactive->mutable_idle());
  interactive->set_action(arguments.idle_action == "suspend" ? v1::Interactive::SUSPEND
                          : arguments.idle_action == "pause" ? v1::Interactive::PAUSE
                                                             : v1::Interactive::END);
}

// Returns the name of the job.
absl::StatusOr<std::string> SubmitOne(Session& session, const Manifest& manifest) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return client.status();
  v1::SubmitJobsRequest request;
  *request.add_jobs() = manifest.job;
  const absl::StatusOr<v1::SubmitJobsResponse> response = (*client)->Submit(request);
  if (!response.ok()) return response.status();
  if (response->jobs().empty()) return absl::InternalError("the server submitted no job");
  return response->jobs(0).name();
}

// The exit code of its only task, or of rank 0; without one, how the job ended.
ExitCode CodeOf(Session& session, const v1::Job& job) {
  const absl::StatusOr<v1::Task> task = FindTask(session, job.name(), "");
  const auto code = task.ok() ? TaskExitCode(*task) : std::nullopt;
  if (code.value_or(0) != 0) return static_cast<ExitCode>(*code & 0xff);
  if (job.status().state() == v1::JOB_SUCCEEDED) return ExitCode::kOk;
  session.err() << "berth: job " << job.name() << ": "
                << (job.status().message().empty() ? job.status().cancel_reason()
                                                   : job.status().message())
                << "\n";
  return ExitCode::kJobFailed;
}

ExitCode ShowOnTerminal(Session& session, const RunArguments& arguments, const std::string& name) {
  const RunWait waited = WaitForRun(session, name, 0);
  if (waited.code.has_value()) return *waited.code;
  if (waited.ended.has_value() && waited.attempt == 0) return CodeOf(session, *waited.ended);
  AttachOptions options;
  options.job = name;
  options.task = waited.task;
  options.detach_keys = arguments.detach_keys;
  options.started = true;
  return AttachToTask(session, options);
}

// One that was too short to be followed; its node may have removed the output already.
void PrintAttempt(Session& session, const std::string& job, const std::string& task,
                  uint32_t attempt) {
  const absl::StatusOr<Client*> client = session.client();
  if (!client.ok()) return;
  v1::ReadLogsRequest request;
  request.set_job(job);
  request.set_task(task);
  request.set_attempt(attempt);
  const auto print = [&session](const v1::ReadLogsResponse& answer) {
    session.out() << answer.data() << std::flush;
    return session.out().good();
  };
  if (const absl::Status status = (*client)->ReadLogs(request, print); !status.ok())
    session.Warn(absl::StrCat("attempt ", attempt, ": ", status.message()));
}

// A job that restarts has several attempts.
ExitCode ShowOutput(Session& session, const std::string& name) {
  uint32_t attempt = 0;
  for (;;) {
    const RunWait waited = WaitForRun(session, name, attempt);
    if (waited.code.has_value()) return *waited.code;
    if (waited.attempt > attempt) {
      for (uint32_t missed = attempt + 1; waited.alone && missed < waited.attempt; ++missed)
        PrintAttempt(session, name, waited.task, missed);
      EndOnInterrupt(
          absl::StrCat("\nberth: the job goes on; end it by berth job cancel ", name, "\n"));
      const ExitCode code = FollowOutput(session, name);
      if (code != ExitCode::kOk) return code;
    } else if (waited.ended.has_value()) {
      return CodeOf(session, *waited.ended);
    }
    attempt = std::max(attempt, waited.attempt);
  }
}

ExitCode RunJob(Session& session, const RunArguments& arguments, const Strings& command) {
  const std::string wrong = WrongRun(session, arguments, command);
  if (!wrong.empty()) return RunUsage(session, wrong);
  SetInteractive(arguments, arguments.quick.get());
  const auto jobs = QuickJobs(*arguments.quick, command, session.Now(), session.io().time_zone);
  if (!jobs.ok()) return RunUsage(session, std::string(jobs.status().message()));
  const absl::StatusOr<std::string> name = SubmitOne(session, jobs->front());
  if (!name.ok()) return FinishSubmit(session, name.status(), {&jobs->front()});
  if (arguments.detach) {
    session.out() << "job/" << *name << " submitted\n";
    return ExitCode::kOk;
  }
  session.err() << "berth: job/" << *name << " submitted\n" << std::flush;
  return arguments.terminal ? ShowOnTerminal(session, arguments, *name)
                            : ShowOutput(session, *name);
}

}  // namespace

void AddRunCommand(CLI::App& app, Session& session, const Strings& command) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* run =
      AddCommand(app, session, "run",
                 "submit a job and show its output or its terminal; exits with its exit code",
                 [arguments, command](Session& s) { return RunJob(s, *arguments, command); });
  run->add_flag("--tty,-t", arguments->terminal,
                "the tasks get terminals, and this one is connected with that of rank 0");
  run->add_flag("--interactive,-i", arguments->input,
                "as docker's; needs -t, which passes input on");
  run->add_flag("--detach", arguments->detach, "only submit it; berth attach connects later");
  run->add_option("--idle", arguments->idle,
                  "end the job once nobody and nothing has used it for this time, such as 30m")
      ->check(kIsDuration);
  run->add_option("--idle-action", arguments->idle_action, "end (default), suspend or pause")
      ->check(CLI::IsMember({"end", "suspend", "pause"}));
  AddDetachKeys(*run, &arguments->detach_keys);
  AddQuickOptions(*run, arguments->quick, QuickCommand::kRun);
}

}  // namespace berth
