// What one user may have under way, and own.
#include "server/access/user_shares.h"

#include <catch2/catch.hpp>
#include <vector>

#include "server/listeners/owned_jobs.h"
#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

Caller NamedUser(const std::string& name) {
  Caller caller;
  caller.principal.name = name;
  return caller;
}

constexpr UserLimits kFew = {.requests = 2, .jobs = 10, .streams = 1, .requests_per_second = 0};

TEST_CASE("user shares: a user's calls under way are bounded, and others are not affected") {
  UserShares shares(kFew);
  const Caller ada = NamedUser("ada"), bob = NamedUser("bob");
  auto first = shares.Begin(ada, 0, false), second = shares.Begin(ada, 0, false);
  REQUIRE((first.ok() && second.ok()));
  const absl::Status third = shares.Begin(ada, 0, false).status();
  CHECK(absl::IsResourceExhausted(third));
  CHECK(RetryDelayOf(third) > absl::ZeroDuration());
  CHECK(third.message() ==
        "\"ada\" may have at most 2 calls under way (limits.requests_per_user); try again later");
  CHECK(shares.Begin(bob, 0, false).ok());
  first->End();
  CHECK(shares.Begin(ada, 0, false).ok());
}

TEST_CASE("user shares: while others call, each has a part, and alone again all") {
  testing::FakeClock clock;
  clock.Advance(absl::Seconds(100));
  UserShares shares({.requests = 512, .jobs = 100, .streams = 1}, &clock);
  const auto most = [&](const std::string& user) {
    std::vector<UserShares::Part> parts;
    for (;;) {
      auto part = shares.Begin(NamedUser(user), 0, false);
      if (!part.ok()) return static_cast<int64_t>(parts.size());
      parts.push_back(*std::move(part));
    }
  };
  CHECK(most("ada") == 512);
  CHECK(most("bob") == UserShares::kTogether / 2);
  CHECK(most("ada") == UserShares::kTogether / 2);
  for (int i = 0; i < 20; ++i) CHECK(most(std::to_string(i)) >= UserShares::kLeast);
  CHECK(most("ada") == UserShares::kLeast);
  clock.Advance(absl::Seconds(3));
  CHECK(most("ada") == 512);
}

TEST_CASE("user shares: what stops something has a reserve") {
  UserShares shares(kFew);
  const Caller ada = NamedUser("ada");
  std::vector<UserShares::Part> held;
  for (int i = 0; i < 2; ++i) held.push_back(*shares.Begin(ada, 0, false));
  CHECK_FALSE(shares.Begin(ada, 0, false).ok());
  for (int i = 0; i < UserShares::kEssential; ++i) held.push_back(*shares.Begin(ada, 0, true));
  CHECK_FALSE(shares.Begin(ada, 0, true).ok());
}

TEST_CASE("user shares: jobs in submissions are bounded, but one call may be large") {
  UserShares shares(kFew);
  const Caller ada = NamedUser("ada");
  auto large = shares.Begin(ada, 1000, false);
  REQUIRE(large.ok());
  CHECK(absl::IsResourceExhausted(shares.Begin(ada, 1, false).status()));
  CHECK(shares.Begin(ada, 0, false).ok());
  large->End();
  auto five = shares.Begin(ada, 5, false);
  CHECK(shares.Begin(ada, 5, false).ok());
  CHECK_FALSE(shares.Begin(ada, 6, false).ok());
}

TEST_CASE("user shares: the tasks of a job share one part, apart from users and nodes") {
  UserShares shares(kFew);
  const auto task_of = [](uint64_t job, uint32_t task) {
    Caller caller;
    caller.principal = {Principal::Kind::kNode, "n1", {}};
    caller.task = CallingTask{.key = {JobId{job}, task}};
    return caller;
  };
  Caller node;
  node.principal = {Principal::Kind::kNode, "n1", {}};
  const auto stream = shares.BeginStream(task_of(7, 0));
  REQUIRE(stream.ok());
  CHECK(absl::IsResourceExhausted(shares.BeginStream(task_of(7, 1)).status()));
  CHECK(shares.BeginStream(task_of(8, 0)).ok());
  CHECK(shares.BeginStream(NamedUser("n1")).ok());
  CHECK(shares.BeginStream(node).ok());
}

TEST_CASE("user shares: streams are counted apart") {
  UserShares shares(kFew);
  const Caller ada = NamedUser("ada");
  auto stream = shares.BeginStream(ada);
  REQUIRE(stream.ok());
  CHECK(absl::IsResourceExhausted(shares.BeginStream(ada).status()));
  CHECK(shares.Begin(ada, 0, false).ok());
  *stream = UserShares::Part();
  CHECK(shares.BeginStream(ada).ok());
}

TEST_CASE("user shares: a rate allows a second's worth at once, and then so many a second") {
  testing::FakeClock clock;
  UserShares shares({.requests = 100, .jobs = 100, .streams = 1, .requests_per_second = 5}, &clock);
  const Caller ada = NamedUser("ada");
  const auto taken = [&] {
    int count = 0;
    while (shares.Begin(ada, 0, false).ok()) ++count;
    return count;
  };
  CHECK(taken() == 5);
  CHECK(taken() == 0);
  CHECK(shares.Begin(ada, 0, true).ok());  // a cancel is not counted
  clock.Advance(absl::Milliseconds(400));
  CHECK(taken() == 2);
  clock.Advance(absl::Seconds(60));
  CHECK(taken() == 5);
}

TEST_CASE("owned jobs: an owner's jobs that have not ended are bounded, over restarts too") {
  testing::World world;
  OwnedJobs owned(2);
  world.loop->AddObserver(&owned);
  CHECK(owned.Check("ada", 2).ok());
  CHECK(owned.Check("", 1000).ok());
  const absl::Status more = owned.Check("ada", 3);
  CHECK(absl::IsResourceExhausted(more));
  CHECK(
      more.message() ==
      "user \"ada\" may own at most 2 jobs that have not ended (limits.active_jobs_per_user), has "
      "0, and this call adds 3");
  const auto submit = [&](const std::string& name) {
    JobId id;
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  JobSpec spec;
                  spec.name = name;
                  spec.queue = turn.state().FindQueue("main")->id;
                  spec.owner = "ada";
                  spec.min_available = 1;
                  spec.groups = {{.name = "w", .replicas = 1}};
                  id = turn.state().next_job_id();
                  REQUIRE(owned.Check("ada", 1).ok());
                  REQUIRE(turn.Emit(JobSubmitted{id, spec}).ok());
                  turn.PutCold(id, std::make_shared<const std::string>());
                  owned.Add("ada", 1);
                  CHECK(owned.Check("ada", name == "a" ? 1 : 0).ok());
                  CHECK_FALSE(owned.Check("ada", 2).ok());
                })
                .ok());
    world.Run();
    return id;
  };
  const JobId first = submit("a");
  submit("b");
  CHECK_FALSE(owned.Check("ada", 1).ok());
  CHECK(owned.Check("bob", 2).ok());
  OwnedJobs after_restart(2);
  world.loop->Read([&](const ClusterState& state, uint64_t) {
    after_restart.Begin(state);
    return 0;
  });
  CHECK_FALSE(after_restart.Check("ada", 1).ok());
  world.Cancel(first);
  CHECK(owned.Check("ada", 1).ok());
}

TEST_CASE("user shares: users who left are forgotten") {
  UserShares shares(kFew);
  for (int i = 0; i < 5000; ++i) CHECK(shares.Begin(NamedUser(std::to_string(i)), 0, false).ok());
  CHECK(shares.users() <= 1025);
}

}  // namespace
}  // namespace berth
