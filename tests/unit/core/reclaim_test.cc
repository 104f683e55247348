// Tables for reclaim: which queue may take back what from which.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Elastic;
using testing::Firm;
using testing::Gang;
using testing::JobShape;

const std::vector<std::string> kActions = {"allocate", "reclaim"};

// 8 GPUs on one node. Queue b borrows all of them with `pieces` jobs.
struct Borrowed : Contest {
  explicit Borrowed(int pieces, const testing::QueueShape& a = {},
                    const testing::QueueShape& b = {})
      : Contest(kActions) {
    AddNodes("n", 1, {.gpus = 8});
    AddQueue("a", a);
    AddQueue("b", b);
    for (int i = 0; i < pieces; ++i) {
      Run(absl::StrCat("b", i), Gang(1, 8 / pieces, "b"));
    }
  }
};

TEST_CASE("reclaim: a queue takes back its fair share, and no more") {
  Borrowed contest(8);
  for (const char* name : {"a1", "a2", "a3"}) contest.Submit(name, Gang(1, 2, "a"));
  contest.Settle();
  CHECK(contest.state().releasing().size() == 4);
  CHECK(contest.job(contest.state().FindJob("a3")->id).tasks[0].state == TaskState::kPending);
  contest.Leave();
  CHECK(contest.Evictions().empty());
}

TEST_CASE("reclaim: the youngest of equal loss is evicted, and its message says for whom and why") {
  Borrowed contest(4);
  contest.Submit("a1", Gang(1, 2, "a"));
  CHECK(contest.Evictions() == "nominate a1: 0@n1\nrelease b3: 0 for a1\n");
  CHECK(contest.status(contest.state().FindJob("b3")->id).message ==
        "evicted for job a1: queue a is entitled to what queue b borrowed");
}

TEST_CASE("reclaim: a queue that is alone is not re-evaluated until another queue has jobs") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 8});
  contest.AddNodes("m", 1, {.gpus = 2});
  contest.AddQueue("a", {});
  contest.AddQueue("b", {});
  contest.Run("a1", Gang(1, 8, "a"));
  contest.Submit("a2", Gang(1, 4, "a"));
  contest.Settle();
  CHECK(contest.Cycle().wake_at == absl::InfiniteFuture());
  contest.Run("b1", Gang(1, 2, "b"));
  contest.Submit("b2", Gang(1, 8, "b"));  // more than its share
  contest.Settle();
  // Shares follow demand: the jobs of both queues are re-evaluated.
  CHECK(contest.Cycle().wake_at <= contest.now() + absl::Seconds(10));
}

TEST_CASE("reclaim: one large borrower does not keep other queues from their share") {
  Borrowed contest(1);  // one gang of 8: without it b holds nothing
  contest.Submit("a1", Gang(1, 4, "a"));
  CHECK(contest.Evictions() == "nominate a1: 0@n1\nrelease b0: 0 for a1\n");
  contest.Leave();
  CHECK(contest.Evictions().empty());  // 8 is more than b's share: it is not taken back
}

TEST_CASE("reclaim: deserved resources are delivered, however large the victims") {
  Borrowed contest(1, {.deserved = {{"gpu", 4}}}, {.deserved = {{"gpu", 4}}});
  contest.Submit("a1", Gang(1, 4, "a"));
  CHECK(contest.Evictions() == "nominate a1: 0@n1\nrelease b0: 0 for a1\n");
  contest.Leave();
  CHECK(contest.Evictions().empty());  // and b, which holds nothing, does not take it back
}

TEST_CASE("reclaim: above deserved, only down to fair shares") {
  Borrowed contest(8, {.deserved = {{"gpu", 2}}}, {.deserved = {{"gpu", 2}}});
  contest.Submit("a1", Gang(1, 2, "a"));
  contest.Submit("a2", Gang(1, 2, "a"));
  contest.Submit("a3", Gang(1, 1, "a"));
  contest.Settle();
  CHECK(contest.state().releasing().size() == 4);
}

TEST_CASE("reclaim: non-preemptible jobs neither lose nor take resources beyond deserved") {
  Borrowed contest(4, {.deserved = {{"gpu", 2}}}, {.deserved = {{"gpu", 6}}});
  contest.Submit("firm", Firm(Gang(1, 4, "a")));
  CHECK(contest.Evictions().empty());
  contest.Submit("small", Firm(Gang(1, 2, "a")));
  CHECK(contest.Evictions() == "nominate small: 0@n1\nrelease b3: 0 for small\n");

  Contest other(kActions);
  other.AddNodes("n", 1, {.gpus = 8});
  other.AddQueue("a");
  other.AddQueue("b");
  other.Run("firm", Firm(Gang(1, 8, "b")));
  other.Submit("a1", Gang(1, 2, "a"));
  CHECK(other.Evictions().empty());
}

TEST_CASE("reclaim: a queue that is not reclaimable keeps borrowed resources") {
  Borrowed contest(4, {}, {.reclaimable = false});
  contest.Submit("a1", Gang(1, 2, "a"));
  CHECK(contest.Evictions().empty());
}

TEST_CASE("reclaim: weights decide which queue is above its share") {
  Borrowed contest(8, {.weight = 1}, {.weight = 3});
  for (const char* name : {"a1", "a2", "a3"}) contest.Submit(name, Gang(1, 1, "a"));
  contest.Settle();
  CHECK(contest.state().releasing().size() == 2);
}

TEST_CASE("reclaim: siblings are compared where the ancestors first differ") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 8});
  contest.AddQueue("x");
  contest.AddQueue("x1", {.parent = "x"});
  contest.AddQueue("x2", {.parent = "x"});
  contest.AddQueue("y");
  for (int i = 0; i < 4; ++i) contest.Run(absl::StrCat("x", i), Gang(1, 1, "x1"));
  for (int i = 0; i < 4; ++i) contest.Run(absl::StrCat("y", i), Gang(1, 1, "y"));
  // x as a whole holds its fair share: x2 takes from x1, not from y.
  contest.Submit("new", Gang(1, 2, "x2"));
  CHECK(contest.Evictions() ==
        "nominate new: 0@n1\nrelease x2: 0 for new\nrelease x3: 0 for new\n");
}

TEST_CASE("reclaim: least entitled queue first, each down to its share") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 12});
  for (const char* name : {"a", "b", "c"}) contest.AddQueue(name);
  for (int i = 0; i < 5; ++i) contest.Run(absl::StrCat("b", i), Gang(1, 1, "b"));
  for (int i = 0; i < 7; ++i) contest.Run(absl::StrCat("c", i), Gang(1, 1, "c"));
  contest.Submit("want", Gang(4, 1, "a"));
  CHECK(contest.Evictions() ==
        "nominate want: 0@n1 1@n1 2@n1 3@n1\nrelease b4: 0 for want\nrelease c4: 0 for want\n"
        "release c5: 0 for want\nrelease c6: 0 for want\n");
}

TEST_CASE("reclaim: only surplus tasks are evicted if they suffice") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.gpus = 8});
  contest.AddQueue("a");
  contest.AddQueue("b");
  const JobId elastic = contest.Run("elastic", Elastic(2, 8, 1, "b"));
  contest.Submit("want", Gang(1, 4, "a"));
  CHECK(contest.Evictions() == "nominate want: 0@n1\nrelease elastic: 4 5 6 7 for want\n");
  CHECK(contest.StateOf(elastic) == "Running");
  contest.Leave();
  CHECK(contest.Evictions().empty());  // growth is not entitled to more
}

TEST_CASE("reclaim: only requested resources are compared") {
  Contest contest(kActions);
  contest.AddNodes("n", 1, {.cpu = 8, .gpus = 8});
  contest.AddQueue("a");
  contest.AddQueue("b");
  // b is above its share of cpu only; a requests GPUs, of which b does not hold too many.
  JobShape cpus{.queue = "b", .groups = {{.cpu = 8, .gpus = 4}}};
  cpus.preemptible = true;
  contest.Run("cpus", cpus);
  contest.Run("gpus", Gang(1, 4, "a"));
  contest.Submit("more", Gang(1, 2, "a"));
  CHECK(contest.Evictions().empty());
}

TEST_CASE("reclaim: a large gang reclaims from many small jobs") {
  Contest contest(kActions);
  contest.AddNodes("n", 20, {.gpus = 8});
  contest.AddQueue("a");
  contest.AddQueue("b");
  for (int i = 0; i < 160; ++i) contest.Submit(absl::StrCat("b", i), Gang(1, 1, "b"));
  contest.Settle();
  for (int i = 0; i < 160; ++i) contest.RunAll(contest.state().FindJob(absl::StrCat("b", i))->id);
  const JobId gang = contest.Submit("gang", Gang(10, 8, "a"));
  contest.Settle();
  CHECK(contest.state().releasing().size() == 80);
  CHECK(TallyOf(contest.job(gang)).Nominated() == 10);
}

TEST_CASE("reclaim: a job is re-evaluated when its own queue holds less") {
  Borrowed contest(4);
  const JobId a1 = contest.Submit("a1", Gang(1, 4, "a"));
  contest.Settle();
  contest.Leave();
  contest.RunAll(a1);
  const JobId a2 = contest.Submit("a2", Gang(2, 2, "a"));
  contest.Settle();
  CHECK(contest.state().releasing().empty());
  contest.Must(JobCancelled{.id = a1});
  contest.Settle();
  contest.Leave();
  CHECK(contest.Where(a2) == "n1 n1");  // a1's resources suffice: no other job is evicted
  CHECK(contest.StateOf(contest.state().FindJob("b0")->id) == "Running");
}

}  // namespace
}  // namespace berth
