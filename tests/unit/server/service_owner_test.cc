// Owners of jobs, over gRPC.
#include <catch2/catch.hpp>

#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {

TEST_CASE("service: the owner of a job is who the connection says, and can be listed") {
  ServiceWorld world([](config::v1::Server& config) {
    config.mutable_access()->mutable_without_tls()->set_user("ada");
  });
  world.CreateQueue("q");
  v1::SubmitJobsRequest request;
  *request.add_jobs() = SmallJob("a");
  request.mutable_jobs(0)->mutable_spec()->set_user("somebody");
  request.mutable_jobs(0)->mutable_status()->set_owner("root");
  v1::SubmitJobsResponse response;
  const absl::Status refused = world.Submit(request, &response);
  CHECK(absl::IsInvalidArgument(refused));  // status is the server's
  request.mutable_jobs(0)->clear_status();
  REQUIRE(world.Submit(request, &response).ok());
  const auto owners = [&](const std::string& owner) {
    v1::ListJobsRequest list;
    list.mutable_filter()->set_owner(owner);
    v1::ListJobsResponse jobs;
    REQUIRE(Call(*world.jobs, &v1::JobService::Stub::ListJobs, list, &jobs).ok());
    return jobs.jobs_size();
  };
  for (int restart = 0; restart < 2; ++restart) {
    const v1::Job job = world.MustGetJob("a");
    CHECK(job.status().owner() == "ada");
    CHECK(job.spec().user() == "somebody");
    CHECK(owners("ada") == 1);
    CHECK(owners("somebody") == 0);
    world.Restart();
  }
  v1::ListJobsRequest list;
  list.mutable_filter()->set_owner(std::string(254, 'a'));
  v1::ListJobsResponse jobs;
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &v1::JobService::Stub::ListJobs, list, &jobs)));
}

TEST_CASE("service: without an identity a job has no owner") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  CHECK(world.MustGetJob("a").status().owner().empty());
}

}  // namespace berth::testing
