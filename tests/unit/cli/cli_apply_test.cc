// submit and apply, as whole commands.
#include <catch2/catch.hpp>

#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

TEST_CASE("submit: a job that can never start is submitted, with a warning") {
  Cli cli;
  v1::SubmitJobsResponse response = Submitted("n");
  v1::WaitReason& never = *response.mutable_jobs(0)->mutable_never();
  never.set_code(v1::WaitReason::QUEUE_LIMIT);
  never.set_never(true);
  never.set_resource("gpu");
  never.set_needed(520);
  never.set_limit(256);
  never.set_queue("research");
  cli.script.Answer("SubmitJobs", response);
  CHECK(cli.Run({"submit", "--", "true"}) == 0);
  CHECK(cli.out() == "job/n submitted\n");
  CHECK(cli.err() ==
        "berth: warning: job/n can never start: requests gpu 520, the limit of queue research is "
        "256\n");
  const auto request = cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[0];
  CHECK(request.jobs(0).spec().queue().empty());  // the server chooses the default
}

TEST_CASE("submit --dry-run of several jobs reports which can never start") {
  Cli cli;
  v1::SubmitJobsResponse response;
  response.add_jobs()->set_name("s-0");
  v1::WaitReason& never = *response.add_jobs()->mutable_never();  // without a name
  never.set_code(v1::WaitReason::QUEUE_LIMIT);
  never.set_never(true);
  never.set_resource("gpu");
  never.set_needed(520);
  never.set_limit(256);
  never.set_queue("research");
  cli.script.Answer("SubmitJobs", response);
  const TempFile jobs(
      "apiVersion: berth/v1\nkind: Job\nname: s-0\ngroups: [{name: a, command: [a]}]\n---\n"
      "apiVersion: berth/v1\nkind: Job\nname: s-1\ngroups: [{name: a, command: [a]}]\n");
  CHECK(cli.Run({"submit", jobs.path(), "--dry-run"}) == 0);
  CHECK(cli.out() == "job/s-0 would be accepted (dry run)\njob/s-1 would be accepted (dry run)\n");
  CHECK(cli.err() ==
        "berth: warning: job/? can never start: requests gpu 520, the limit of queue research is "
        "256\n");
}

TEST_CASE("the quick form of submit") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("n"));
  CHECK(cli.Run({"submit",     "--name",     "n",     "--queue",   "q",        "--gpus",  "8",
                 "--replicas", "4",          "--cpu", "1.5",       "--memory", "1Gi",     "-e",
                 "A=b=c",      "--walltime", "1h",    "--retries", "2",        "--after", "m",
                 "--",         "train",      "--x",   "-o"}) == 0);
  CHECK(cli.out() == "job/n submitted\n");
  const v1::SubmitJobsRequest request = cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[0];
  CHECK(request.request_id().size() == 32);
  const v1::JobSpec& spec = request.jobs(0).spec();
  CHECK(spec.queue() == "q");
  CHECK(spec.walltime().seconds() == 3600);
  CHECK(spec.max_retries() == 2);
  CHECK(spec.dependencies(0).job() == "m");
  const v1::TaskGroup& group = spec.groups(0);
  CHECK(group.name() == "worker");
  CHECK(group.replicas() == 4);
  CHECK(group.resources().cpu_millis() == 1500);
  CHECK(group.resources().memory_bytes() == 1 << 30);
  CHECK(group.resources().devices(0).count() == 8);
  CHECK(group.env(0).value() == "b=c");
  CHECK(group.command_size() == 3);
  CHECK(group.command(2) == "-o");
}

TEST_CASE("the quick form of submit: shares of a GPU, and local disk") {
  Cli cli;
  const auto asks = [&](const std::vector<std::string>& options) {
    std::vector<std::string> line = {"submit"};
    line.insert(line.end(), options.begin(), options.end());
    line.insert(line.end(), {"--", "train"});
    cli.script.Answer("SubmitJobs", Submitted("n"));
    CHECK(cli.Run(line) == 0);
    return cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")
        .back()
        .jobs(0)
        .spec()
        .groups(0)
        .resources();
  };
  v1::ResourceRequest resources = asks({"--gpu-share", "0.25", "--scratch", "1Gi"});
  CHECK(resources.devices(0).share() == 0.25);
  CHECK(resources.devices(0).count() == 0);
  CHECK(resources.scratch_bytes() == 1 << 30);
  resources = asks({"--gpu-memory", "20Gi"});
  CHECK(resources.devices(0).count() == 0);
  CHECK(resources.devices(0).memory_bytes() == int64_t{20} << 30);
  resources = asks({"--gpus", "2", "--gpu-memory", "20Gi"});
  CHECK(resources.devices(0).count() == 2);
  CHECK(resources.devices_size() == 1);
}

constexpr char kJobs[] = R"(apiVersion: berth/v1
kind: Job
name: one
queue: q
groups: [{name: w, replicas: 1, command: [a]}]
---
apiVersion: berth/v1
kind: Job
name: two
queue: q
groups:
- name: w
  replicas: 0
  command: [a]
)";

TEST_CASE("the server's violations are reported with file and line") {
  Cli cli;
  const TempFile file(kJobs);
  cli.script.Answer("SubmitJobs",
                    ViolationsError(absl::StatusCode::kInvalidArgument,
                                    {{"jobs[1].spec.groups[0].replicas", "must be at least 1"},
                                     {"jobs[0].spec.queue", "no such queue"},
                                     {"request_id", "too long"}}));
  CHECK(cli.Run({"submit", file.path()}) == 4);
  CHECK(cli.err() == file.path() + ":13:13: groups[0].replicas: must be at least 1\n" +
                         file.path() + ":4:8: queue: no such queue\n" + file.path() +
                         ":1:1: request_id: too long\n");
  CHECK(cli.Run({"submit", "--", "x"}) == 4);
  CHECK(cli.err().find("berth: groups[0].replicas: must be at least 1\n") != std::string::npos);
}

TEST_CASE("an invalid manifest is reported before any request") {
  Cli cli;
  const TempFile file("apiVersion: berth/v1\nkind: Job\nqueu: a\n");
  CHECK(cli.Run({"submit", file.path()}) == 4);
  CHECK(cli.err() == file.path() + ":3:1: unknown key \"queu\"; did you mean \"queue\"?\n");
  CHECK(cli.Run({"apply", "-f", "/nonexistent.yaml"}) == 4);
  CHECK(cli.err() == "/nonexistent.yaml: No such file or directory\n");
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs").empty());
}

TEST_CASE("a Volcano manifest is submitted once unsupported keys are ignored") {
  Cli cli;
  const TempFile file(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec:\n  tasks:\n"
      "  - template: {spec: {containers: [{command: [a], lifecycle: {}}]}}\n");
  cli.script.Answer("SubmitJobs", Submitted("v"));
  CHECK(cli.Run({"submit", file.path()}) == 4);
  CHECK(cli.Run({"submit", "--ignore", "lifecycle", file.path()}) == 0);
  CHECK(cli.out() == "job/v submitted\n");
  CHECK(cli.err() == "berth: warning: " + file.path() + ":6:51: lifecycle is ignored\n");
}

TEST_CASE("the quick form needs no command with an image, which has one") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("boxed"));
  CHECK(cli.Run({"submit", "--name", "boxed", "--cpu", "1"}) == 2);
  CHECK(cli.Run({"submit", "--name", "boxed", "--image", "r.example/x:1"}) == 0);
  const auto requests = cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs");
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].jobs(0).spec().groups(0).image() == "r.example/x:1");
  CHECK(requests[0].jobs(0).spec().groups(0).command().empty());
}

TEST_CASE("a dry run changes nothing") {
  Cli cli;
  const TempFile file(kJobs);
  cli.script.Answer("SubmitJobs", v1::SubmitJobsResponse());
  CHECK(cli.Run({"submit", "--dry-run", file.path()}) == 0);
  CHECK(cli.out() == "job/one would be accepted (dry run)\njob/two would be accepted (dry run)\n");
  CHECK(cli.script.Requests<v1::SubmitJobsRequest>("SubmitJobs")[0].dry_run());
}

TEST_CASE("submit --wait reports how the job ended") {
  Cli cli;
  cli.script.Answer("SubmitJobs", Submitted("a"));
  cli.script.Answer("GetJob", MakeJob("a", v1::JOB_FAILED));
  CHECK(cli.Run({"submit", "--wait", "--", "x"}) == 10);
  CHECK(cli.out() == "job/a submitted\njob/a Failed\n");
}

constexpr char kQueueAndJob[] = R"(apiVersion: berth/v1
kind: Job
name: one
queue: q
priority: 3
groups: [{name: w, replicas: 1, command: [a]}]
---
apiVersion: berth/v1
kind: Queue
name: q
maxJobs: 5
limit: {gpu: 8}
)";

TEST_CASE("apply creates missing objects, queues first") {
  Cli cli;
  const TempFile file(kQueueAndJob);
  cli.script.Answer("GetQueue", absl::NotFoundError("none"));
  cli.script.Answer("CreateQueue", v1::Queue());
  cli.script.Answer("SubmitJobs", Submitted("one"));
  CHECK(cli.Run({"apply", "-f", file.path()}) == 0);
  CHECK(cli.out() == "queue/q created\njob/one submitted\n");
  CHECK(cli.script.Requests<v1::CreateQueueRequest>("CreateQueue")[0].request_id().size() == 32);
}

TEST_CASE("apply changes only what differs") {
  Cli cli;
  const TempFile file(kQueueAndJob);
  v1::Queue current;
  current.set_name("q");
  current.set_etag("e1");
  current.mutable_spec()->set_max_jobs(4);
  (*current.mutable_spec()->mutable_limit()->mutable_counts())["gpu"] = 8;
  cli.script.Answer("GetQueue", current);
  cli.script.Answer("UpdateQueue", current);
  cli.script.Answer("SubmitJobs", absl::AlreadyExistsError("job \"one\" exists"));
  v1::Job job = MakeJob("one", v1::JOB_RUNNING);
  job.mutable_spec()->set_queue("q");
  job.mutable_spec()->mutable_groups(0)->set_name("w");
  job.mutable_spec()->mutable_groups(0)->set_replicas(1);
  job.mutable_spec()->mutable_groups(0)->set_min_available(1);  // the server's default
  job.mutable_spec()->mutable_groups(0)->set_command(0, "a");
  cli.script.Answer("GetJob", job);
  cli.script.Answer("UpdateJob", job);
  CHECK(cli.Run({"apply", "-f", file.path()}) == 0);
  CHECK(cli.out() == "queue/q updated\njob/one updated\n");
  const auto queue = cli.script.Requests<v1::UpdateQueueRequest>("UpdateQueue")[0];
  CHECK(queue.update_mask().paths_size() == 1);
  CHECK(queue.update_mask().paths(0) == "spec.max_jobs");
  CHECK(queue.queue().etag() == "e1");
  CHECK(cli.script.Requests<v1::UpdateJobRequest>("UpdateJob")[0].update_mask().paths(0) ==
        "spec.priority");
}

TEST_CASE("apply leaves unchanged objects alone, and refuses changes of immutable fields") {
  const TempFile file(
      "apiVersion: berth/v1\nkind: Job\nname: one\nqueue: q\ngroups: [{name: w, replicas: 2, "
      "command: [a]}]\n");
  Cli cli;
  cli.script.Answer("SubmitJobs", absl::AlreadyExistsError("exists"));
  v1::Job job = MakeJob("one", v1::JOB_RUNNING);
  job.mutable_spec()->set_queue("q");
  job.mutable_spec()->mutable_groups(0)->set_name("w");
  job.mutable_spec()->mutable_groups(0)->set_replicas(2);
  job.mutable_spec()->mutable_groups(0)->set_command(0, "a");
  cli.script.Answer("GetJob", job);
  job.mutable_spec()->mutable_groups(0)->set_replicas(3);
  cli.script.Answer("GetJob", job);
  CHECK(cli.Run({"apply", "-f", file.path()}) == 0);
  CHECK(cli.out() == "job/one unchanged\n");
  CHECK(cli.Run({"apply", "-f", file.path()}) == 1);
  CHECK(cli.err() == file.path() +
                         ":5:1: job/one exists and differs in groups; only priority, labels and "
                         "walltime may change\n");
}

}  // namespace
}  // namespace berth
