// The exec relay: input, output, and the end of commands inside tasks.
#include "server/controllers/exec_relay.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "support/errors.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

struct Peer final : ExecPeer {
  void OnOutput(v1::ExecOutput output) override { outputs.push_back(std::move(output)); }
  void OnGone(absl::Status why) override {
    ++gone;
    status = std::move(why);
  }
  std::vector<v1::ExecOutput> outputs;
  int gone = 0;
  absl::Status status;
};

struct Fixture {
  Fixture() : relay(world.gateway.get(), 4), agent(&world, "n1"), peer(std::make_shared<Peer>()) {
    world.gateway->SetExecSink(&relay);
    agent.Connect();
    open.mutable_key()->set_job_uid(7);
    open.add_command("date");
  }
  absl::StatusOr<ExecRelay::RequestId> Open() {
    return relay.Open(world.node("n1").id, open, peer);
  }
  void Output(ExecRelay::RequestId id, const std::string& data, bool end = false) {
    v1::AgentMessage message;
    message.set_epoch(agent.epoch);
    message.mutable_exec()->set_request(id);
    message.mutable_exec()->set_data(data);
    message.mutable_exec()->set_end(end);
    agent.Send(message);
  }
  std::vector<v1::ServerMessage> Inputs() const { return agent.link->Of(Message::kExecInput); }

  World world;
  ExecRelay relay;
  Agent agent;
  std::shared_ptr<Peer> peer;
  v1::OpenExec open;
};

TEST_CASE_METHOD(Fixture, "exec: a command reaches the agent, and its output the client in order") {
  const absl::StatusOr<ExecRelay::RequestId> id = Open();
  REQUIRE(id.ok());
  const std::vector<v1::ServerMessage> sent = agent.link->Of(Message::kOpenExec);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].open_exec().request() == *id);
  CHECK(sent[0].open_exec().key().job_uid() == 7);
  CHECK(sent[0].open_exec().command(0) == "date");
  Output(*id, "a");
  Output(*id, "b", true);
  REQUIRE(peer->outputs.size() == 2);
  CHECK(peer->outputs[0].data() == "a");
  CHECK(peer->outputs[1].data() == "b");
  CHECK(peer->outputs[1].end());
  CHECK(relay.open() == 0);
  Output(*id, "late");
  agent.Disconnect();
  CHECK(peer->outputs.size() == 2);
  CHECK(peer->gone == 0);
}

TEST_CASE_METHOD(Fixture, "exec: input reaches the agent until the command ends") {
  const ExecRelay::RequestId id = Open().value();
  v1::ExecInput input;
  input.set_data("text");
  relay.Send(id, input);
  REQUIRE(Inputs().size() == 1);
  CHECK(Inputs()[0].exec_input().request() == id);
  CHECK(Inputs()[0].exec_input().data() == "text");
  Output(id, "", true);
  relay.Send(id, input);
  CHECK(Inputs().size() == 1);
}

TEST_CASE_METHOD(Fixture, "exec: a cancellation reaches the agent, and the client gets no calls") {
  const ExecRelay::RequestId id = Open().value();
  relay.Cancel(id);
  relay.Cancel(id);
  REQUIRE(Inputs().size() == 1);
  CHECK(Inputs()[0].exec_input().cancel());
  CHECK(Inputs()[0].exec_input().request() == id);
  CHECK(relay.open() == 0);
  Output(id, "late", true);
  agent.Disconnect();
  CHECK(peer->outputs.empty());
  CHECK(peer->gone == 0);
}

TEST_CASE_METHOD(Fixture, "exec: the end of the session ends its commands") {
  REQUIRE(Open().ok());
  agent.Disconnect();
  CHECK(peer->gone == 1);
  CHECK(absl::IsUnavailable(peer->status));
  CHECK(absl::IsUnavailable(Open().status()));
  CHECK(peer->gone == 1);
}

TEST_CASE_METHOD(Fixture, "exec: another agent cannot answer for a command") {
  const ExecRelay::RequestId id = Open().value();
  Agent other(&world, "n2");
  other.Connect();
  std::swap(agent.session, other.session);
  std::swap(agent.epoch, other.epoch);
  Output(id, "forged", true);
  CHECK(peer->outputs.empty());
  CHECK(relay.open() == 1);
}

TEST_CASE_METHOD(Fixture, "exec: the number of commands is bounded") {
  for (int i = 0; i < 4; ++i) REQUIRE(Open().ok());
  const absl::Status refused = Open().status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(refused.message() == "too many commands run inside tasks (limits.execs)");
  CHECK(RetryDelayOf(refused) > absl::ZeroDuration());
  CHECK(agent.link->Of(Message::kOpenExec).size() == 4);
}

}  // namespace
}  // namespace berth
