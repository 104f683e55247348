// Submission: Check and Apply disagree, which only a bug in Berth can cause.
#include "server/commands/submission.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "core/model/image_id.h"
#include "core/model/state_editor.h"
#include "storage/codec.h"
#include "tests/unit/server/checked_submission.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth {
namespace {

using testing::Checked;
using testing::DefaultLimits;
using testing::SmallJob;
using testing::World;

struct Submitted {
  absl::Status status;
  v1::SubmitJobsResponse response;
};

v1::SubmitJobsRequest Request(const std::vector<std::string>& names) {
  v1::SubmitJobsRequest request;
  for (const std::string& name : names) *request.add_jobs() = SmallJob(name, "main");
  return request;
}

v1::SubmitJobsRequest ThreeJobs() {
  v1::SubmitJobsRequest request = Request({"one", "two", "three"});
  request.set_request_id("again and again");
  v1::JobDependency* dependency = request.mutable_jobs(1)->mutable_spec()->add_dependencies();
  dependency->set_job("one");
  dependency->set_condition(v1::JobDependency::AFTER_OK);
  v1::ResourceRequest* resources =
      request.mutable_jobs(2)->mutable_spec()->mutable_groups(0)->mutable_resources();
  v1::DeviceRequest* device = resources->add_devices();
  device->set_kind("gpu");
  device->set_count(1);
  return request;
}

// Changes the checked request, so that Apply refuses its last job: as if validation lacked a rule.
void Spoil(v1::SubmitJobsRequest& request) {
  request.mutable_jobs(2)->mutable_spec()->mutable_groups(0)->set_min_available(2);
}

// Checks the request now; the next turn submits it.
void Post(World& world, RequestTable& requests, const v1::SubmitJobsRequest& request,
          Submitted* submitted, JobId first_job = JobId{1}, const std::string& owner = "") {
  REQUIRE(world.loop
              ->Post([&requests, checked = Checked(world, request), submitted, first_job,
                      owner](Turn& turn) {
                Submission submission(checked, DefaultLimits(), {}, owner);
                submitted->status =
                    submission.Commit(turn, requests, first_job, submitted->response);
              })
              .ok());
}

// Names of the submitted jobs in the log.
std::vector<std::string> LoggedJobs(const Store& store) {
  std::vector<std::string> names;
  const absl::StatusOr<std::vector<LogEntry>> log = store.ReadLog(0, 1000);
  REQUIRE(log.ok());
  for (const LogEntry& entry : *log) {
    const absl::StatusOr<store::v1::LogTurn> turn = ParseTurn(entry.turn);
    REQUIRE(turn.ok());
    for (const store::v1::LogEvent& event : turn->events()) {
      if (event.has_job_submitted()) names.push_back(event.job_submitted().spec().name());
    }
  }
  return names;
}

TEST_CASE("submission: a job that only Apply refuses leaves no trace of its call") {
  const JobId first_job = GENERATE(JobId{1}, JobId{uint64_t{1} << 44});
  World world;
  RequestTable requests;
  const uint64_t before = Fingerprint(world.state());
  const size_t batches = world.committer.batches;
  for (int time = 0; time < 3; ++time) {
    v1::SubmitJobsRequest request = ThreeJobs();
    Submitted refused;
    Post(world, requests, request, &refused, first_job);
    Spoil(request);
    world.Run();
    CHECK(absl::IsInternal(refused.status));
    CHECK(refused.status.message().find("jobs[2] was refused: ") == 0);
    CHECK(Fingerprint(world.state()) == before);
    CHECK(CheckConsistency(world.state()).ok());
    CHECK(world.committer.batches == batches);
    CHECK(requests.size() == 0);
  }
  CHECK(LoggedJobs(world.store).empty());
}

TEST_CASE("submission: a refused call does not affect other calls of its turn") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  RequestTable requests;
  const size_t batches = world.committer.batches;
  v1::SubmitJobsRequest requests_in_turn[] = {Request({"first"}), ThreeJobs(),
                                              Request({"one", "last"})};
  Submitted submitted[3];
  for (int i = 0; i < 3; ++i) Post(world, requests, requests_in_turn[i], &submitted[i]);
  Spoil(requests_in_turn[1]);
  world.Run();
  CHECK(submitted[0].status.ok());
  CHECK(absl::IsInternal(submitted[1].status));
  REQUIRE(submitted[2].status.ok());
  const uint64_t first = submitted[0].response.jobs(0).uid();
  CHECK(submitted[2].response.jobs(0).uid() == first + 1);
  CHECK(submitted[2].response.jobs(1).uid() == first + 2);
  CHECK(world.committer.batches > batches);
  CHECK(LoggedJobs(world.store) == std::vector<std::string>{"first", "one", "last"});
  CHECK(CheckConsistency(world.state()).ok());

  // Each job has its own command.
  agent.Work();
  for (uint64_t id = first; id < first + 3; ++id) CHECK(agent.Runs(JobId{id}));
  const uint64_t live = Fingerprint(world.state());
  world.Restart();
  CHECK(Fingerprint(world.state()) == live);
}

void DependOn(v1::SubmitJobsRequest& request, int job, const std::string& on,
              v1::JobDependency::Condition condition) {
  v1::JobDependency* dependency = request.mutable_jobs(job)->mutable_spec()->add_dependencies();
  dependency->set_job(on);
  dependency->set_condition(condition);
}

TEST_CASE("submission: every job gets a larger uid than its dependencies") {
  World world;
  RequestTable requests;
  const JobId stored = world.Submit("stored");
  v1::SubmitJobsRequest request = Request({"last", "free", "middle", "first"});
  DependOn(request, 0, "middle", v1::JobDependency::AFTER_OK);
  DependOn(request, 0, "stored", v1::JobDependency::AFTER_ANY);
  DependOn(request, 2, "first", v1::JobDependency::AFTER_NOT_OK);
  Submitted submitted;
  Post(world, requests, request, &submitted);
  world.Run();
  REQUIRE(submitted.status.ok());
  const JobId last{submitted.response.jobs(0).uid()}, free{submitted.response.jobs(1).uid()},
      middle{submitted.response.jobs(2).uid()}, first{submitted.response.jobs(3).uid()};
  CHECK(stored < first);
  CHECK(first < middle);
  CHECK(middle < last);
  CHECK(last < free);
  for (int i = 0; i < 4; ++i) {
    CHECK(world.job({submitted.response.jobs(i).uid()}).name == request.jobs(i).name());
  }
  const auto& dependencies = world.job(last).dependencies;
  REQUIRE(dependencies.size() == 2);
  CHECK(dependencies[0].job == middle);
  CHECK(dependencies[0].condition == DependencyCondition::kAfterOk);
  CHECK(dependencies[1].job == stored);
  CHECK(dependencies[1].condition == DependencyCondition::kAfterAny);
  REQUIRE(world.job(middle).dependencies.size() == 1);
  CHECK(world.job(middle).dependencies[0].job == first);
  CHECK(world.job(free).dependencies.empty());
  CHECK(world.job(first).dependencies.empty());
}

// A store that was restored, or a new one: uids jump, and only earlier jobs have smaller ones.
TEST_CASE("submission: uids continue from the first one of the store's incarnation") {
  World world;
  testing::Agent agent(&world, "n1");
  agent.Connect();
  RequestTable requests;
  const JobId old = world.Submit("old");
  const JobId first_job{uint64_t{29'636'532'633'600}};
  for (uint64_t i = 0; i < 3; ++i) {
    Submitted submitted;
    const v1::SubmitJobsRequest request = Request({absl::StrCat("j", i), ""});
    Post(world, requests, request, &submitted, first_job);
    world.Run();
    REQUIRE(submitted.status.ok());
    CHECK(submitted.response.jobs(0).uid() == first_job.value + 2 * i);
    CHECK(submitted.response.jobs(1).name() == absl::StrCat("job-", first_job.value + 2 * i + 1));
  }
  agent.Work();
  CHECK(agent.Runs(old));
  CHECK(agent.Runs(JobId{first_job.value + 5}));
  const uint64_t live = Fingerprint(world.state());
  world.Restart();
  CHECK(Fingerprint(world.state()) == live);
  CHECK(CheckConsistency(world.state()).ok());
}

TEST_CASE("submission: a request id belongs to the user who used it first") {
  World world;
  RequestTable requests;
  v1::SubmitJobsRequest request = Request({"one"});
  request.set_request_id("mine");
  Submitted first, again, other, nobody;
  Post(world, requests, request, &first, JobId{1}, "ada");
  world.Run();
  Post(world, requests, request, &again, JobId{1}, "ada");
  Post(world, requests, request, &other, JobId{1}, "bob");
  Post(world, requests, request, &nobody, JobId{1});
  world.Run();
  REQUIRE(first.status.ok());
  CHECK(world.state().FindJob("one")->owner == "ada");
  CHECK(again.status.ok());
  CHECK(again.response.jobs(0).uid() == first.response.jobs(0).uid());
  for (const Submitted* refused : {&other, &nobody}) {
    CHECK(absl::IsAlreadyExists(refused->status));
    CHECK(refused->status.message() ==
          "request_id \"mine\" was used by another user; choose a new id");
    CHECK(refused->response.jobs().empty());
  }
}

// Of the group of the only job, submitted while the store had that format.
ImageId ImageInFormat(uint32_t format, const std::string& image) {
  World world;
  RequestTable requests;
  v1::SubmitJobsRequest request = Request({"one"});
  request.mutable_jobs(0)->mutable_spec()->mutable_groups(0)->set_image(image);
  ReadView view(*world.loop);
  const auto checked = CheckSubmission(view, request, DefaultLimits(), format);
  REQUIRE(checked.ok());
  REQUIRE(world.loop
              ->Post([&](Turn& turn) {
                v1::SubmitJobsResponse response;
                Submission submission(*checked, DefaultLimits(), {}, "");
                REQUIRE(submission.Commit(turn, requests, JobId{1}, response).ok());
              })
              .ok());
  world.Run();
  const Group& group = world.state().FindJob("one")->groups[0];
  CHECK(group.has_image == !image.empty());
  return group.image;
}

TEST_CASE("submission: what the image is, is known in stores that can hold it") {
  CHECK(ImageInFormat(10, "r.example/a:1") == ImageIdOf("r.example/a:1"));
  CHECK(ImageInFormat(10, "") == ImageId{});
  CHECK(ImageInFormat(9, "r.example/a:1") == ImageId{});
}

}  // namespace
}  // namespace berth
