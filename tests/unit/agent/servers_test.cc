// An agent with several servers over real streams: it finds the one that leads, follows a change of
// the leader, and obeys no former leader.
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "clients/agent/agent_loop.h"
#include "tests/unit/agent/scripted_server.h"

namespace berth {
namespace {

using namespace testing;  // NOLINT: it is this file's vocabulary
using v1::TaskReport;

bool IsHello(const v1::AgentMessage& message) { return message.has_hello(); }
bool IsHeartbeat(const v1::AgentMessage& message) { return message.has_heartbeat(); }

// Runs until the end of the test.
class RunningAgent {
 public:
  explicit RunningAgent(const std::vector<std::string>& servers) {
    const std::string list = absl::StrJoin(servers, ", ");
    auto loop = AgentLoop::Create(
        AgentConfig(state.path(), list), ProgramBeside("berth-supervisor"),
        AgentChannels{.own = MakeAgentChannels(list, grpc::InsecureChannelCredentials())});
    REQUIRE(loop.ok());
    loop_ = *std::move(loop);
    thread_ = std::thread([this] { CHECK(loop_->Run().ok()); });
  }
  ~RunningAgent() {
    loop_->Stop();
    thread_.join();
  }
  StateDirectory state;

 private:
  std::unique_ptr<AgentLoop> loop_;
  std::thread thread_;
};

// An address where nobody listens.
std::string DeadAddress() { return ScriptedServer().address(); }

TEST_CASE("servers: an agent goes to the leader that a standby names, past a dead server") {
  ScriptedServer standby, leader;
  standby.StandBy(leader.address());
  leader.Lead(1);
  ScriptedServer never;  // its turn would come before the leader's
  const absl::Time begin = absl::Now();
  const RunningAgent agent({DeadAddress(), standby.address(), never.address(), leader.address()});
  leader.Await(IsHeartbeat);
  CHECK(absl::Now() - begin < absl::Seconds(3));
  CHECK(standby.refused() == 1);
  CHECK(never.connected() == 0);
}

TEST_CASE("servers: an agent goes to no address that is not configured") {
  ScriptedServer standby, leader, stranger;
  standby.StandBy(stranger.address());
  leader.Lead(1);
  const RunningAgent agent({standby.address(), leader.address()});
  leader.Await(IsHeartbeat);
  CHECK(stranger.connected() == 0);
}

TEST_CASE("servers: agents are back soon after another server leads") {
  ScriptedServer a, b;
  a.Lead(1);
  b.StandBy(a.address());
  const RunningAgent agent({a.address(), b.address()});
  a.Await(IsHeartbeat);
  a.StandBy("");
  b.StandBy("");
  absl::SleepFor(absl::Seconds(3));  // nobody leads: the waits have reached their bound
  CHECK(a.refused() + b.refused() < 20);
  const absl::Time begin = absl::Now();
  b.Lead(2);
  a.StandBy(b.address());
  b.Await(IsHello);
  CHECK(absl::Now() - begin < absl::Seconds(2));
}

TEST_CASE("servers: a former leader can neither start nor kill a task") {
  ScriptedServer old, leader;
  old.Lead(1);
  leader.StandBy(old.address());
  const RunningAgent agent({old.address(), leader.address()});
  old.Await(IsHeartbeat);
  const std::string ran = agent.state.path() + "/ran";
  old.Send("n1", PrepareMessage(1, "sleep 100", true));
  old.AwaitReport(1, TaskReport::RUNNING);
  leader.Lead(2);
  old.StandBy(leader.address());
  const v1::Hello moved = leader.Await(IsHello).hello();
  REQUIRE(moved.tasks_size() == 1);
  leader.Await(IsHeartbeat);

  // It still believes that it leads, and nobody says otherwise.
  v1::ServerMessage kill;
  kill.mutable_kill()->mutable_key()->set_job_uid(1);
  kill.mutable_kill()->mutable_key()->set_attempt(1);
  old.Forget();
  old.Lead(1, {kill, PrepareMessage(2, "touch " + ran, true)});
  leader.StandBy("");
  old.Await(IsHello);
  absl::SleepFor(absl::Seconds(2));
  leader.Forget();
  leader.Lead(2);
  const v1::Hello back = leader.Await(IsHello).hello();
  REQUIRE(back.tasks_size() == 1);
  CHECK(back.tasks(0).key().job_uid() == 1);
  CHECK(back.tasks(0).state() == TaskReport::RUNNING);
  leader.Await(IsHeartbeat);
  CHECK_FALSE(std::ifstream(ran).good());
  CHECK(old.Count(TaskReport::EXITED) + leader.Count(TaskReport::EXITED) == 0);
  leader.Send("n1", kill);
  leader.AwaitReport(1, TaskReport::EXITED);
}

}  // namespace
}  // namespace berth
