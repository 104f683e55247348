// The agent's logic: reading the output of tasks, and how long it is kept.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::Id;
using testing::Key;
using testing::SentReports;
using Calls = std::vector<std::string>;
using v1::TaskReport;

TEST_CASE("logs: chunks, end, follow until the task has ended, cancel, flow bound") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.link.sent.clear();
  const auto read = [&](uint64_t request, bool follow, int64_t from = 0) {
    v1::ServerMessage message;
    message.mutable_read_log()->mutable_from()->set_stdout_bytes(from);
    message.mutable_read_log()->set_request(request);
    *message.mutable_read_log()->mutable_key() = Key(1);
    message.mutable_read_log()->set_follow(follow);
    agent.logic->OnServerMessage(agent.Now(), message);
  };
  const auto chunks = [&] {
    std::vector<v1::LogChunk> out;
    for (const auto& message : agent.link.sent) {
      if (message.has_log()) out.push_back(message.log());
    }
    agent.link.sent.clear();
    return out;
  };
  agent.logs.pieces = {"one\n", "two\n"};
  read(1, false);
  auto got = chunks();
  REQUIRE(got.size() == 4);
  CHECK(got[0].data().empty());
  CHECK(got[0].next().stdout_bytes() == 0);
  CHECK(got[1].data() == "one\n");
  CHECK(got[1].next().stdout_bytes() == 4);
  CHECK(got[2].next().stdout_bytes() == 8);
  CHECK(got[3].end());
  CHECK(got[3].error().empty());
  CHECK_FALSE(got[3].has_next());

  read(2, true, 8);
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].next().stdout_bytes() == 8);
  agent.logs.pieces = {"three\n"};
  agent.Advance(absl::Seconds(1));
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].next().stdout_bytes() == 14);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.logs.pieces = {"four\n"};
  agent.Advance(absl::Seconds(1));
  got = chunks();
  REQUIRE(got.size() == 2);
  CHECK(got[0].data() == "four\n");
  CHECK(got[1].end());

  agent.link.queued_bytes = kMaxQueuedLogBytes + 1;
  agent.logs.pieces = {"five\n"};
  read(3, true);
  agent.Advance(absl::Seconds(1));
  CHECK(chunks().size() == 1);  // the start position
  v1::ServerMessage cancel;
  cancel.mutable_cancel_log()->set_request(3);
  agent.logic->OnServerMessage(agent.Now(), cancel);
  agent.link.queued_bytes = 0;
  agent.Advance(absl::Seconds(1));
  CHECK(chunks().empty());

  agent.logs.missing = true;
  read(4, false);
  got = chunks();
  REQUIRE(got.size() == 1);
  CHECK(got[0].end());
  CHECK(got[0].error() == "no output");
}

TEST_CASE("ended tasks are dropped with their logs after keep_ended, unacked ones later") {
  Agent agent;
  agent.Register();
  agent.RunTask(1);
  agent.RunTask(2);
  agent.Event(Id(1), TaskEvent::Kind::kExited);
  agent.Event(Id(2), TaskEvent::Kind::kExited);
  for (const auto& report : SentReports(agent)) {
    if (ToTaskId(report.key()) == Id(1)) agent.Ack(report.report_id());
  }
  agent.runner.Take();
  agent.now += absl::Hours(1);
  agent.logic->Tick(agent.Now());
  CHECK(agent.runner.Take() == Calls{"remove 1-0-1"});
  REQUIRE(agent.journal.later.size() >= 1);
  CHECK(agent.journal.later.back().has_dropped());
}

}  // namespace
}  // namespace berth
