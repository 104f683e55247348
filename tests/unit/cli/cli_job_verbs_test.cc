// Verbs of jobs: wait for several jobs, describe for programs, update, logs of several tasks, and
// formats that a verb does not support.
#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/log_merge.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::WatchResponse Change(const std::string& job, v1::JobState state) {
  v1::WatchResponse response;
  v1::ChangeEvent& event = *response.add_events();
  event.set_type(v1::ChangeEvent::JOB_CHANGED);
  event.set_job(job);
  event.set_job_state(state);
  return response;
}

// Jobs a and b. Each is requested before the watch starts, after it started, and once it ended.
void TwoRunningJobs(Cli& cli) {
  for (const char* name : {"a", "b", "a", "b"})
    cli.script.Answer("GetJob", MakeJob(name, v1::JOB_RUNNING));
  cli.script.Answer("GetJob", MakeJob("x", v1::JOB_RUNNING));
}

TEST_CASE("job wait a b waits for both, and fails if one of them fails") {
  Cli cli;
  TwoRunningJobs(cli);
  cli.script.Stream<v1::WatchResponse>(
      "Watch", {v1::WatchResponse(), Change("b", v1::JOB_FAILED), Change("a", v1::JOB_SUCCEEDED)},
      absl::OkStatus());
  CHECK(cli.Run({"job", "wait", "a", "job/b"}) == 10);
  CHECK(cli.out() == "job/b Failed\njob/a Succeeded\n");
  CHECK(cli.script.Requests<v1::WatchRequest>("Watch")[0].jobs_size() == 2);
}

TEST_CASE("job wait --any ends with the first") {
  Cli cli;
  TwoRunningJobs(cli);
  cli.script.Stream<v1::WatchResponse>("Watch",
                                       {v1::WatchResponse(), Change("b", v1::JOB_SUCCEEDED)},
                                       absl::UnavailableError("never reached"));
  CHECK(cli.Run({"job", "wait", "a", "b", "--any"}) == 0);
  CHECK(cli.out() == "job/b Succeeded\n");
}

TEST_CASE("job wait names the jobs that have not ended in time") {
  Cli cli;
  TwoRunningJobs(cli);
  cli.script.Stream<v1::WatchResponse>(
      "Watch", {v1::WatchResponse(), Change("b", v1::JOB_SUCCEEDED)}, absl::UnavailableError("x"));
  CHECK(cli.Run({"job", "wait", "a", "b", "--timeout", "3s"}) == 11);
  CHECK(cli.out() == "job/b Succeeded\n");
  CHECK(cli.err() == "berth: job a has not ended: Running\n");
}

v1::ListTasksResponse Tasks(int count, uint32_t attempt = 1) {
  v1::ListTasksResponse tasks;
  for (int i = 0; i < count; ++i) {
    v1::Task& task = *tasks.add_tasks();
    task.set_job("a");
    task.set_group("w");
    task.set_index(i);
    task.set_attempt(attempt);
  }
  return tasks;
}

TEST_CASE("describe -o json is the job with its tasks") {
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_RUNNING));
  cli.script.Answer("ListTasks", Tasks(2));
  CHECK(cli.Run({"job", "describe", "a", "-o", "json"}) == 0);
  CHECK(cli.out().rfind("{\n \"name\": \"a\",\n", 0) == 0);
  CHECK_THAT(cli.out(), Contains(" \"tasks\": [\n  {\n   \"job\": \"a\",\n   \"group\": \"w\",\n"
                                 "   \"index\": 0,\n   \"rank\": 0,\n"));
  CHECK(cli.out().substr(cli.out().size() - 9) == "  }\n ]\n}\n");
  CHECK(cli.Run({"job", "describe", "a", "b", "-o", "json"}) == 0);
  CHECK(cli.out().rfind("[\n{\n", 0) == 0);
  CHECK(cli.out().substr(cli.out().size() - 4) == "}\n]\n");
  CHECK(cli.Run({"job", "describe", "a", "-o", "yaml"}) == 0);
  CHECK_THAT(cli.out(), Contains("name: a\n") && Contains("\ntasks:\n- job: a\n"));
  CHECK(cli.Run({"job", "describe", "a", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/a\n");
}

TEST_CASE("a format that a verb does not support is refused by name") {
  Cli cli;
  CHECK(cli.RunBare({"job", "logs", "a", "-o", "json"}) == 2);
  CHECK(cli.err() == "berth: job logs does not support -o json\n");
  CHECK(cli.RunBare({"job", "delete", "a", "-o", "yaml"}) == 2);
  CHECK(cli.err() == "berth: job delete does not support -o yaml; use table, name\n");
  CHECK(cli.RunBare({"version", "--client", "-o", "json"}) == 2);
  CHECK(cli.RunBare({"job", "history", "-o", "table"}) == 2);
  cli.script.Answer("DeleteJob", v1::DeleteJobResponse());
  CHECK(cli.Run({"job", "delete", "a", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/a\n");
}

TEST_CASE("job update changes walltime, priority and labels") {
  Cli cli;
  v1::Job job = MakeJob("a", v1::JOB_RUNNING);
  (*job.mutable_spec()->mutable_labels())["team"] = "x";
  cli.script.Answer("GetJob", job);
  cli.script.Answer("UpdateJob", job);
  CHECK(cli.Run({"job", "update", "job/a", "--walltime", "5h", "--priority", "0", "--label",
                 "k=v"}) == 0);
  const auto all = cli.script.Requests<v1::UpdateJobRequest>("UpdateJob")[0];
  CHECK(all.job().spec().walltime().seconds() == 5 * 3600);
  CHECK(all.job().spec().labels_size() == 2);
  CHECK(all.update_mask().paths_size() == 3);
  CHECK(cli.Run({"job", "update", "a", "--walltime", "none"}) == 0);
  const auto none = cli.script.Requests<v1::UpdateJobRequest>("UpdateJob")[1];
  CHECK_FALSE(none.job().spec().has_walltime());
  CHECK(none.update_mask().paths(0) == "spec.walltime");
  CHECK(cli.Run({"job", "update", "a"}) == 2);
  CHECK_THAT(cli.err(), Contains("give --priority, --walltime or --label"));
  CHECK(cli.RunBare({"job", "update", "a", "--walltime", "long"}) == 2);
}

v1::ReadLogsResponse Output(const std::string& data, v1::LogStream stream = v1::STDOUT) {
  v1::ReadLogsResponse response;
  response.set_data(data);
  response.set_stream(stream);
  return response;
}

TEST_CASE("job logs of several tasks: whole lines with their names") {
  Cli cli;
  cli.script.Answer("ListTasks", Tasks(11));
  cli.script.Stream<v1::ReadLogsResponse>(
      "ReadLogs", {Output("on"), Output("oops\n", v1::STDERR), Output("e\ntwo")}, absl::OkStatus());
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {Output("1\n")}, absl::OkStatus());
  CHECK(cli.Run({"job", "logs", "a", "--tail", "7"}) == 0);
  CHECK(cli.out().rfind("[w-0]  oops\n[w-0]  one\n[w-0]  two\n[w-1]  1\n", 0) == 0);
  CHECK_THAT(cli.out(), Contains("\n[w-10] 1\n"));
  const auto requests = cli.script.Requests<v1::ReadLogsRequest>("ReadLogs");
  REQUIRE(requests.size() == 11);
  CHECK(requests[10].task() == "w-10");
  CHECK(requests[10].tail_lines() == 7);
  cli.terminal = true;
  CHECK(cli.Run({"job", "logs", "a", "--task", "w-[2]"}) == 0);
  CHECK(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs").back().task() == "w-2");
  CHECK(cli.Run({"job", "logs", "a", "--task", "w-[12]"}) == 0);
  CHECK(cli.out() == "\033[34m[w-1]\033[0m 1\n\033[32m[w-2]\033[0m 1\n");
}

TEST_CASE("job logs of one task are unchanged, unless a prefix is requested") {
  Cli cli;
  cli.script.Answer("ListTasks", Tasks(1));
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {Output("no newline")}, absl::OkStatus());
  CHECK(cli.Run({"job", "logs", "a"}) == 0);
  CHECK(cli.out() == "no newline");
  CHECK(cli.Run({"job", "logs", "a", "--prefix"}) == 0);
  CHECK(cli.out() == "[w-0] no newline\n");
  CHECK(cli.Run({"job", "logs", "job/a/w-0"}) == 0);
  CHECK(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs").back().task() == "w-0");
  CHECK(cli.Run({"job", "logs", "a", "--task", "job/a/w-0"}) == 0);
  CHECK(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs").back().task() == "w-0");
}

TEST_CASE("job logs --timestamps: a line has the time of its first byte") {
  const bool follow = GENERATE(false, true);
  Cli cli;
  cli.script.Answer("ListTasks", Tasks(1));
  v1::ReadLogsResponse first = Output("x\ny"), second = Output("z\nw\n"), third = Output("?\n");
  first.mutable_time()->set_seconds(1795003600);
  second.mutable_time()->set_seconds(1795003601);
  second.mutable_time()->set_nanos(500'000'000);
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {first, second, third}, absl::OkStatus());
  std::vector<std::string> words = {"job", "logs", "a", "--timestamps"};
  if (follow) words.push_back("-f");
  CHECK(cli.Run(words) == 0);
  CHECK(cli.out() ==
        "[w-0] 2026-11-18T12:06:40.0+00:00 x\n[w-0] 2026-11-18T12:06:40.0+00:00 yz\n"
        "[w-0] 2026-11-18T12:06:41.5+00:00 w\n[w-0] - ?\n");
  CHECK(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs").back().times());
}

TEST_CASE("job logs -f of several tasks at once") {
  Cli cli;
  cli.script.Answer("ListTasks", Tasks(3));
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {Output("x\ny\n")}, absl::OkStatus());
  CHECK(cli.Run({"job", "logs", "a", "-f"}) == 0);
  std::vector<std::string> lines = absl::StrSplit(cli.out(), '\n');
  std::sort(lines.begin(), lines.end());
  CHECK(lines == std::vector<std::string>{"", "[w-0] x", "[w-0] y", "[w-1] x", "[w-1] y", "[w-2] x",
                                          "[w-2] y"});
  CHECK_FALSE(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs").back().times());
  Cli failing;
  failing.script.Answer("ListTasks", Tasks(2));
  failing.script.Stream<v1::ReadLogsResponse>("ReadLogs", {Output("x\n")},
                                              absl::NotFoundError("this node has no output"));
  CHECK(failing.Run({"job", "logs", "a", "-f"}) == 3);
  CHECK_THAT(failing.out(), Contains("[w-0] x\n") && Contains("[w-1] x\n"));
}

TEST_CASE("job logs: the number of tasks, and tasks without output") {
  Cli cli;
  cli.script.Answer("ListTasks", Tasks(static_cast<int>(kMaxLogStreams) + 1));
  CHECK(cli.Run({"job", "logs", "a", "-f"}) == 2);
  CHECK_THAT(cli.err(), Contains(absl::StrCat("at most ", kMaxLogStreams, " tasks")));
  Cli waiting;
  v1::ListTasksResponse tasks = Tasks(2);
  tasks.add_tasks()->set_group("late");
  waiting.script.Answer("ListTasks", tasks);
  waiting.script.Stream<v1::ReadLogsResponse>("ReadLogs", {Output("x\n")}, absl::OkStatus());
  CHECK(waiting.Run({"job", "logs", "a"}) == 0);
  CHECK(waiting.out() == "[w-0]    x\n[w-1]    x\n");
  CHECK_THAT(waiting.err(), Contains("1 task has not started, and has no output"));
  CHECK(waiting.Run({"job", "logs", "a", "--task", "x-*"}) == 3);
}

TEST_CASE("job exec equals exec") {
  Cli cli;
  CHECK(cli.RunBare({"job", "exec", "job/a"}) == 2);
  CHECK(cli.err() == "berth: exec needs a command after --\n");
  CHECK(cli.RunBare({"job", "list", "--", "x"}) == 2);
}

}  // namespace
}  // namespace berth
