// Commands that read and commands that change, as whole commands.
#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

v1::ListJobsResponse TwoJobs() {
  v1::ListJobsResponse list;
  *list.add_jobs() = MakeJob("llama", v1::JOB_RUNNING);
  v1::Job& waiting = *list.add_jobs();
  waiting = MakeJob("bert", v1::JOB_PENDING, 45);
  v1::WaitReason& reason = *waiting.mutable_status()->add_reasons();
  reason.set_code(v1::WaitReason::INSUFFICIENT_RESOURCES);
  reason.set_resource("gpu");
  reason.set_needed(64);
  reason.set_free(32);
  return list;
}

TEST_CASE("job list in every format") {
  Cli cli;
  cli.script.Answer("ListJobs", TwoJobs());
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(cli.out() ==
        "NAME   QUEUE     STATE    TASKS    AGE  RAN  REASON\n"
        "llama  research  Running    4/4  3m12s    -  -\n"
        "bert   research  Pending    0/4    45s    -  needs 64 gpu, 32 free\n");
  CHECK(cli.Run({"job", "list", "--no-headers"}) == 0);
  CHECK(cli.out() ==
        "llama  research  Running    4/4  3m12s    -  -\n"
        "bert   research  Pending    0/4    45s    -  needs 64 gpu, 32 free\n");
  CHECK(cli.Run({"job", "list", "-o", "wide"}) == 0);
  CHECK(
      cli.out().substr(0, cli.out().find('\n')) ==
      "NAME   QUEUE     STATE    TASKS  PRIORITY  CLASS    AGE  RAN  UID  STARTS  RETRIES  LABELS  "
      "REASON");
  CHECK(cli.Run({"-o", "name", "job", "list"}) == 0);
  CHECK(cli.out() == "job/llama\njob/bert\n");
  CHECK(cli.Run({"job", "list", "-o", "json"}) == 0);
  CHECK(cli.out().substr(0, 5) == "[\n{\n ");
  CHECK(cli.out().find("\"name\": \"llama\"") != std::string::npos);
  CHECK(cli.out().substr(cli.out().size() - 4) == "}\n]\n");
  CHECK(cli.Run({"job", "list", "-o", "yaml"}) == 0);
  CHECK(cli.out().find("---\napiVersion: berth/v1\nkind: Job\nname: bert\n") != std::string::npos);
}

TEST_CASE("job list counts running and succeeded tasks as healthy") {
  Cli cli;
  v1::ListJobsResponse list;
  const auto add = [&](const std::string& name, v1::JobState state,
                       const std::map<std::string, int32_t>& tasks) {
    v1::Job& job = *list.add_jobs();
    job = MakeJob(name, state);
    auto& counts = *job.mutable_status()->mutable_groups(0)->mutable_tasks();
    counts.clear();
    counts.insert(tasks.begin(), tasks.end());
  };
  add("done", v1::JOB_SUCCEEDED, {{"SUCCEEDED", 4}});
  add("half", v1::JOB_RUNNING, {{"SUCCEEDED", 2}, {"RUNNING", 1}, {"FAILED", 1}});
  add("broken", v1::JOB_FAILED, {{"SUCCEEDED", 1}, {"FAILED", 3}});
  add("never", v1::JOB_CANCELLED, {{"PENDING", 4}});
  cli.script.Answer("ListJobs", list);
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(cli.out() ==
        "NAME    QUEUE     STATE      TASKS    AGE  RAN  REASON\n"
        "done    research  Succeeded    4/4  3m12s    -  -\n"
        "half    research  Running      3/4  3m12s    -  -\n"
        "broken  research  Failed       1/4  3m12s    -  -\n"
        "never   research  Cancelled    0/4  3m12s    -  -\n");
}

TEST_CASE("an empty list") {
  Cli cli;
  cli.script.Answer("ListJobs", v1::ListJobsResponse());
  CHECK(cli.Run({"job", "list"}) == 0);
  CHECK(cli.out() == "");
  CHECK(cli.err() == "no active jobs; --all also shows jobs that have ended\n");
  CHECK(cli.Run({"job", "list", "-o", "json"}) == 0);
  CHECK(cli.out() == "[]\n");
}

TEST_CASE("filters of job list reach the server") {
  Cli cli;
  cli.script.Answer("ListJobs", v1::ListJobsResponse());
  CHECK(cli.Run({"job", "list", "-q", "a", "--state", "running,Pending", "-l", "x=1", "-a"}) == 0);
  const v1::JobFilter filter = cli.script.Requests<v1::ListJobsRequest>("ListJobs")[0].filter();
  CHECK(filter.queue() == "a");
  CHECK(filter.states_size() == 2);
  CHECK(filter.states(0) == v1::JOB_RUNNING);
  CHECK(filter.labels().at("x") == "1");
  CHECK_FALSE(filter.active_only());  // the states imply it
  CHECK(cli.Run({"job", "list", "--state", "runing"}) == 2);
  CHECK(cli.err().find("unknown state \"runing\"; known: Pending, Held") != std::string::npos);
}

TEST_CASE("colors only on a terminal, unless NO_COLOR or --color decide otherwise") {
  Cli cli;
  cli.script.Answer("ListJobs", TwoJobs());
  const auto colored = [&](std::vector<std::string> arguments) {
    CHECK(cli.Run(arguments) == 0);
    return cli.out().find('\033') != std::string::npos;
  };
  CHECK_FALSE(colored({"job", "list"}));
  CHECK(colored({"job", "list", "--color", "always"}));
  cli.terminal = true;
  CHECK(colored({"job", "list"}));
  CHECK_FALSE(colored({"job", "list", "--color", "never"}));
  cli.no_color = true;
  CHECK_FALSE(colored({"job", "list"}));
}

TEST_CASE("exit codes show what went wrong") {
  struct Case {
    absl::Status status;
    int code;
  };
  const Case cases[] = {
      {absl::OkStatus(), 0},
      {absl::FailedPreconditionError("no"), 1},
      {absl::AlreadyExistsError("no"), 1},
      {absl::AbortedError("no"), 1},
      {absl::PermissionDeniedError("no"), 1},
      {absl::NotFoundError("no"), 3},
      {absl::InvalidArgumentError("no"), 4},
      {absl::UnavailableError("no"), 5},
      {absl::ResourceExhaustedError("no"), 5},
      {absl::UnimplementedError("no"), 6},
  };
  for (const Case& c : cases) {
    Cli cli;
    cli.script.Answer("GetJob", c.status);
    INFO(c.status);
    CHECK(cli.Run({"job", "get", "x", "--request-timeout", "1s"}) == c.code);
    if (!c.status.ok()) CHECK(cli.err().substr(0, 10) == "berth: no\n");
  }
}

TEST_CASE("invalid command lines are usage errors") {
  Cli cli;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"jobs"},
                                             {"job"},
                                             {"job", "get"},
                                             {"job", "list", "--bogus"},
                                             {"job", "list", "-o", "xml"},
                                             {"submit"},
                                             {"submit", "--gpus", "0", "--", "x"},
                                             {"submit", "--gpu-share", "1.5", "--", "x"},
                                             {"submit", "--walltime", "5", "--", "x"},
                                             {"job", "list", "--", "x"},
                                             {"submit", "f.yaml", "--name", "x"},
                                             {"job", "wait", "x", "--timeout", "soon"},
                                             {"job", "update", "x"}}) {
    INFO((arguments.empty() ? "" : arguments.back()));
    CHECK(cli.Run(arguments) == 2);
    CHECK_FALSE(cli.err().empty());
  }
  CHECK(cli.Run({"job", "lst"}) == 2);
  CHECK(cli.err() == "berth: unknown command \"lst\"; did you mean \"list\"?\n");
  CHECK(cli.Run({"jbo", "list"}) == 2);
  CHECK(cli.err() == "berth: unknown command \"jbo\"; did you mean \"job\"?\n");
  CHECK(cli.Run({"--help"}) == 0);
  CHECK(cli.out().find("Exit codes: 0 success") != std::string::npos);
  CHECK(cli.Run({"job", "logs", "--help"}) == 0);
  CHECK(cli.Run({"--version"}) == 0);
}

TEST_CASE("an absent server is retried for the given time, then reported") {
  Cli cli;
  CHECK(cli.RunBare({"--server", "127.0.0.1:1", "job", "list", "--request-timeout", "500ms"}) == 5);
  CHECK(cli.err().find("is berthd running at 127.0.0.1:1?") != std::string::npos);
  CHECK_FALSE(cli.world.sleeps.empty());
}

TEST_CASE("a restart of the server goes unnoticed") {
  Cli cli;
  cli.script.Answer("ListJobs", absl::UnavailableError("restarting"));
  cli.script.Answer("ListJobs", TwoJobs());
  CHECK(cli.Run({"job", "list", "-o", "name"}) == 0);
  CHECK(cli.out() == "job/llama\njob/bert\n");
  CHECK(cli.world.sleeps.size() == 1);
}

TEST_CASE("several names: each result is reported, the first error sets the exit code") {
  Cli cli;
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_CANCELLED));
  cli.script.Answer("CancelJob", absl::NotFoundError("job \"b\" not found"));
  cli.script.Answer("CancelJob", MakeJob("c", v1::JOB_CANCELLED));
  CHECK(cli.Run({"job", "cancel", "a", "b", "c", "--reason", "wrong data"}) == 3);
  CHECK(cli.out() == "job/a cancelled\njob/c cancelled\n");
  CHECK(cli.err() == "berth: job \"b\" not found\n");
  CHECK(cli.script.Requests<v1::CancelJobRequest>("CancelJob")[2].reason() == "wrong data");
}

TEST_CASE("a cancel reports what still runs, and --wait waits for it") {
  Cli cli;
  cli.script.Answer("CancelJob", MakeJob("a", v1::JOB_RUNNING));
  CHECK(cli.Run({"job", "cancel", "a", "--force"}) == 0);
  CHECK(cli.out() == "job/a cancelling: 4 tasks are being stopped\n");
  CHECK(cli.script.Requests<v1::CancelJobRequest>("CancelJob")[0].force());
  v1::WatchResponse ended;
  ended.set_revision(8);
  v1::ChangeEvent& event = *ended.add_events();
  event.set_type(v1::ChangeEvent::JOB_CHANGED);
  event.set_job("a");
  event.set_job_state(v1::JOB_CANCELLED);
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_CANCELLED));
  cli.script.Stream<v1::WatchResponse>("Watch", {v1::WatchResponse(), ended}, absl::OkStatus());
  CHECK(cli.Run({"job", "cancel", "a", "--wait"}) == 0);
  CHECK(cli.out() == "job/a cancelling: 4 tasks are being stopped\njob/a Cancelled\n");
  CHECK_FALSE(cli.script.Requests<v1::CancelJobRequest>("CancelJob")[1].force());
}

TEST_CASE("a suspend reports what still runs") {
  Cli cli;
  cli.script.Answer("SuspendJob", MakeJob("a", v1::JOB_RUNNING));
  CHECK(cli.Run({"job", "suspend", "a"}) == 0);
  CHECK(cli.out() == "job/a suspending: 4 tasks are being stopped\n");
}

TEST_CASE("a requeue says what it does, and that a suspended job has nothing to requeue") {
  Cli cli;
  cli.script.Answer("RequeueJob", MakeJob("a", v1::JOB_SUSPENDED));
  cli.script.Answer("RequeueJob", MakeJob("b", v1::JOB_PENDING));
  cli.script.Answer("RequeueJob", MakeJob("c", v1::JOB_RUNNING));
  cli.script.Answer("RequeueJob", absl::FailedPreconditionError("job \"d\" has ended"));
  CHECK(cli.Run({"job", "requeue", "a", "b", "c", "d"}) == 1);
  CHECK(cli.out() ==
        "job/a is suspended: there is nothing to requeue\njob/b waits in the queue\n"
        "job/c requeuing: 4 tasks are being stopped\n");
  CHECK(cli.err() == "berth: job \"d\" has ended\n");
  CHECK(cli.script.Requests<v1::RequeueJobRequest>("RequeueJob")[2].name() == "c");
}

TEST_CASE("verbs of jobs") {
  Cli cli;
  cli.script.Answer("SuspendJob", MakeJob("a", v1::JOB_SUSPENDED));
  cli.script.Answer("ResumeJob", MakeJob("a", v1::JOB_PENDING));
  cli.script.Answer("DeleteJob", v1::DeleteJobResponse());
  cli.script.Answer("UpdateJob", MakeJob("a", v1::JOB_PENDING));
  CHECK(cli.Run({"job", "suspend", "a"}) == 0);
  CHECK(cli.out() == "job/a suspended\n");
  CHECK(cli.Run({"job", "resume", "a"}) == 0);
  CHECK(cli.Run({"job", "delete", "a"}) == 0);
  CHECK(cli.out() == "job/a deleted\n");
  CHECK(cli.Run({"job", "update", "a", "--priority", "5"}) == 0);
  const auto update = cli.script.Requests<v1::UpdateJobRequest>("UpdateJob")[0];
  CHECK(update.job().spec().priority() == 5);
  CHECK(update.update_mask().paths(0) == "spec.priority");
}

TEST_CASE("describe shows the job and its tasks") {
  Cli cli;
  v1::Job job = TwoJobs().jobs(1);
  cli.script.Answer("GetJob", job);
  v1::ListTasksResponse tasks;
  v1::Task& task = *tasks.add_tasks();
  task.set_group("worker");
  task.set_rank(0);
  task.set_state(v1::TASK_FAILED);
  task.set_node("n1");
  task.set_attempt(1);
  task.set_exit_code(137);
  cli.script.Answer("ListTasks", tasks);
  CHECK(cli.Run({"job", "describe", "bert"}) == 0);
  CHECK(cli.out() == R"(Name:       bert
Uid:        7
Queue:      research
State:      Pending
Priority:   0
Starts:     0
Retries:    0 of 0
Submitted:  2026-11-18 12:05:55 (45s ago)
Reasons:
  needs 64 gpu, 32 free
Groups:
  GROUP   TASKS  MIN  EACH NEEDS  STATES     COMMAND
  worker      4    4  -           RUNNING=0  train
Tasks:
  TASK      RANK  STATE   NODE  ATTEMPT  AGE  EXIT  MESSAGE
  worker-0     0  Failed  n1          1    -   137  -
)");
}

v1::Task TaskIn(v1::TaskState state, int32_t rank) {
  v1::Task task;
  task.set_group("worker");
  task.set_index(rank);
  task.set_rank(rank);
  task.set_state(state);
  return task;
}

// The ranks in the section Tasks of a description.
std::vector<int> ShownRanks(const std::string& page) {
  std::vector<int> ranks;
  std::istringstream lines(page.substr(page.find("\nTasks:\n")));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  worker-", 0) == 0) ranks.push_back(std::stoi(line.substr(9)));
  }
  return ranks;
}

TEST_CASE("describe shows the most relevant tasks, and how to list the others") {
  const std::vector<int> first_twenty = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                         10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_RUNNING));
  v1::ListTasksResponse tasks;
  for (int rank = 0; rank < 20; ++rank) *tasks.add_tasks() = TaskIn(v1::TASK_RUNNING, rank);
  cli.script.Answer("ListTasks", tasks);
  CHECK(cli.Run({"job", "describe", "a"}) == 0);
  CHECK(ShownRanks(cli.out()) == first_twenty);
  CHECK(cli.out().find("more") == std::string::npos);

  tasks.add_tasks()->CopyFrom(TaskIn(v1::TASK_RUNNING, 20));
  cli.script.Answer("ListTasks", tasks);
  CHECK(cli.Run({"job", "describe", "a"}) == 0);  // the previous answer was for the first call
  CHECK(cli.Run({"job", "describe", "a"}) == 0);
  CHECK(ShownRanks(cli.out()) == first_twenty);
  CHECK(cli.out().find("\n  ... and 1 more: berth job tasks a\n") != std::string::npos);

  // 3000 tasks over two pages: failed and pending ones are at the end.
  Cli large;
  large.script.Answer("GetJob", MakeJob("a", v1::JOB_RUNNING));
  v1::ListTasksResponse pages[2];
  for (int rank = 0; rank < 3000; ++rank) {
    const v1::TaskState state = rank < 1000    ? v1::TASK_SUCCEEDED
                                : rank < 2988  ? v1::TASK_RUNNING
                                : rank == 2990 ? v1::TASK_LOST
                                : rank < 2996  ? v1::TASK_PENDING
                                               : v1::TASK_FAILED;
    *pages[rank / 2000].add_tasks() = TaskIn(state, rank);
  }
  pages[0].set_next_page_token("t");
  for (const auto& page : pages) large.script.Answer("ListTasks", page);
  CHECK(large.Run({"job", "describe", "a"}) == 0);
  CHECK(ShownRanks(large.out()) == std::vector<int>{0,    1,    2,    3,    4,    1000, 1001,
                                                    1002, 1003, 1004, 2988, 2989, 2990, 2991,
                                                    2992, 2993, 2996, 2997, 2998, 2999});
  CHECK(large.out().find("\n  ... and 2980 more: berth job tasks a\n") != std::string::npos);
}

TEST_CASE("logs are written as they arrive") {
  Cli cli;
  v1::ReadLogsResponse first;
  first.set_data("one\n");
  v1::ReadLogsResponse second;
  second.set_data(std::string("\0two", 4));
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {first, second}, absl::OkStatus());
  CHECK(cli.Run({"job", "logs", "-f", "a", "--task", "w-1", "--tail", "5", "--stream", "stderr"}) ==
        0);
  CHECK(cli.out() == std::string("one\n\0two", 8));
  const auto request = cli.script.Requests<v1::ReadLogsRequest>("ReadLogs")[0];
  CHECK(request.follow());
  CHECK(request.task() == "w-1");
  CHECK(request.tail_lines() == 5);
  CHECK(request.stream() == v1::STDERR);
}

TEST_CASE("logs continue across a restart of the server, without loss or repetition") {
  Cli cli;
  const auto answer = [](int64_t next, const std::string& data) {
    v1::ReadLogsResponse response;
    response.set_data(data);
    response.set_attempt(1);
    response.mutable_next()->set_stdout_bytes(next);
    return response;
  };
  v1::ListTasksResponse one_task;
  one_task.add_tasks()->set_group("w");
  one_task.mutable_tasks(0)->set_attempt(1);
  cli.script.Answer("ListTasks", one_task);
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {answer(0, ""), answer(4, "one\n")},
                                          absl::UnavailableError("the server is stopping"));
  cli.script.Stream<v1::ReadLogsResponse>("ReadLogs", {answer(4, ""), answer(8, "two\n")},
                                          absl::OkStatus());
  CHECK(cli.Run({"job", "logs", "-f", "a"}) == 0);
  CHECK(cli.out() == "one\ntwo\n");
  CHECK(cli.err().empty());
  CHECK(cli.script.Requests<v1::ReadLogsRequest>("ReadLogs")[1].from().stdout_bytes() == 4);
}

v1::WatchResponse JobChange(uint64_t revision, v1::JobState state) {
  v1::WatchResponse response;
  response.set_revision(revision);
  v1::ChangeEvent& event = *response.add_events();
  event.set_type(v1::ChangeEvent::JOB_CHANGED);
  event.set_job("a");
  event.set_job_state(state);
  return response;
}
v1::WatchResponse Begun(uint64_t revision) {
  v1::WatchResponse response;
  response.set_revision(revision);
  return response;
}

TEST_CASE("job wait ends with the job, across a broken watch") {
  for (const auto& end : {std::make_pair(v1::JOB_SUCCEEDED, 0), std::make_pair(v1::JOB_FAILED, 10),
                          std::make_pair(v1::JOB_CANCELLED, 10)}) {
    Cli cli;
    cli.script.Answer("GetJob", MakeJob("a", v1::JOB_PENDING));
    cli.script.Stream<v1::WatchResponse>("Watch", {Begun(5), JobChange(6, v1::JOB_RUNNING)},
                                         absl::UnavailableError("x"));
    cli.script.Stream<v1::WatchResponse>("Watch", {JobChange(7, end.first)}, absl::OkStatus());
    CHECK(cli.Run({"job", "wait", "a"}) == end.second);
    CHECK(cli.script.Requests<v1::WatchRequest>("Watch")[1].from_revision() == 6);
  }
}

TEST_CASE("job wait sees a job that ended before the watch started") {
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_RUNNING));
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_SUCCEEDED));
  cli.script.Stream<v1::WatchResponse>("Watch", {Begun(5)}, absl::OkStatus());
  CHECK(cli.Run({"job", "wait", "a"}) == 0);
  CHECK(cli.out() == "job/a Succeeded\n");
  Cli gone;
  gone.script.Answer("GetJob", absl::NotFoundError("no such job"));
  CHECK(gone.Run({"job", "wait", "a"}) == 3);
}

TEST_CASE("job wait gives up after its timeout") {
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_RUNNING));
  cli.script.Stream<v1::WatchResponse>("Watch", {Begun(5)}, absl::UnavailableError("x"));
  CHECK(cli.Run({"job", "wait", "a", "--timeout", "3s"}) == 11);
  CHECK(cli.err() == "berth: job a has not ended: Running\n");
}

TEST_CASE("job watch prints changes until the job ends") {
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_PENDING));
  cli.script.Stream<v1::WatchResponse>(
      "Watch", {Begun(5), JobChange(6, v1::JOB_RUNNING), JobChange(7, v1::JOB_FAILED)},
      absl::OkStatus());
  CHECK(cli.Run({"job", "watch", "a"}) == 0);
  CHECK(cli.out() == "job/a is Pending\n-  job/a  Running\n-  job/a  Failed\n");
}

TEST_CASE("job watch -o json prints only objects") {
  Cli cli;
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_PENDING));
  cli.script.Stream<v1::WatchResponse>("Watch", {Begun(5), JobChange(7, v1::JOB_FAILED)},
                                       absl::OkStatus());
  CHECK(cli.Run({"job", "watch", "a", "-o", "json"}) == 0);
  const std::string out = cli.out();
  CHECK(out.front() == '{');
  CHECK(std::count(out.begin(), out.end(), '\n') == 1);
}

TEST_CASE("a watched list is printed at every change") {
  Cli cli;
  cli.script.Answer("ListJobs", TwoJobs());
  cli.script.Answer("ListJobs", v1::ListJobsResponse());
  cli.script.Stream<v1::WatchResponse>("Watch", {Begun(5), JobChange(6, v1::JOB_RUNNING)},
                                       absl::OkStatus());
  cli.script.Stream<v1::WatchResponse>("Watch", {Begun(6)}, absl::PermissionDeniedError("enough"));
  CHECK(cli.Run({"job", "list", "--watch", "-o", "name"}) == 1);
  CHECK(cli.out() == "job/llama\njob/bert\n\n");
  CHECK(cli.script.Requests<v1::ListJobsRequest>("ListJobs").size() == 2);
}

TEST_CASE("cluster reload prints the difference") {
  Cli cli;
  v1::ReloadConfigResponse response;
  v1::ConfigChange& change = *response.add_changes();
  change.set_path("scheduling.backfill.mode");
  change.set_before("EASY");
  change.set_after("CONSERVATIVE");
  *response.add_changes() = change;
  response.mutable_changes(1)->set_needs_restart(true);
  cli.script.Answer("ReloadConfig", response);
  CHECK(cli.Run({"cluster", "reload", "--dry-run"}) == 0);
  CHECK(cli.out() ==
        "scheduling.backfill.mode: EASY -> CONSERVATIVE\n"
        "scheduling.backfill.mode: EASY -> CONSERVATIVE (needs a restart)\n");
  CHECK(cli.script.Requests<v1::ReloadConfigRequest>("ReloadConfig")[0].dry_run());
  Cli same;
  same.script.Answer("ReloadConfig", v1::ReloadConfigResponse());
  CHECK(same.Run({"cluster", "reload"}) == 0);
  CHECK(same.out() == "nothing has changed\n");
}

TEST_CASE("describe shows a job's reservation and the job that it made room for") {
  Cli cli;
  v1::Job job = MakeJob("a", v1::JOB_PENDING);
  job.mutable_spec()->set_preemptible(true);
  job.mutable_spec()->set_user("ann");
  job.mutable_spec()->mutable_checkpoint()->set_signal("SIGUSR1");
  job.mutable_spec()->mutable_checkpoint()->mutable_grace()->set_seconds(120);
  v1::JobStatus& status = *job.mutable_status();
  status.mutable_reservation()->mutable_start()->set_seconds(1'795'000'000);
  for (int i = 0; i < 10; ++i) status.mutable_reservation()->add_nodes(absl::StrCat("n", i));
  status.set_evictions(2);
  v1::Eviction& last = *status.mutable_last_eviction();
  last.set_reason(v1::Eviction::PREEMPTED);
  last.set_beneficiary("bert");
  last.set_tasks(4);
  last.set_detail("priority 9 over 1");
  cli.script.Answer("GetJob", job);
  cli.script.Answer("ListTasks", v1::ListTasksResponse());
  CHECK(cli.Run({"job", "describe", "a"}) == 0);
  INFO(cli.out());
  for (const char* words : {"User:", "ann", "Checkpoint:", "SIGUSR1, grace 2m",
                            "on n0, n1, n2, n3, n4, n5, n6, n7 and 2 more nodes",
                            "preempted 4 tasks for job bert: priority 9 over 1", "Preemptible:"}) {
    CHECK(cli.out().find(words) != std::string::npos);
  }
}

TEST_CASE("node list and node drain") {
  Cli cli;
  v1::Node node;
  node.set_name("n1");
  node.mutable_status()->set_state(v1::NODE_READY);
  node.mutable_status()->set_cordoned(true);
  node.mutable_status()->set_reason("bad fan");
  node.mutable_status()->set_tasks(2);
  node.mutable_status()->mutable_capacity()->set_cpu_millis(96'000);
  node.mutable_status()->mutable_free()->set_cpu_millis(90'000);
  (*node.mutable_status()->mutable_capacity()->mutable_counts())["gpu"] = 8;
  (*node.mutable_status()->mutable_free()->mutable_counts())["gpu"] = 6;
  v1::ListNodesResponse list;
  *list.add_nodes() = node;
  cli.script.Answer("ListNodes", list);
  cli.script.Answer("DrainNode", node);
  CHECK(cli.Run({"node", "list"}) == 0);
  CHECK(cli.out() ==
        "NAME  STATE           TASKS  FREE CPU  FREE MEMORY  FREE DEVICES  AGE  REASON\n"
        "n1    Ready,Cordoned      2     90/96          0/0  gpu 6/8         -  bad fan\n");
  CHECK(cli.Run({"node", "drain", "n1", "--reason", "fan", "--wait-for-jobs"}) == 0);
  CHECK(cli.out() == "node/n1 draining\n");
  CHECK(cli.script.Requests<v1::DrainNodeRequest>("DrainNode")[0].wait_for_jobs());
}

TEST_CASE("cluster info and versions") {
  Cli cli;
  v1::ClusterInfo info;
  info.set_version("0.1.0");
  info.set_cluster_id("c1");
  info.set_accepting_work(false);
  info.set_not_accepting_reason("disk full");
  (*info.mutable_jobs())["RUNNING"] = 3;
  (*info.mutable_jobs())["FAILED"] = 0;
  cli.script.Answer("GetClusterInfo", info);
  CHECK(cli.Run({"cluster", "info"}) == 0);
  CHECK(cli.out().find("Accepts work:  no: disk full\n") != std::string::npos);
  CHECK(cli.out().find("Jobs:          3 running\n") != std::string::npos);
  CHECK(cli.Run({"version"}) == 0);
  CHECK(cli.out() == "berth 0.1.0\nberthd 0.1.0 at " + cli.server.address() + "\n");
  CHECK(cli.RunBare({"version", "--client"}) == 0);
}

}  // namespace
}  // namespace berth
