// Terms: an agent obeys no leader of an earlier term than the greatest that it has heard.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "clients/agent/identity.h"
#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT: it is this file's vocabulary
using Calls = std::vector<std::string>;

// Registered in term 5 of incarnation 2 of cluster "c", with task 1 running.
struct Led {
  explicit Led(FakeJournal* disk = nullptr) : agent(disk) {
    agent.cluster = "c";
    agent.incarnation = 2;
    agent.term = 5;
    agent.Begin();
    agent.Welcome();
    agent.Prepare(KeyOf(2, 1), true);
    agent.Event(IdOf(2, 1), TaskEvent::Kind::kPrepared);
    agent.Event(IdOf(2, 1), TaskEvent::Kind::kRunning);
    agent.runner.Take();
    agent.link.sent.clear();
  }
  // The stream breaks, and a server of that term and incarnation answers the next Hello.
  void MeetAgain(uint64_t term, uint64_t incarnation = 2) {
    agent.term = term;
    agent.incarnation = incarnation;
    agent.logic->OnDisconnected(agent.Now(), "gone");
    agent.Advance(absl::Seconds(3));
    REQUIRE(agent.link.connected);
    agent.Welcome(99, {KeyOf(2, 1)});
  }
  Agent agent;
};

TEST_CASE("term: a server of an earlier term neither registers the agent nor changes its tasks") {
  for (const uint64_t term : {4, 0}) {
    Led world;
    world.MeetAgain(term);
    CHECK_FALSE(world.agent.logic->registered());
    CHECK_FALSE(world.agent.link.connected);
    CHECK(world.agent.runner.Take() == Calls{});  // its list of tasks to forget, too
    CHECK(absl::StrContains(world.agent.logic->last_error(), "another has led in term 5"));
    CHECK(world.agent.journal.state.identity.term() == 5);
    world.agent.Kill(KeyOf(2, 1));
    world.agent.Prepare(KeyOf(2, 2), true);
    CHECK(world.agent.runner.Take() == Calls{});
  }
}

TEST_CASE("term: a message of an earlier term on a registered stream ends the stream") {
  Led world;
  world.agent.term = 4;
  world.agent.Kill(KeyOf(2, 1));
  CHECK(world.agent.runner.Take() == Calls{});
  CHECK_FALSE(world.agent.link.connected);
  CHECK_FALSE(world.agent.logic->registered());
}

TEST_CASE("term: a greater term is durable before the agent acts on it") {
  Led world;
  world.MeetAgain(6);
  CHECK(world.agent.logic->registered());
  CHECK(world.agent.journal.state.identity.term() == 6);
  world.agent.runner.Take();
  world.agent.term = 7;  // the same server leads again
  world.agent.journal.next_error = absl::ResourceExhaustedError("disk full");
  world.agent.Kill(KeyOf(2, 1));
  CHECK(world.agent.runner.Take() == Calls{});
  CHECK_FALSE(world.agent.logic->registered());
  CHECK(world.agent.logic->fatal().ok());
  CHECK(world.agent.logic->store().term == 6);
  world.agent.journal.next_error = absl::OkStatus();
  world.MeetAgain(7);
  CHECK(world.agent.logic->registered());
  CHECK(world.agent.journal.state.identity.term() == 7);
}

TEST_CASE("term: without a place for it, a Welcome of a new term registers nobody") {
  Led world;
  world.agent.journal.next_error = absl::ResourceExhaustedError("disk full");
  world.MeetAgain(6);
  CHECK_FALSE(world.agent.logic->registered());
  CHECK(world.agent.logic->store().term == 5);
  CHECK(absl::StrContains(world.agent.logic->last_error(), "disk full"));
  CHECK(world.agent.logic->fatal().ok());
}

TEST_CASE("term: a restarted agent still knows it") {
  FakeJournal disk;
  { const Led world(&disk); }
  Agent again(&disk);
  again.cluster = "c";
  again.incarnation = 2;
  again.term = 4;
  again.Begin();
  again.Welcome(99);
  CHECK_FALSE(again.logic->registered());
  again.Advance(absl::Seconds(3));
  again.term = 5;
  again.Welcome(100);
  CHECK(again.logic->registered());
}

TEST_CASE("term: a restored store begins anew, and its former leaders are not obeyed") {
  Led world;
  world.MeetAgain(0, 3);
  CHECK_FALSE(world.agent.logic->registered());  // its tasks of the former incarnation end first
  world.agent.Event(IdOf(2, 1), TaskEvent::Kind::kExited, 143);
  world.agent.logic->Tick(world.agent.Now());
  world.agent.Welcome(1);
  CHECK(world.agent.logic->registered());
  CHECK(world.agent.logic->store().term == 0);
  world.MeetAgain(1, 3);
  CHECK(world.agent.logic->registered());
  world.MeetAgain(9, 2);
  CHECK_FALSE(world.agent.logic->registered());
  CHECK(absl::StrContains(world.agent.logic->last_error(), "restored as 3"));
}

TEST_CASE("term: another cluster begins anew") {
  Led world;
  world.agent.cluster = "d";
  world.MeetAgain(1, 1);
  world.agent.Event(IdOf(2, 1), TaskEvent::Kind::kExited, 143);
  world.agent.logic->Tick(world.agent.Now());
  world.agent.Welcome(1);
  CHECK(world.agent.logic->registered());
  CHECK(world.agent.logic->store().term == 1);
}

TEST_CASE("term: an operator can make the agent forget it") {
  const TemporaryDirectory directory;
  CHECK(absl::IsNotFound(ForgetTerm(SystemDisk(), directory.path())));
  {
    auto journal = *FileJournal::Open(SystemDisk(), directory.path(), {});
    agent::v1::JournalRecord record;
    record.mutable_identity()->set_agent_id("me");
    record.mutable_identity()->set_term(5);
    REQUIRE(journal->Append({record}).ok());
  }
  const int lock = *LockState(directory.path());
  CHECK(absl::IsFailedPrecondition(ForgetTerm(SystemDisk(), directory.path())));
  close(lock);
  REQUIRE(ForgetTerm(SystemDisk(), directory.path()).ok());
  const auto journal = *FileJournal::Open(SystemDisk(), directory.path(), {});
  CHECK(journal->state().identity.term() == 0);
  CHECK(journal->state().identity.agent_id() == "me");
}

}  // namespace
}  // namespace berth
