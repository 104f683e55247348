// The agent's logic: a task that is prepared again in another version of its image; images that the
// node reports and gets in advance.
#include <catch2/catch.hpp>

#include "tests/unit/agent/logic_world.h"

namespace berth::testing {
namespace {

using Kind = TaskEvent::Kind;

const std::string kOld = "sha256:" + std::string(64, 'a');
const std::string kNew = "sha256:" + std::string(64, 'b');

void PrepareImage(Agent& agent, uint64_t uid, const std::string& digest = "") {
  v1::ServerMessage message;
  *message.mutable_prepare()->mutable_key() = Key(uid);
  message.mutable_prepare()->set_reserve_port(true);
  message.mutable_prepare()->mutable_launch()->set_image("r.example/x:1");
  message.mutable_prepare()->mutable_launch()->set_image_digest(digest);
  agent.Tell(message);
}

void Prepared(Agent& agent, uint64_t uid, const std::string& digest) {
  TaskEvent event;
  event.id = Id(uid);
  event.kind = Kind::kPrepared;
  event.port = 20001;
  event.image_digest = digest;
  agent.logic->OnTaskEvent(agent.Now(), event);
}

TEST_CASE("images: reports say what a task's image means, from PREPARED on and in Hello") {
  Agent agent;
  agent.Register();
  PrepareImage(agent, 1);
  Prepared(agent, 1, kOld);
  const auto prepared = agent.link.TakeReports();
  REQUIRE(prepared.size() == 1);
  CHECK(prepared[0].image_digest() == kOld);
  CHECK(prepared[0].image() == "r.example/x:1");
  agent.Start(Key(1));
  agent.Event(Id(1), Kind::kRunning);
  const auto running = agent.link.TakeReports();
  REQUIRE(running.size() == 1);
  CHECK(running[0].image_digest() == kOld);
  agent.logic->Reconnect(agent.Now());
  REQUIRE(agent.link.sent.back().hello().tasks_size() == 1);
  CHECK(agent.link.sent.back().hello().tasks(0).image_digest() == kOld);
}

TEST_CASE("images: a prepared task is prepared again if another digest is wanted") {
  Agent agent;
  agent.Register();
  PrepareImage(agent, 1);
  Prepared(agent, 1, kNew);
  agent.link.TakeReports();
  agent.runner.Take();
  PrepareImage(agent, 1, kNew);  // it has that
  CHECK(agent.runner.Take().empty());
  CHECK(agent.link.TakeReports().size() == 1);
  PrepareImage(agent, 1, kOld);
  CHECK(agent.runner.Take() ==
        std::vector<std::string>{"discard 1-0-1", "prepare 1-0-1 port 20001"});
  CHECK(agent.link.TakeReports().empty());
  // A crash now loses the task, so that the server sends the Prepare again.
  CHECK_FALSE(agent.journal.state.tasks.contains(Id(1)));
  PrepareImage(agent, 1, kOld);  // repeated meanwhile: nothing changes
  CHECK(agent.runner.Take().empty());
  Prepared(agent, 1, kOld);
  const auto reports = agent.link.TakeReports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == v1::TaskReport::PREPARED);
  CHECK(reports[0].image_digest() == kOld);
  CHECK(agent.journal.state.tasks.contains(Id(1)));
}

TEST_CASE("images: a task that has started is never prepared again") {
  Agent agent;
  agent.Register();
  PrepareImage(agent, 1);
  Prepared(agent, 1, kNew);
  agent.Start(Key(1));
  agent.runner.Take();
  PrepareImage(agent, 1, kOld);
  CHECK(agent.runner.Take().empty());
}

TEST_CASE("images: with a full journal, the task is refused") {
  Agent agent;
  agent.Register();
  PrepareImage(agent, 1);
  Prepared(agent, 1, kNew);
  agent.link.TakeReports();
  agent.journal.next_error = absl::ResourceExhaustedError("full");
  PrepareImage(agent, 1, kOld);
  const auto reports = agent.link.TakeReports();
  REQUIRE(reports.size() == 1);
  CHECK(reports[0].state() == v1::TaskReport::REFUSED);
  CHECK(reports[0].message() == "agent journal: full");
}

struct FakeImages final : NodeImageSource {
  v1::NodeImages Images() override { return images; }
  void Prefetch(const v1::Prefetch& request) override { wanted.push_back(request.job_uid()); }
  v1::NodeImages images;
  std::vector<uint64_t> wanted;
};

int Lists(Agent& agent) {
  int count = 0;
  for (const v1::AgentMessage& message : agent.link.sent) count += message.has_images() ? 1 : 0;
  agent.link.sent.clear();
  return count;
}

TEST_CASE(
    "images: the node's are sent after a Welcome and after changes, if the server takes them") {
  const bool takes = GENERATE(false, true);
  FakeImages images;
  images.images.add_images()->set_image("r.example/x:1");
  Agent agent;
  agent.Begin();
  agent.logic->SetImages(&images);
  v1::ServerMessage welcome;
  welcome.mutable_welcome()->set_epoch(7);
  welcome.mutable_welcome()->mutable_lease()->set_seconds(3600);
  welcome.mutable_welcome()->set_takes_images(takes);
  agent.Tell(welcome);
  agent.Advance(absl::Seconds(1));
  CHECK(Lists(agent) == (takes ? 1 : 0));
  agent.Advance(absl::Seconds(30));
  CHECK(Lists(agent) == 0);
  images.images.add_images()->set_image("r.example/y:1");
  agent.Advance(absl::Seconds(30));
  CHECK(Lists(agent) == (takes ? 1 : 0));
}

TEST_CASE("images: a server may ask for one in advance, if the agent can get it") {
  FakeImages images;
  Agent agent;
  agent.Register();
  agent.logic->SetImages(&images);
  v1::ServerMessage message;
  message.mutable_prefetch()->set_job_uid(7);
  agent.Tell(message);
  CHECK(images.wanted == std::vector<uint64_t>{7});
  agent.logic->Reconnect(agent.Now());
  CHECK(agent.link.sent.back().hello().takes_prefetch());
}

}  // namespace
}  // namespace berth::testing
