// Writes that are repeated with the request id of their metadata.
#include <catch2/catch.hpp>
#include <string>

#include "support/request_id.h"
#include "tests/unit/server/service_world.h"

namespace berth::testing {
namespace {

using Stub = v1::JobService::Stub;

// With a request id in the metadata, as clients give it.
template <class Request, class Response>
absl::Status CallWithId(ServiceWorld& world, const std::string& id,
                        grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, Response* response) {
  grpc::ClientContext context;
  context.AddMetadata(kRequestIdMetadata, id);
  return FromGrpcStatus(((*world.jobs).*method)(&context, request, response));
}

}  // namespace

TEST_CASE("service: a write that is repeated with its id is done once, even after a restart") {
  ServiceWorld world;
  world.CreateQueue("q");
  world.MustSubmit({"a", "b"});
  v1::UpdateJobRequest update;
  update.mutable_job()->set_name("a");
  update.mutable_job()->mutable_spec()->set_priority(5);
  update.mutable_update_mask()->add_paths("spec.priority");
  v1::Job first, response;
  REQUIRE(CallWithId(world, "id-1", &Stub::UpdateJob, update, &first).ok());
  update.mutable_job()->mutable_spec()->set_priority(7);
  REQUIRE(CallWithId(world, "id-2", &Stub::UpdateJob, update, &response).ok());
  for (int i = 0; i < 2; ++i) {
    update.mutable_job()->mutable_spec()->set_priority(5);
    REQUIRE(CallWithId(world, "id-1", &Stub::UpdateJob, update, &response).ok());
    CHECK(response.SerializeAsString() == first.SerializeAsString());
    CHECK(world.MustGetJob("a").spec().priority() == 7);
    world.Restart();
  }
  // It belongs to this method and job.
  update.mutable_job()->set_name("b");
  CHECK(CallWithId(world, "id-1", &Stub::UpdateJob, update, &response) ==
        absl::AlreadyExistsError(
            "berth-request-id \"id-1\" was used for another call; choose a new id"));
  CHECK(absl::IsInvalidArgument(
      CallWithId(world, std::string(129, 'x'), &Stub::UpdateJob, update, &response)));
  CHECK(world.MustGetJob("b").spec().priority() == 0);
  // Errors are not kept.
  v1::DeleteJobRequest remove;
  remove.set_name("b");
  v1::DeleteJobResponse removed;
  CHECK(absl::IsFailedPrecondition(CallWithId(world, "id-3", &Stub::DeleteJob, remove, &removed)));
  v1::CancelJobRequest cancel;
  cancel.set_name("b");
  REQUIRE(CallWithId(world, "id-4", &Stub::CancelJob, cancel, &response).ok());
  for (int i = 0; i < 2; ++i) {
    CHECK(CallWithId(world, "id-3", &Stub::DeleteJob, remove, &removed).ok());
  }
  CHECK(absl::IsNotFound(CallWithId(world, "id-5", &Stub::DeleteJob, remove, &removed)));
}

}  // namespace berth::testing
