#include "clients/cpp/retry.h"

#include <catch2/catch.hpp>

#include "support/errors.h"
#include "tests/unit/client/fake_world.h"

namespace berth {
namespace {

TEST_CASE("a final answer is returned at once") {
  for (const absl::Status& answer :
       {absl::OkStatus(), absl::NotFoundError("x"), absl::InvalidArgumentError("x"),
        absl::DeadlineExceededError("x"), absl::AbortedError("x"), absl::UnimplementedError("x")}) {
    FakeWorld world;
    int attempts = 0;
    const absl::Status status =
        Retry(RetryPolicy(), world.environment(), absl::Seconds(30), [&](absl::Duration left) {
          CHECK(left == absl::Seconds(30));
          ++attempts;
          return answer;
        });
    CHECK(status == answer);
    CHECK(attempts == 1);
    CHECK(world.sleeps.empty());
  }
}

TEST_CASE("errors that depend on the server's state are retried") {
  for (const absl::Status& answer : {absl::UnavailableError("x"), absl::ResourceExhaustedError("x"),
                                     absl::CancelledError("x")}) {
    FakeWorld world;
    int attempts = 0;
    CHECK(Retry(RetryPolicy(), world.environment(), absl::Seconds(30), [&](absl::Duration) {
            return ++attempts < 3 ? answer : absl::OkStatus();
          }).ok());
    CHECK(attempts == 3);
  }
}

TEST_CASE("an absent server is retried until it is up") {
  FakeWorld world;
  int attempts = 0;
  const absl::Status status =
      Retry(RetryPolicy(), world.environment(), absl::Seconds(30), [&](absl::Duration) {
        return ++attempts < 4 ? absl::UnavailableError("away") : absl::OkStatus();
      });
  CHECK(status.ok());
  CHECK(attempts == 4);
  REQUIRE(world.sleeps.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(world.sleeps[i] <= absl::Milliseconds(100 << i));
}

TEST_CASE("back-off is jittered over its whole range, doubles, and is bounded") {
  Random random(3);
  RetryPolicy policy;
  policy.max_backoff = absl::Seconds(1);
  bool low = false;
  bool high = false;
  for (int round = 0; round < 200; ++round) {
    Backoff backoff(policy, &random);
    for (int i = 0; i < 4; ++i) backoff.Next(absl::ZeroDuration());
    const absl::Duration wait = backoff.Next(absl::ZeroDuration());
    CHECK(wait <= absl::Seconds(1));
    low |= wait < absl::Milliseconds(100);
    high |= wait > absl::Milliseconds(900);
  }
  CHECK((low && high));
}

TEST_CASE("the server's delay is a lower bound") {
  FakeWorld world;
  int attempts = 0;
  const absl::Status status =
      Retry(RetryPolicy(), world.environment(), absl::Seconds(30), [&](absl::Duration) {
        if (++attempts > 1) return absl::OkStatus();
        return RetryLaterError(absl::StatusCode::kResourceExhausted, "full", absl::Seconds(5));
      });
  CHECK(status.ok());
  REQUIRE(world.sleeps.size() == 1);
  CHECK(world.sleeps[0] >= absl::Seconds(5));
  CHECK(world.sleeps[0] <= absl::Milliseconds(5100));
}

TEST_CASE("the timeout bounds all attempts together, and no wait starts that would exceed it") {
  FakeWorld world;
  const absl::Duration begin = world.Steady();
  const absl::Status status = Retry(RetryPolicy(), world.environment(), absl::Seconds(3),
                                    [](absl::Duration) { return absl::UnavailableError("away"); });
  CHECK(absl::IsUnavailable(status));
  CHECK(world.Steady() - begin < absl::Seconds(3));
  FakeWorld other;
  const absl::Status late =
      Retry(RetryPolicy(), other.environment(), absl::Seconds(3), [](absl::Duration) {
        return RetryLaterError(absl::StatusCode::kUnavailable, "later", absl::Seconds(4));
      });
  CHECK(absl::IsUnavailable(late));
  CHECK(other.sleeps.empty());
}

TEST_CASE("attempts are bounded") {
  FakeWorld world;
  RetryPolicy policy;
  policy.max_attempts = 5;
  int attempts = 0;
  const absl::Status status =
      Retry(policy, world.environment(), absl::InfiniteDuration(), [&](absl::Duration) {
        ++attempts;
        return absl::UnavailableError("away");
      });
  CHECK(absl::IsUnavailable(status));
  CHECK(attempts == 5);
}

}  // namespace
}  // namespace berth
