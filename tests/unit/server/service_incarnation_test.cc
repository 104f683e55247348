// What clients see of a store's incarnation.
#include <catch2/catch.hpp>

#include "storage/incarnation.h"
#include "tests/unit/server/service_world.h"

namespace berth {
namespace {

using testing::ServiceWorld;

// Revisions repeat after a restore: a watch that continued there would miss changes.
TEST_CASE("service: a watch does not continue in another incarnation") {
  ServiceWorld world({}, kStoreFormat, 9);
  world.CreateQueue("main");
  const auto watch = [&](uint64_t incarnation, v1::WatchResponse* initial) {
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_from_revision(1);
    request.set_incarnation(incarnation);
    auto reader = world.watch->Watch(&context, request);
    const bool read = reader->Read(initial);
    if (read) context.TryCancel();
    const grpc::Status status = reader->Finish();
    return read ? grpc::StatusCode::OK : status.error_code();
  };
  v1::WatchResponse initial;
  CHECK(watch(9, &initial) == grpc::StatusCode::OK);
  CHECK(initial.incarnation() == 9);
  CHECK(watch(0, &initial) == grpc::StatusCode::OK);
  CHECK(watch(8, &initial) == grpc::StatusCode::OUT_OF_RANGE);
}

TEST_CASE("service: cluster info returns the incarnation, and job uids start from it") {
  constexpr uint64_t kIncarnation = 1'795'489'200'000;  // 2026-11-24T03:00Z
  ServiceWorld world({}, kStoreFormat, kIncarnation);
  world.CreateQueue("q");
  v1::ClusterInfo info;
  REQUIRE(testing::Call(*world.cluster, &v1::ClusterService::Stub::GetClusterInfo,
                        v1::GetClusterInfoRequest(), &info)
              .ok());
  CHECK(info.incarnation() == kIncarnation);
  const v1::SubmitJobsResponse submitted = world.MustSubmit({"one", "two"});
  CHECK(submitted.jobs(0).uid() == FirstJobOf(kIncarnation).value);
  CHECK(submitted.jobs(1).uid() == submitted.jobs(0).uid() + 1);
  world.Restart();
  CHECK(world.MustGetJob("two").uid() == submitted.jobs(1).uid());
  CHECK(world.MustSubmit({"three"}).jobs(0).uid() == submitted.jobs(1).uid() + 1);
}

}  // namespace
}  // namespace berth
