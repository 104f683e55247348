// Watch over real gRPC, with a restart in between.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/unit/server/service_world.h"

namespace berth::testing {
namespace {

// Reads until the named jobs were reported as submitted, in order; returns the last revision.
uint64_t ReadSubmitted(grpc::ClientReader<v1::WatchResponse>& reader,
                       const std::vector<std::string>& names) {
  size_t next = 0;
  v1::WatchResponse answer;
  while (next < names.size() && reader.Read(&answer)) {
    for (const v1::ChangeEvent& event : answer.events()) {
      if (event.type() != v1::ChangeEvent::JOB_SUBMITTED) continue;
      REQUIRE(next < names.size());
      CHECK(event.job() == names[next]);
      CHECK(event.job_uid() > 0);
      ++next;
    }
  }
  CHECK(next == names.size());
  return answer.revision();
}

}  // namespace

TEST_CASE("service: a watch reports jobs in order and resumes over a restart") {
  ServiceWorld world;
  world.CreateQueue("q");
  uint64_t revision = 0;
  {
    grpc::ClientContext context;
    auto reader = world.watch->Watch(&context, v1::WatchRequest());
    v1::WatchResponse initial;
    REQUIRE(reader->Read(&initial));
    CHECK(initial.events().empty());
    world.MustSubmit({"a", "b"});
    revision = ReadSubmitted(*reader, {"a", "b"});
    context.TryCancel();
    CHECK(absl::IsCancelled(FromGrpcStatus(reader->Finish())));
  }
  world.MustSubmit({"c"});
  world.Restart();
  world.MustSubmit({"d"});
  grpc::ClientContext context;
  v1::WatchRequest request;
  request.set_from_revision(revision);
  auto reader = world.watch->Watch(&context, request);
  ReadSubmitted(*reader, {"c", "d"});
  context.TryCancel();
  reader->Finish();
}

TEST_CASE("service: invalid watches are refused with reasons") {
  ServiceWorld world([](config::v1::Server& config) { config.mutable_limits()->set_watchers(1); });
  world.CreateQueue("q");
  const auto refusal = [&](const v1::WatchRequest& request) {
    grpc::ClientContext context;
    auto reader = world.watch->Watch(&context, request);
    return FromGrpcStatus(reader->Finish());
  };
  v1::WatchRequest nothing;
  nothing.set_no_jobs(true);
  CHECK(absl::IsInvalidArgument(refusal(nothing)));
  v1::WatchRequest many;
  for (int i = 0; i < 10'001; ++i) many.add_jobs("j");
  CHECK(absl::IsInvalidArgument(refusal(many)));
  v1::WatchRequest future;
  future.set_from_revision(1000);
  CHECK(absl::IsOutOfRange(refusal(future)));
  grpc::ClientContext context;
  auto first = world.watch->Watch(&context, v1::WatchRequest());
  v1::WatchResponse initial;
  REQUIRE(first->Read(&initial));
  CHECK(absl::IsResourceExhausted(refusal(v1::WatchRequest())));
  context.TryCancel();
  first->Finish();
}

TEST_CASE("service: a stop ends watches") {
  auto world = std::make_unique<ServiceWorld>();
  grpc::ClientContext context;
  auto reader = world->watch->Watch(&context, v1::WatchRequest());
  v1::WatchResponse initial;
  REQUIRE(reader->Read(&initial));
  world->app().Stop();
  CHECK_FALSE(reader->Read(&initial));
  CHECK(absl::IsUnavailable(FromGrpcStatus(reader->Finish())));
}

}  // namespace berth::testing
