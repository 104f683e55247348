// Jobs by uid, and requeues, over gRPC.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/service_world.h"

namespace berth::testing {
namespace {

using Stub = v1::JobService::Stub;

TEST_CASE("service: a job by its uid") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  const uint64_t uid = world.MustGetJob("a").uid();
  v1::GetJobRequest request;
  v1::Job job;
  request.set_uid(uid);
  REQUIRE(Call(*world.jobs, &Stub::GetJob, request, &job).ok());
  CHECK(job.name() == "a");
  request.set_name("a");
  CHECK(absl::IsInvalidArgument(Call(*world.jobs, &Stub::GetJob, request, &job)));
  request.clear_name();
  request.set_uid(uid + 1);
  const absl::Status missing = Call(*world.jobs, &Stub::GetJob, request, &job);
  CHECK(absl::IsNotFound(missing));
  CHECK(missing.message() == absl::StrCat("there is no job with uid ", uid + 1));
}

TEST_CASE("service: requeue of a job that waits, and of one that has ended") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a"});
  v1::RequeueJobRequest request;
  request.set_name("a");
  v1::Job job;
  REQUIRE(Call(*world.jobs, &Stub::RequeueJob, request, &job).ok());
  CHECK(job.status().state() == v1::JOB_PENDING);  // nothing to stop
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  REQUIRE(Call(*world.jobs, &Stub::CancelJob, cancel, &job).ok());
  const absl::Status ended = Call(*world.jobs, &Stub::RequeueJob, request, &job);
  CHECK(absl::IsFailedPrecondition(ended));
  request.set_name("ghost");
  CHECK(absl::IsNotFound(Call(*world.jobs, &Stub::RequeueJob, request, &job)));
}

}  // namespace
}  // namespace berth::testing
