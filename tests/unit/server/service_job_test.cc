// JobService over real gRPC.
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/config/config.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Stub = v1::JobService::Stub;

v1::SubmitJobsRequest RequestOf(const v1::Job& job, const std::string& request_id = "") {
  v1::SubmitJobsRequest request;
  request.set_request_id(request_id);
  *request.add_jobs() = job;
  return request;
}

v1::Job Dependent(const std::string& name, const std::string& on) {
  v1::Job job = SmallJob(name);
  v1::JobDependency* dependency = job.mutable_spec()->add_dependencies();
  dependency->set_job(on);
  dependency->set_condition(v1::JobDependency::AFTER_OK);
  return job;
}

size_t CountJobs(ServiceWorld& world) {
  v1::ListJobsResponse list;
  REQUIRE(Call(*world.jobs, &Stub::ListJobs, v1::ListJobsRequest(), &list).ok());
  return static_cast<size_t>(list.jobs_size());
}

absl::Status Cancel(ServiceWorld& world, const std::string& name, v1::Job* job) {
  v1::CancelJobRequest request;
  request.set_name(name);
  request.set_reason("changed my mind");
  return Call(*world.jobs, &Stub::CancelJob, request, job);
}

}  // namespace

TEST_CASE("service: a job is submitted, described, cancelled and deleted") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::Job job = SmallJob("train");
  v1::TaskGroup* group = job.mutable_spec()->mutable_groups(0);
  group->add_command("--fast");
  v1::EnvVar* variable = group->add_env();
  variable->set_name("A");
  variable->set_value("b");
  (*job.mutable_spec()->mutable_annotations())["note"] = "x";
  (*job.mutable_spec()->mutable_labels())["team"] = "nlp";
  job.mutable_spec()->set_kill_signal("SIGINT");
  v1::SubmitJobsResponse submitted;
  REQUIRE(world.Submit(RequestOf(job), &submitted).ok());
  REQUIRE(submitted.jobs_size() == 1);
  CHECK(submitted.jobs(0).name() == "train");
  CHECK(submitted.jobs(0).uid() > 0);

  const v1::Job got = world.MustGetJob("train");
  CHECK(got.uid() == submitted.jobs(0).uid());
  CHECK(got.spec().queue() == "q");
  CHECK(got.spec().groups(0).command(1) == "--fast");
  CHECK(got.spec().groups(0).env(0).value() == "b");
  CHECK(got.spec().annotations().at("note") == "x");
  CHECK(got.spec().labels().at("team") == "nlp");
  CHECK(got.spec().kill_signal() == "SIGINT");
  CHECK(got.status().state() == v1::JOB_PENDING);
  REQUIRE(got.status().reasons_size() > 0);  // there is no node
  CHECK(got.status().groups(0).tasks().at("PENDING") == 1);

  v1::Job cancelled;
  REQUIRE(Cancel(world, "train", &cancelled).ok());
  REQUIRE(Cancel(world, "train", &cancelled).ok());  // a repeat succeeds
  CHECK(world.MustGetJob("train").status().state() == v1::JOB_CANCELLED);
  v1::DeleteJobRequest remove;
  remove.set_name("train");
  v1::DeleteJobResponse removed;
  REQUIRE(Call(*world.jobs, &Stub::DeleteJob, remove, &removed).ok());
  CHECK(absl::IsNotFound(Call(*world.jobs, &Stub::DeleteJob, remove, &removed)));
  CHECK(CountJobs(world) == 0);
}

TEST_CASE("service: all or nothing") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob("b");
  *request.add_jobs() = SmallJob("a");
  v1::SubmitJobsResponse response;
  const absl::Status taken = world.Submit(request, &response);
  CHECK(absl::IsAlreadyExists(taken));
  CHECK(ViolationsOf(taken).at(0).field == "jobs[1].name");
  CHECK(CountJobs(world) == 1);
}

TEST_CASE("service: state-dependent violations have paths and come with all others") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.CreateQueue("parent");
  world.CreateQueue("leaf", "parent");
  v1::SubmitJobsResponse response;
  SECTION("unknown queue") {
    const absl::Status status = world.Submit(RequestOf(SmallJob("a", "nowhere")), &response);
    CHECK(absl::IsNotFound(status));
    CHECK(status.message() ==
          "jobs[0].spec.queue: there is no queue \"nowhere\"; queues that accept jobs: default, q, "
          "leaf");
  }
  SECTION("not a leaf") {
    const absl::Status status = world.Submit(RequestOf(SmallJob("a", "parent")), &response);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message() ==
          "jobs[0].spec.queue: \"parent\" has children, such as \"leaf\"; only leaf queues "
          "accept jobs");
  }
  SECTION("closed") {
    v1::CloseQueueRequest close;
    close.set_name("parent");
    v1::Queue queue;
    REQUIRE(Call(*world.queues, &v1::QueueService::Stub::CloseQueue, close, &queue).ok());
    const absl::Status status = world.Submit(RequestOf(SmallJob("a", "leaf")), &response);
    CHECK(absl::IsFailedPrecondition(status));
    CHECK(status.message() == "jobs[0].spec.queue: queue \"leaf\" is closed");
  }
  SECTION("unknown dependency") {
    const absl::Status status = world.Submit(RequestOf(Dependent("a", "ghost")), &response);
    CHECK(absl::IsNotFound(status));
    CHECK(status.message() ==
          "jobs[0].spec.dependencies[0].job: there is no job \"ghost\", in the cluster or in this "
          "call");
  }
  SECTION("an invalid field and an unknown queue: both are reported") {
    v1::Job job = SmallJob("a", "nowhere");
    job.mutable_spec()->mutable_groups(0)->set_replicas(-1);
    const absl::Status status = world.Submit(RequestOf(job), &response);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(ViolationsOf(status).size() == 2);
  }
  SECTION("max_jobs") {
    v1::UpdateQueueRequest update;
    update.mutable_queue()->set_name("q");
    update.mutable_queue()->mutable_spec()->set_max_jobs(1);
    update.mutable_update_mask()->add_paths("spec.max_jobs");
    v1::Queue queue;
    REQUIRE(Call(*world.queues, &v1::QueueService::Stub::UpdateQueue, update, &queue).ok());
    world.MustSubmit({"one"});
    const absl::Status status = world.Submit(RequestOf(SmallJob("two")), &response);
    CHECK(absl::IsResourceExhausted(status));
    CHECK(RetryDelayOf(status) > absl::ZeroDuration());
  }
  CHECK(CountJobs(world) <= 1);
}

TEST_CASE("service: dry run stores nothing") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::SubmitJobsRequest request = RequestOf(SmallJob("a"));
  request.set_dry_run(true);
  v1::SubmitJobsResponse response;
  CHECK(world.Submit(request, &response).ok());
  request.mutable_jobs(0)->mutable_spec()->set_queue("nowhere");
  CHECK(absl::IsNotFound(world.Submit(request, &response)));
  CHECK(CountJobs(world) == 0);
}

TEST_CASE("service: a request id returns the first answer again, even after a restart") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::SubmitJobsRequest request;
  request.set_request_id("the-id");
  *request.add_jobs() = SmallJob("");
  *request.add_jobs() = Dependent("b", "c");
  *request.add_jobs() = SmallJob("c");
  v1::SubmitJobsResponse first, again;
  REQUIRE(world.Submit(request, &first).ok());
  CHECK(first.jobs(0).name() == absl::StrCat("job-", first.jobs(0).uid()));
  CHECK(first.jobs(1).uid() > first.jobs(2).uid());  // after the job that it depends on
  REQUIRE(world.Submit(request, &again).ok());
  CHECK(again.SerializeAsString() == first.SerializeAsString());
  world.Restart();
  again.Clear();
  REQUIRE(world.Submit(request, &again).ok());
  CHECK(again.SerializeAsString() == first.SerializeAsString());
  CHECK(CountJobs(world) == 3);
  request.mutable_jobs(1)->mutable_spec()->set_priority(1);
  const absl::Status status = world.Submit(request, &again);
  CHECK(absl::IsAlreadyExists(status));
  CHECK(status.message().find("request_id \"the-id\" was used with another body") == 0);
}

TEST_CASE("service: lists have pages and filters, and refuse tokens of other lists") {
  ServiceWorld world;
  world.CreateQueue("q");
  std::vector<std::string> names;
  for (int i = 0; i < 25; ++i) names.push_back(absl::StrCat("j", i));
  world.MustSubmit(names);
  v1::ListJobsRequest request;
  request.set_page_size(10);
  std::set<std::string> seen;
  int pages = 0;
  do {
    v1::ListJobsResponse page;
    REQUIRE(Call(*world.jobs, &Stub::ListJobs, request, &page).ok());
    CHECK(page.jobs_size() <= 10);
    for (const v1::Job& job : page.jobs()) {
      CHECK(seen.insert(job.name()).second);
      CHECK(job.spec().groups(0).command().empty());
    }
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  CHECK(seen.size() == 25);
  CHECK(pages == 3);

  v1::ListJobsResponse page;
  request.set_page_token("AAAA");
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::ListJobs, request, &page)));
  request.clear_page_token();
  REQUIRE(Call(*world.jobs, &Stub::ListJobs, request, &page).ok());
  request.set_page_token(page.next_page_token());
  world.CreateQueue("other");
  request.mutable_filter()->set_queue("other");
  const absl::Status foreign = Call(*world.jobs, &Stub::ListJobs, request, &page);
  CHECK(foreign.message() == "page_token: belongs to another list or filter; omit it to begin");
  request.clear_page_token();
  page.Clear();
  REQUIRE(Call(*world.jobs, &Stub::ListJobs, request, &page).ok());
  CHECK(page.jobs().empty());
  request.set_page_size(1001);
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::ListJobs, request, &page)));
}

TEST_CASE("service: priority and labels change under an etag, and no other field does") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::UpdateJobRequest update;
  update.mutable_job()->set_name("a");
  update.mutable_job()->set_etag(world.MustGetJob("a").etag());
  update.mutable_job()->mutable_spec()->set_priority(7);
  update.mutable_update_mask()->add_paths("spec.priority");
  v1::Job job;
  REQUIRE(Call(*world.jobs, &Stub::UpdateJob, update, &job).ok());
  CHECK(job.spec().priority() == 7);
  CHECK(job.etag() == world.MustGetJob("a").etag());
  update.mutable_job()->mutable_spec()->set_priority(8);
  CHECK(absl::IsAborted(Call(*world.jobs, &Stub::UpdateJob, update, &job)));
  update.mutable_job()->set_etag(job.etag());
  REQUIRE(Call(*world.jobs, &Stub::UpdateJob, update, &job).ok());
  CHECK(world.MustGetJob("a").spec().priority() == 8);

  update.mutable_update_mask()->set_paths(0, "spec.deadline");
  CHECK(absl::IsUnimplemented(Call(*world.jobs, &Stub::UpdateJob, update, &job)));
  update.mutable_update_mask()->set_paths(0, "spec.wallclock");
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::UpdateJob, update, &job)));
}

TEST_CASE("service: a walltime is changed, removed, and survives a restart") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::UpdateJobRequest update;
  update.mutable_job()->set_name("a");
  update.mutable_job()->mutable_spec()->mutable_walltime()->set_seconds(7200);
  update.mutable_update_mask()->add_paths("spec.walltime");
  v1::Job job;
  REQUIRE(Call(*world.jobs, &Stub::UpdateJob, update, &job).ok());
  CHECK(job.spec().walltime().seconds() == 7200);
  world.Restart();
  CHECK(world.MustGetJob("a").spec().walltime().seconds() == 7200);
  update.mutable_job()->mutable_spec()->mutable_walltime()->set_seconds(0);
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::UpdateJob, update, &job)));
  update.mutable_job()->mutable_spec()->clear_walltime();
  REQUIRE(Call(*world.jobs, &Stub::UpdateJob, update, &job).ok());
  world.Restart();
  CHECK_FALSE(world.MustGetJob("a").spec().has_walltime());
  REQUIRE(Cancel(world, "a", &job).ok());
  update.mutable_job()->mutable_spec()->mutable_walltime()->set_seconds(60);
  CHECK(absl::IsFailedPrecondition(Call(*world.jobs, &Stub::UpdateJob, update, &job)));
}

TEST_CASE("service: newest first, while jobs are added and deleted") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a", "b", "c", "d", "e", "f"});
  v1::ListJobsRequest request;
  request.set_page_size(2);
  request.set_order(v1::ListJobsRequest::NEWEST_FIRST);
  const auto page = [&] {
    v1::ListJobsResponse response;
    REQUIRE(Call(*world.jobs, &Stub::ListJobs, request, &response).ok());
    request.set_page_token(response.next_page_token());
    std::string names;
    for (const v1::Job& job : response.jobs()) names += job.name();
    return names;
  };
  CHECK(page() == "fe");
  world.MustSubmit({"new"});
  v1::Job job;
  for (const char* gone : {"e", "d"}) {
    REQUIRE(Cancel(world, gone, &job).ok());
    v1::DeleteJobRequest remove;
    remove.set_name(gone);
    v1::DeleteJobResponse removed;
    REQUIRE(Call(*world.jobs, &Stub::DeleteJob, remove, &removed).ok());
  }
  CHECK(page() == "cb");
  request.set_order(v1::ListJobsRequest::OLDEST_FIRST);
  v1::ListJobsResponse foreign;
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::ListJobs, request, &foreign)));
  request.set_order(v1::ListJobsRequest::NEWEST_FIRST);
  CHECK(page() == "a");
  CHECK(request.page_token().empty());
  CHECK(page() == "newf");
}

TEST_CASE("service: jobs by queue and subtree, user, pattern, time and whether they have ended") {
  ServiceWorld world;
  world.CreateQueue("top");
  world.CreateQueue("low", "top");
  world.CreateQueue("other");
  v1::SubmitJobsRequest submit;
  for (const auto& [name, queue, user] :
       {std::tuple("train-1", "low", "ann"), std::tuple("train-2", "other", "bob"),
        std::tuple("eval-1", "low", "bob")}) {
    v1::Job& job = *submit.add_jobs();
    job = SmallJob(name, queue);
    job.mutable_spec()->set_user(user);
  }
  v1::SubmitJobsResponse submitted;
  REQUIRE(world.Submit(submit, &submitted).ok());
  v1::Job job;
  REQUIRE(Cancel(world, "eval-1", &job).ok());
  const auto names = [&](auto set) {
    v1::ListJobsRequest request;
    set(*request.mutable_filter());
    v1::ListJobsResponse response;
    REQUIRE(Call(*world.jobs, &Stub::ListJobs, request, &response).ok());
    std::string found;
    for (const v1::Job& one : response.jobs()) found += one.name() + " ";
    return found;
  };
  CHECK(names([](v1::JobFilter& f) { f.set_queue("top"); }) == "train-1 eval-1 ");
  CHECK(names([](v1::JobFilter& f) { f.set_queue("low"); }) == "train-1 eval-1 ");
  CHECK(names([](v1::JobFilter& f) { f.set_user("bob"); }) == "train-2 eval-1 ");
  CHECK(names([](v1::JobFilter& f) { f.set_name_pattern("train-?"); }) == "train-1 train-2 ");
  CHECK(names([](v1::JobFilter& f) { f.set_name_pattern("*-1"); }) == "train-1 eval-1 ");
  CHECK(names([](v1::JobFilter& f) { f.set_name_pattern("rain*"); }).empty());
  CHECK(names([](v1::JobFilter& f) { f.set_ended_only(true); }) == "eval-1 ");
  CHECK(names([](v1::JobFilter& f) { f.set_active_only(true); }) == "train-1 train-2 ");
  CHECK(names([](v1::JobFilter& f) { f.set_suspended_only(true); }).empty());
  CHECK(names([](v1::JobFilter& f) { f.set_paused_only(true); }).empty());
  const auto submit_time = world.MustGetJob("train-1").status().submit_time();
  CHECK(names([&](v1::JobFilter& f) { *f.mutable_submitted_after() = submit_time; }) ==
        "train-1 train-2 eval-1 ");
  CHECK(names([&](v1::JobFilter& f) {
          f.mutable_submitted_after()->set_seconds(submit_time.seconds() + 3600);
        }).empty());
  v1::ListJobsRequest wrong;
  wrong.mutable_filter()->set_node("n1");
  v1::ListJobsResponse response;
  CHECK(absl::IsNotFound(Call(*world.jobs, &Stub::ListJobs, wrong, &response)));
  wrong.mutable_filter()->clear_node();
  wrong.mutable_filter()->set_queue("lwo");
  const absl::Status unknown = Call(*world.jobs, &Stub::ListJobs, wrong, &response);
  CHECK(absl::IsNotFound(unknown));
  CHECK(unknown.message() == "there is no queue \"lwo\"; did you mean \"low\"?");
  wrong.mutable_filter()->clear_queue();
  wrong.mutable_filter()->set_active_only(true);
  wrong.mutable_filter()->set_ended_only(true);
  wrong.mutable_filter()->set_name_pattern("[a]");
  const absl::Status refused = Call(*world.jobs, &Stub::ListJobs, wrong, &response);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(ViolationsOf(refused).size() == 2);
}

TEST_CASE("service: messages shorten names of 10,000 bytes, and control characters are refused") {
  ServiceWorld world;
  world.CreateQueue("q");
  v1::Job job = SmallJob("a");
  const std::string long_key(10'000, 'k');
  (*job.mutable_spec()->mutable_labels())[long_key] = std::string(10'000, '%');
  (*job.mutable_spec()->mutable_annotations())[long_key] = "x";
  job.set_name(std::string(10'000, 'N'));
  v1::SubmitJobsResponse response;
  const absl::Status refused = world.Submit(RequestOf(job), &response);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(ViolationsOf(refused).size() == 4);
  for (const Violation& one : ViolationsOf(refused)) {
    CHECK(one.field.size() <= kMaxViolationFieldBytes);
    CHECK(one.description.size() <= kMaxViolationBytes);
  }
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  for (const char* reason : {"two\nlines", "\x1b[31mred",
                             "\xe2\x80\xae"
                             "desrever",
                             "\xc2\x9b"
                             "31m"}) {
    cancel.set_reason(reason);
    CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::CancelJob, cancel, &job)));
  }
}

TEST_CASE("service: limits.killGrace bounds the grace of jobs, and a reload changes it") {
  std::atomic<int> allowed_seconds = 30;
  const auto limit = [&](config::v1::Server& config) {
    config.mutable_limits()->mutable_kill_grace()->set_seconds(allowed_seconds);
  };
  ServiceWorld world(limit);
  world.reread = [&]() -> absl::StatusOr<config::v1::Server> {
    config::v1::Server config;
    config.set_listen("127.0.0.1:0");
    config.set_http_listen("off");
    config.mutable_log()->set_level("error");
    limit(config);
    if (absl::Status status = CompleteConfig(config); !status.ok()) return status;
    return config;
  };
  world.Restart();
  world.CreateQueue("q");
  v1::Job job = SmallJob("a");
  job.mutable_spec()->mutable_kill_grace()->set_seconds(31);
  job.mutable_spec()->mutable_checkpoint()->mutable_grace()->set_seconds(60);
  v1::SubmitJobsResponse response;
  const absl::Status refused = world.Submit(RequestOf(job), &response);
  CHECK(absl::IsInvalidArgument(refused));
  REQUIRE(ViolationsOf(refused).size() == 2);
  CHECK(ViolationsOf(refused)[0].description ==
        "at most 30s here (the server's limits.kill_grace), is 31s");
  job.mutable_spec()->mutable_kill_grace()->set_seconds(30);
  job.mutable_spec()->clear_checkpoint();
  CHECK(world.Submit(RequestOf(job), &response).ok());

  const auto reload = [&](int seconds) {
    v1::ReloadConfigRequest request;
    v1::ReloadConfigResponse answer;
    allowed_seconds = seconds;
    REQUIRE(Call(*world.cluster, &v1::ClusterService::Stub::ReloadConfig, request, &answer).ok());
    REQUIRE(answer.changes_size() == 1);
    CHECK(answer.changes(0).path() == "limits.kill_grace");
    CHECK_FALSE(answer.changes(0).needs_restart());
  };
  const auto submit = [&](const std::string& name, int seconds) {
    v1::Job other = SmallJob(name);
    other.mutable_spec()->mutable_kill_grace()->set_seconds(seconds);
    return world.Submit(RequestOf(other), &response);
  };
  reload(40);
  CHECK(submit("longer", 40).ok());
  CHECK(world.MustGetJob("longer").spec().kill_grace().seconds() == 40);
  CHECK(ViolationsOf(submit("longest", 41)).size() == 1);
  reload(20);
  const absl::Status shorter = submit("b", 21);
  REQUIRE(ViolationsOf(shorter).size() == 1);
  CHECK(ViolationsOf(shorter)[0].description ==
        "at most 20s here (the server's limits.kill_grace), is 21s");
  CHECK(world.MustGetJob("longer").spec().kill_grace().seconds() == 40);  // as accepted
}

TEST_CASE("service: suspend and resume, and deletion of an active job") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::SuspendJobRequest suspend;
  suspend.set_name("a");
  v1::Job job;
  REQUIRE(Call(*world.jobs, &Stub::SuspendJob, suspend, &job).ok());
  REQUIRE(Call(*world.jobs, &Stub::SuspendJob, suspend, &job).ok());
  CHECK(world.MustGetJob("a").spec().suspended());
  v1::DeleteJobRequest remove;
  remove.set_name("a");
  v1::DeleteJobResponse removed;
  CHECK(absl::IsFailedPrecondition(Call(*world.jobs, &Stub::DeleteJob, remove, &removed)));
  v1::ResumeJobRequest resume;
  resume.set_name("a");
  REQUIRE(Call(*world.jobs, &Stub::ResumeJob, resume, &job).ok());
  CHECK_FALSE(world.MustGetJob("a").spec().suspended());
  resume.set_name("ghost");
  const absl::Status missing = Call(*world.jobs, &Stub::ResumeJob, resume, &job);
  CHECK(absl::IsNotFound(missing));
  CHECK(missing.message() == "there is no job \"ghost\"");
}

TEST_CASE("service: tasks and logs of a job that has not started") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::ListTasksRequest list;
  list.set_job("a");
  v1::ListTasksResponse tasks;
  REQUIRE(Call(*world.jobs, &Stub::ListTasks, list, &tasks).ok());
  REQUIRE(tasks.tasks_size() == 1);
  CHECK(tasks.tasks(0).state() == v1::TASK_PENDING);
  const auto logs_of = [&](const std::string& job, const std::string& task) {
    grpc::ClientContext context;
    v1::ReadLogsRequest request;
    request.set_job(job);
    request.set_task(task);
    auto reader = world.jobs->ReadLogs(&context, request);
    v1::ReadLogsResponse chunk;
    while (reader->Read(&chunk)) {
    }
    return FromGrpcStatus(reader->Finish());
  };
  CHECK(absl::IsFailedPrecondition(logs_of("a", "")));
  CHECK(absl::IsNotFound(logs_of("a", "w-1")));
  CHECK(absl::IsNotFound(logs_of("ghost", "")));

  grpc::ClientContext context;
  v1::ReadLogsRequest wrong;
  wrong.set_job("a");
  wrong.set_tail_lines(3);
  wrong.mutable_from()->set_stderr_bytes(-1);
  const absl::Status refused = FromGrpcStatus(world.jobs->ReadLogs(&context, wrong)->Finish());
  CHECK(absl::IsInvalidArgument(refused));
  const std::vector<Violation> violations = ViolationsOf(refused);
  REQUIRE(violations.size() == 3);
  CHECK(violations[0].field == "from.stderr_bytes");
  CHECK(violations[1].field == "attempt");
  CHECK(violations[2].field == "tail_lines");
}

TEST_CASE("service: exec works only in a running task") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  const auto refusal = [&](const v1::ExecRequest& first) {
    grpc::ClientContext context;
    auto stream = world.jobs->Exec(&context);
    stream->Write(first);
    v1::ExecResponse answer;
    CHECK_FALSE(stream->Read(&answer));
    return FromGrpcStatus(stream->Finish());
  };
  v1::ExecRequest request;
  request.set_input("x");
  CHECK(refusal(request).message() == "the first message must be open");
  request.mutable_open()->set_job("a");
  CHECK(absl::IsInvalidArgument(refusal(request)));
  request.mutable_open()->add_command("true");
  CHECK(absl::IsFailedPrecondition(refusal(request)));
  request.mutable_open()->mutable_terminal()->set_rows(5);
  CHECK(absl::IsInvalidArgument(refusal(request)));
  request.mutable_open()->clear_terminal();
  request.mutable_open()->set_job("ghost");
  CHECK(absl::IsNotFound(refusal(request)));
}

TEST_CASE("service: run_as is only for users that the configuration names") {
  ServiceWorld world([](config::v1::Server& config) {
    config::v1::RunAs& ada = *config.add_run_as();
    ada.set_user("ada");
    ada.set_without_tls(true);
    config::v1::RunAs& bob = *config.add_run_as();
    bob.set_user("bob");
    bob.add_certificates("bob-laptop");
  });
  world.CreateQueue("q");
  const auto submit = [&](const std::string& name, const std::string& user) {
    v1::SubmitJobsRequest request;
    *request.add_jobs() = SmallJob(name);
    request.mutable_jobs(0)->mutable_spec()->set_run_as(user);
    v1::SubmitJobsResponse response;
    return world.Submit(request, &response);
  };
  CHECK(submit("a", "ada").ok());
  CHECK(world.MustGetJob("a").spec().run_as() == "ada");
  CHECK(absl::IsPermissionDenied(submit("b", "bob")));
  CHECK(absl::IsPermissionDenied(submit("c", "Ada")));
  CHECK(absl::IsPermissionDenied(submit("d", "root")));
  CHECK(absl::IsInvalidArgument(submit("e", "a b")));
}

TEST_CASE("service: unimplemented fields are refused by name") {
  ServiceWorld world;
  v1::WhatIfResponse answered;
  const absl::Status what_if =
      Call(*world.explain, &v1::ExplainService::Stub::WhatIf, v1::WhatIfRequest(), &answered);
  CHECK(what_if.message() == "answering what-if questions is not built yet");
}

TEST_CASE("service: a message above the limit is refused") {
  ServiceWorld world(
      [](config::v1::Server& config) { config.mutable_limits()->set_message_bytes(64 << 10); });
  v1::Job job = SmallJob("a");
  job.mutable_spec()->mutable_groups(0)->add_command(std::string(100 << 10, 'x'));
  v1::SubmitJobsResponse response;
  CHECK(absl::IsResourceExhausted(world.Submit(RequestOf(job), &response)));
}

}  // namespace berth::testing
