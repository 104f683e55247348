// What answers leave out for those who may not see everything: rows, fields, names of others.
#include <catch2/catch.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/proto_json.h"
#include "tests/unit/server/service_access_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

using Names = std::set<std::string>;

std::string Text(const google::protobuf::Message& message) { return message.DebugString(); }

Names JobsOf(Door& door, const v1::JobFilter& filter = {}) {
  v1::ListJobsRequest request;
  *request.mutable_filter() = filter;
  v1::ListJobsResponse response;
  const absl::Status status = Call(*door.jobs, &v1::JobService::Stub::ListJobs, request, &response);
  INFO(status);
  REQUIRE(status.ok());
  Names names;
  for (const v1::Job& job : response.jobs()) names.insert(job.name());
  return names;
}

Names QueuesOf(Door& door) {
  v1::ListQueuesResponse response;
  REQUIRE(
      Call(*door.queues, &v1::QueueService::Stub::ListQueues, v1::ListQueuesRequest(), &response)
          .ok());
  Names names;
  for (const v1::Queue& queue : response.queues()) names.insert(queue.name());
  return names;
}

v1::Job JobAs(Door& door, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const absl::Status status = Call(*door.jobs, &v1::JobService::Stub::GetJob, request, &job);
  INFO(status);
  REQUIRE(status.ok());
  return job;
}

TEST_CASE("shown: lists contain what one may list, and shares and queues what one may read") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  const auto bob = world.User("bob"), owner = world.User("owner"), eve = world.User("eve");
  CHECK(JobsOf(*bob) == Names{"train"});
  CHECK(JobsOf(*owner) == Names{"train"});
  CHECK(JobsOf(*eve) == Names{});
  CHECK(JobsOf(world.root()) == Names{"theirs", "train"});
  CHECK(QueuesOf(*bob) == Names{"team", "team-a"});
  CHECK(QueuesOf(*owner) == Names{});
  CHECK(QueuesOf(world.root()) == Names{"default", "other", "team", "team-a"});
  v1::ListQueueSharesResponse shares;
  REQUIRE(Call(*bob->queues, &v1::QueueService::Stub::ListQueueShares, v1::ListQueueSharesRequest(),
               &shares)
              .ok());
  Names shared;
  for (const v1::QueueShares& one : shares.shares()) shared.insert(one.queue());
  CHECK(shared == Names{"team", "team-a"});
  v1::ListTasksRequest tasks;
  tasks.set_job("theirs");
  v1::ListTasksResponse none;
  CHECK(absl::IsNotFound(Call(*bob->jobs, &v1::JobService::Stub::ListTasks, tasks, &none)));
}

TEST_CASE("shown: of a job of others name, queue, state, resources and why it waits") {
  AccessWorld world;
  world.Grant("bob", "viewer", "");
  const auto bob = world.User("bob"), owner = world.User("owner");
  const v1::Job mine = JobAs(*owner, "train");
  CHECK_THAT(Text(mine), Catch::Matchers::Contains("secret-value"));
  CHECK_THAT(Text(mine), Catch::Matchers::Contains("secret-command"));
  CHECK_THAT(Text(mine), Catch::Matchers::Contains("secret-label"));
  const v1::Job theirs = JobAs(*bob, "train");
  CHECK_THAT(Text(theirs), !Catch::Matchers::Contains("secret"));
  CHECK(theirs.spec().queue() == "team-a");
  CHECK(theirs.status().owner() == "owner");
  CHECK(theirs.status().state() == v1::JOB_PENDING);
  CHECK(theirs.status().reasons_size() > 0);
  CHECK(theirs.spec().groups(0).resources().cpu_millis() == 1000);
  v1::ListJobsResponse listed;
  REQUIRE(Call(*bob->jobs, &v1::JobService::Stub::ListJobs, v1::ListJobsRequest(), &listed).ok());
  CHECK(listed.jobs_size() == 2);
  CHECK_THAT(Text(listed), !Catch::Matchers::Contains("secret"));
}

TEST_CASE("shown: filters tell nothing that the answer would not") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  const auto bob = world.User("bob");
  v1::JobFilter label;
  (*label.mutable_labels())["project"] = "secret-label";
  CHECK(JobsOf(world.root(), label) == Names{"theirs", "train"});
  CHECK(JobsOf(*world.User("owner"), label) == Names{"train"});
  CHECK(JobsOf(*bob, label) == Names{});
  v1::ListJobsRequest request;
  request.mutable_filter()->set_queue("other");
  v1::ListJobsResponse response;
  CHECK(absl::IsNotFound(Call(*bob->jobs, &v1::JobService::Stub::ListJobs, request, &response)));
  request.mutable_filter()->set_queue("no-such");
  CHECK(absl::IsNotFound(Call(*bob->jobs, &v1::JobService::Stub::ListJobs, request, &response)));
  request.mutable_filter()->clear_queue();
  request.mutable_filter()->set_node("n9");
  CHECK(absl::IsPermissionDenied(
      Call(*bob->jobs, &v1::JobService::Stub::ListJobs, request, &response)));
  CHECK(absl::IsNotFound(
      Call(*world.root().jobs, &v1::JobService::Stub::ListJobs, request, &response)));
}

TEST_CASE("shown: a job that one may not list is no dependency, and its queue is not named") {
  AccessWorld world;
  world.Grant("bob", "submitter", "team");
  const auto bob = world.User("bob");
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob("after", "team-a");
  request.mutable_jobs(0)->mutable_spec()->add_dependencies()->set_job("theirs");
  request.mutable_jobs(0)->mutable_spec()->mutable_dependencies(0)->set_condition(
      v1::JobDependency::AFTER_OK);
  v1::SubmitJobsResponse response;
  const absl::Status hidden =
      Call(*bob->jobs, &v1::JobService::Stub::SubmitJobs, request, &response);
  CHECK(absl::IsNotFound(hidden));
  request.mutable_jobs(0)->mutable_spec()->mutable_dependencies(0)->set_job("train");
  CHECK(Call(*bob->jobs, &v1::JobService::Stub::SubmitJobs, request, &response).ok());
  *request.mutable_jobs(0) = SmallJob("x", "no-such");
  const absl::Status no_queue =
      Call(*bob->jobs, &v1::JobService::Stub::SubmitJobs, request, &response);
  CHECK(absl::IsNotFound(no_queue));
  CHECK_THAT(std::string(ViolationsOf(no_queue)[0].description),
             Catch::Matchers::Contains("team-a") && !Catch::Matchers::Contains("other"));
}

TEST_CASE("shown: for another user only with job.submitFor, and the job is theirs") {
  AccessWorld world;
  world.Grant("bob", "submitter", "team");
  world.Grant("service", "submitter", "team");
  v1::ChangeAccessRequest change;
  v1::AccessRole* role = change.add_set_roles();
  role->set_name("on-behalf");
  role->add_verbs("job.submitFor");
  v1::AccessGrant* grant = change.add_grant();
  grant->mutable_subject()->set_user("service");
  grant->set_role("on-behalf");
  grant->set_queue("team");
  REQUIRE(world.Change(world.root(), change).ok());
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob("for-ada", "team-a");
  request.set_on_behalf_of("ada");
  v1::SubmitJobsResponse response;
  const auto bob = world.User("bob"), service = world.User("service"), ada = world.User("ada");
  CHECK(absl::IsPermissionDenied(
      Call(*bob->jobs, &v1::JobService::Stub::SubmitJobs, request, &response)));
  REQUIRE(Call(*service->jobs, &v1::JobService::Stub::SubmitJobs, request, &response).ok());
  CHECK(JobAs(*ada, "for-ada").status().owner() == "ada");
  request.set_on_behalf_of("a\"b");
  CHECK(absl::IsInvalidArgument(
      Call(*service->jobs, &v1::JobService::Stub::SubmitJobs, request, &response)));
}

// The events of a watch until it has been quiet, and its end.
class Watching {
 public:
  explicit Watching(Door& door, const v1::WatchRequest& request = {}) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    stream_ = door.watch->Watch(&context_, request);
    open_ = stream_->Read(&last_);
  }
  ~Watching() { context_.TryCancel(); }
  bool open() const { return open_; }
  uint64_t revision() const { return last_.revision(); }
  // Until the job with this name was deleted, or the stream ends.
  std::string Until(const std::string& deleted) {
    std::string text;
    for (bool more = open_; more; more = stream_->Read(&last_)) {
      text += Text(last_);
      for (const v1::ChangeEvent& event : last_.events()) {
        if (event.type() == v1::ChangeEvent::JOB_DELETED && event.job() == deleted) return text;
      }
    }
    return text;
  }
  absl::Status End() {
    v1::WatchResponse response;
    while (stream_->Read(&response)) {
    }
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchResponse>> stream_;
  v1::WatchResponse last_;
  bool open_ = false;
};

void CancelAndDelete(Door& door, const std::string& name) {
  v1::CancelJobRequest cancel;
  cancel.set_name(name);
  cancel.set_reason("secret-reason");
  v1::Job job;
  REQUIRE(Call(*door.jobs, &v1::JobService::Stub::CancelJob, cancel, &job).ok());
  v1::DeleteJobRequest remove;
  remove.set_name(name);
  v1::DeleteJobResponse response;
  REQUIRE(Call(*door.jobs, &v1::JobService::Stub::DeleteJob, remove, &response).ok());
}

TEST_CASE("shown: a watch tells what one may list, without messages of jobs of others") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  const auto bob = world.User("bob"), owner = world.User("owner");
  v1::WatchRequest with_queues;
  with_queues.set_queues(true);
  Watching of_bob(*bob, with_queues), of_owner(*owner, with_queues);
  REQUIRE((of_bob.open() && of_owner.open()));
  v1::CloseQueueRequest close;
  v1::Queue queue;
  for (const char* name : {"other", "team-a"}) {
    close.set_name(name);
    REQUIRE(Call(*world.root().queues, &v1::QueueService::Stub::CloseQueue, close, &queue).ok());
  }
  CancelAndDelete(world.root(), "theirs");
  CancelAndDelete(*owner, "train");
  const std::string seen = of_bob.Until("train"), owned = of_owner.Until("train");
  for (const std::string& text : {seen, owned}) {
    CHECK_THAT(text, !Catch::Matchers::Contains("theirs"));
    CHECK_THAT(text, !Catch::Matchers::Contains("\"other\""));
    CHECK_THAT(text, Catch::Matchers::Contains("JOB_DELETED"));
  }
  CHECK_THAT(seen, Catch::Matchers::Contains("queue: \"team-a\""));
  CHECK_THAT(seen, !Catch::Matchers::Contains("secret-reason"));
  CHECK_THAT(owned, !Catch::Matchers::Contains("queue: \"team-a\""));
  CHECK_THAT(owned, Catch::Matchers::Contains("secret-reason"));
}

TEST_CASE("shown: a watch from before a job's end shows as much after its deletion") {
  AccessWorld world;
  world.Grant("bob", "viewer", "team");
  world.Grant("carol", "viewer", "other");
  const auto bob = world.User("bob"), carol = world.User("carol"), owner = world.User("owner");
  v1::WatchRequest resumed;
  resumed.set_from_revision(Watching(world.root()).revision());
  CancelAndDelete(*owner, "train");
  CancelAndDelete(world.root(), "theirs");
  const std::string owned = Watching(*owner, resumed).Until("train");
  CHECK_THAT(owned, Catch::Matchers::Contains("job_state: JOB_CANCELLED"));
  CHECK_THAT(owned, Catch::Matchers::Contains("secret-reason"));
  CHECK_THAT(owned, !Catch::Matchers::Contains("theirs"));
  const std::string seen = Watching(*bob, resumed).Until("train");
  CHECK_THAT(seen, Catch::Matchers::Contains("job_state: JOB_CANCELLED"));
  CHECK_THAT(seen, !Catch::Matchers::Contains("secret-reason"));
  CHECK_THAT(seen, !Catch::Matchers::Contains("theirs"));
  const std::string others = Watching(*carol, resumed).Until("theirs");
  CHECK_THAT(others, Catch::Matchers::Contains("job_state: JOB_CANCELLED"));
  CHECK_THAT(others, !Catch::Matchers::Contains("train"));
}

TEST_CASE("shown: a watch ends when its right does") {
  AccessWorld world;
  world.Grant("bob", "viewer", "");
  const auto bob = world.User("bob"), carol = world.User("carol");
  v1::WatchRequest nodes;
  nodes.set_nodes(true);
  Watching of_bob(*bob, nodes), of_carol(*carol, nodes);
  CHECK(of_bob.open());
  CHECK_FALSE(of_carol.open());
  CHECK(absl::IsPermissionDenied(of_carol.End()));
  Watching jobs(*bob);
  world.Revoke("bob", "viewer", "");
  CHECK(absl::IsPermissionDenied(of_bob.End()));
  // Without rights it goes on, as an empty list would be answered; until the user is revoked.
  v1::ChangeAccessRequest change;
  change.add_refuse()->set_user("bob");
  REQUIRE(world.Change(world.root(), change).ok());
  const absl::Status end = jobs.End();
  CHECK(absl::IsPermissionDenied(end));
  CHECK(end.message() == "the certificate of user \"bob\" is revoked");
}

TEST_CASE("shown: a watch ends with its certificate, and so do calls over the connection") {
  AccessWorld world;
  world.Grant("bob", "viewer", "");
  const auto bob = world.User("bob", {}, absl::Seconds(4));
  Watching jobs(*bob);
  REQUIRE(jobs.open());
  const absl::Status end = jobs.End();
  INFO(end);
  CHECK(absl::IsUnauthenticated(end));
  v1::ListQueuesResponse response;
  const absl::Status call =
      Call(*bob->queues, &v1::QueueService::Stub::ListQueues, v1::ListQueuesRequest(), &response);
  CHECK(absl::IsUnauthenticated(call));
}

// A node's agent that has registered.
struct Registered {
  Registered(Door& node, const std::string& name) : stream(node.agents->Connect(&context)) {
    v1::AgentMessage message;
    message.mutable_hello()->set_node(name);
    message.mutable_hello()->set_agent_id("a");
    message.mutable_hello()->set_boot_id("b");
    message.mutable_hello()->mutable_inventory()->set_cpu_millis(1000);
    stream->Write(message);
    v1::ServerMessage answer;
    welcome = stream->Read(&answer) && answer.has_welcome();
  }
  absl::Status End() {
    v1::ServerMessage answer;
    while (stream->Read(&answer)) {
    }
    return FromGrpcStatus(stream->Finish());
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentMessage, v1::ServerMessage>> stream;
  bool welcome = false;
};

TEST_CASE("shown: an agent is cut off when its node is revoked") {
  AccessWorld world;
  const auto node = world.Node("n1");
  Registered agent(*node, "n1");
  REQUIRE(agent.welcome);
  v1::ChangeAccessRequest change;
  change.add_refuse()->set_node("n1");
  REQUIRE(world.Change(world.root(), change).ok());
  CHECK(absl::IsPermissionDenied(agent.End()));
}

TEST_CASE("shown: an agent's stream ends with its certificate, and a renewed one goes on") {
  AccessWorld world;
  const auto node = world.Node("n1", absl::Seconds(4));
  Registered agent(*node, "n1");
  REQUIRE(agent.welcome);
  const absl::Time begin = absl::Now();
  const absl::Status end = agent.End();
  INFO(end);
  CHECK(absl::IsUnauthenticated(end));
  CHECK(absl::Now() - begin > absl::Seconds(2));
  // The connection is still there; the next stream on it ends it, so that the agent connects anew.
  Registered again(*node, "n1");
  CHECK_FALSE(again.welcome);
  CHECK(absl::IsUnavailable(again.End()));
  const auto renewed = world.Node("n1");
  Registered after(*renewed, "n1");
  CHECK(after.welcome);
}

}  // namespace
}  // namespace berth::testing
