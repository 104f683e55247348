// Tables for consolidate: jobs move together so that a gang fits, or no job moves.
#include <catch2/catch.hpp>

#include "tests/unit/core/testing/evictions.h"

namespace berth {
namespace {

using testing::Contest;
using testing::Firm;
using testing::Gang;

const std::vector<std::string> kActions = {"allocate", "consolidate"};

// Two nodes of 4 with a filler of 2 on each, and two jobs of one GPU, one on each.
struct Pieces : Contest {
  explicit Pieces(bool firm = false) : Contest(kActions) {
    AddNodes("n", 2, {.gpus = 4});
    const JobId filler = Run("filler", Gang(2, 3));  // one a node
    left = Run("left", firm ? Firm(Gang(1, 1)) : Gang(1, 1));
    right = Run("right", firm ? Firm(Gang(1, 1)) : Gang(1, 1));
    Must(JobCancelled{.id = filler});
    Settle();
    Leave();
    REQUIRE(Where(left) != Where(right));
  }
  JobId left, right;
};

TEST_CASE("consolidate: one job moves, and the gang fits") {
  Pieces contest;
  contest.Submit("big", Gang(1, 4));
  CHECK(contest.Evictions() == "nominate big: 0@n2\nrelease right: 0 for big to 0@n1\n");
  CHECK(contest.status(contest.right).message == "moved for job big: what is free is fragmented");
  CHECK(contest.job(contest.right).tasks[0].moves);
  CHECK(contest.status(contest.right).retries == 0);
}

TEST_CASE("consolidate: only preemptible gangs benefit, and only preemptible jobs move") {
  Pieces contest;
  contest.Submit("big", Firm(Gang(1, 4)));
  CHECK(contest.Evictions().empty());
  Pieces firm(true);
  firm.Submit("big", Gang(1, 4));
  CHECK(firm.Evictions().empty());
}

TEST_CASE("consolidate: no job moves when the gang would not fit anyway") {
  Pieces contest;
  contest.Submit("two", Gang(2, 4));
  contest.Submit("wide", Gang(7, 1));
  CHECK(contest.Evictions().empty());
}

class TwoQueuesInPieces : public Contest {
 public:
  TwoQueuesInPieces() : Contest(kActions) {
    AddNodes("n", 2, {.gpus = 4});
    AddQueue("a", {.deserved = {{"gpu", 2}}});
    AddQueue("b", {.deserved = {{"gpu", 6}}});
    const JobId filler = Run("filler", Gang(2, 3, "b"));
    Run("left", Gang(1, 1, "a"));
    Run("right", Gang(1, 1, "b"));
    Must(JobCancelled{.id = filler});
    Settle();
    Leave();
  }
};

TEST_CASE("consolidate: a queue may borrow fragmented free devices as if they were on one node") {
  TwoQueuesInPieces contest;
  contest.Submit("big", Gang(1, 4, "a"));  // a holds 1 and deserves 2
  CHECK(contest.Evictions() == "nominate big: 0@n1\nrelease left: 0 for big to 0@n2\n");
}

TEST_CASE("consolidate: room goes by service order") {
  TwoQueuesInPieces contest;
  contest.Submit("big", Gang(1, 4, "a"));
  contest.Submit("first", Gang(3, 2, "b"));  // both in one cycle; b goes before a
  CHECK(contest.Evictions() ==
        "nominate first: 0@n2 1@n1 2@n1\nrelease left: 0 for first to 0@n2\n");
}

TEST_CASE("consolidate: a job that fits nowhere else is not moved") {
  Contest contest(kActions);
  contest.AddNodes("n", 2, {.gpus = 4});
  contest.Run("a", Gang(1, 3));
  contest.Run("b", Gang(1, 3));
  contest.Submit("two", Gang(1, 2));  // 2 free, fragmented; a victim of 3 fits nowhere else
  CHECK(contest.Evictions().empty());
}

TEST_CASE("consolidate: a job that was just moved is not moved again") {
  EvictionParameters parameters;
  parameters.cooldown = absl::Minutes(1);
  Contest calm(kActions, parameters);
  calm.AddNodes("n", 2, {.gpus = 4});
  const JobId filler = calm.Run("filler", Gang(2, 3));
  calm.Run("left", Gang(1, 1));
  const JobId right = calm.Run("right", Gang(1, 1));
  calm.Must(JobCancelled{.id = filler});
  calm.Settle();
  calm.Leave();
  calm.Submit("big", Gang(1, 4));
  CHECK(calm.Evictions() == "nominate big: 0@n2\nrelease right: 0 for big to 0@n1\n");
  CHECK(calm.status(right).starts == 1);
}

}  // namespace
}  // namespace berth
