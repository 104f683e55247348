// All live tasks of a job run the same image, whatever a tag means at the time of each pull.
#include "server/controllers/image_book.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;
using Message = v1::ServerMessage;

constexpr char kImage[] = "r.example/team/torch:1";
const std::string kOld = "sha256:" + std::string(64, 'a');
const std::string kNew = "sha256:" + std::string(64, 'b');

// One member of a gang on each of two nodes. Agents do only what the test says.
struct Gang {
  Gang() {
    for (Agent* agent : {&one, &two}) {
      agent->inventory.set_cpu_millis(1000);
      agent->mute = true;
      agent->Connect();
    }
    job = world.Submit("gang", {.tasks = 2, .image = kImage});
    world.Run();
  }
  static std::vector<v1::ServerMessage> Prepares(const Agent& agent) {
    return agent.link->Of(Message::kPrepare);
  }
  static v1::Prepare Latest(const Agent& agent) { return Prepares(agent).back().prepare(); }
  // `container`: the digest of the image of one of its containers; "": it has none.
  v1::TaskReport Prepared(Agent& agent, const std::string& digest,
                          const std::string& container = "") {
    const v1::TaskKey key = Latest(agent).key();
    v1::TaskReport report =
        agent.ReportFor(job, key.task(), key.attempt(), v1::TaskReport::PREPARED);
    report.set_image(kImage);
    report.set_image_digest(digest);
    if (!container.empty()) {
      v1::ImageDigest& image = *report.add_container_images();
      image.set_image("r.example/tools:1");
      image.set_digest(container);
    }
    agent.journal[{key.job_uid(), key.task(), key.attempt()}] = report;
    agent.Report(report);
    world.Run();
    return report;
  }
  TaskState StateOn(const Agent& agent) const {
    for (const Task& task : world.job(job).tasks) {
      if (task.node == world.node(agent.name).id) return task.state;
    }
    return TaskState::kPending;
  }

  World world;
  Agent one{&world, "n1"}, two{&world, "n2"};
  JobId job;
};

TEST_CASE("members with one digest start, and no Prepare names it") {
  Gang f;
  CHECK(f.Latest(f.one).launch().image_digest().empty());
  f.Prepared(f.one, kOld);
  f.Prepared(f.two, kOld);
  CHECK(f.one.link->Of(Message::kStart).size() == 1);
  CHECK(f.two.link->Of(Message::kStart).size() == 1);
  CHECK(f.Prepares(f.two).size() == 1);
}

TEST_CASE("the digest of a container's image counts, too") {
  Gang f;
  f.Prepared(f.one, kOld, kOld);
  f.Prepared(f.two, kOld, kNew);
  CHECK(f.StateOn(f.two) == TaskState::kBound);
  CHECK(f.one.link->Of(Message::kStart).empty());
  REQUIRE(f.Prepares(f.two).size() == 2);
  f.Prepared(f.two, kOld, kOld);
  CHECK(f.one.link->Of(Message::kStart).size() == 1);
}

TEST_CASE("a member with another digest is prepared again with the first one") {
  Gang f;
  f.Prepared(f.one, kOld);
  f.Prepared(f.two, kNew);
  CHECK(f.StateOn(f.two) == TaskState::kBound);
  CHECK(f.one.link->Of(Message::kStart).empty());
  REQUIRE(f.Prepares(f.two).size() == 2);
  CHECK(f.Latest(f.two).launch().image_digest() == kOld);
  CHECK(f.Latest(f.two).key().attempt() == 1);
  f.Prepared(f.two, kOld);
  CHECK(f.one.link->Of(Message::kStart).size() == 1);
  CHECK(f.world.job(f.job).status.starts == 1);
}

TEST_CASE("agents that report no digest are not compared") {
  Gang f;
  f.Prepared(f.one, "");
  f.Prepared(f.two, kNew);
  CHECK(f.two.link->Of(Message::kStart).size() == 1);
}

TEST_CASE("after a restart, nothing counts before all nodes with members have come back") {
  Gang f;
  f.Prepared(f.one, kOld);
  REQUIRE(f.StateOn(f.one) == TaskState::kPrepared);
  f.world.Restart();
  f.two.Connect();
  f.Prepared(f.two, kNew);
  CHECK(f.StateOn(f.two) == TaskState::kBound);
  CHECK(f.Latest(f.two).launch().image_digest().empty());
  f.one.Connect();
  f.world.clock.Advance(absl::Seconds(2));
  f.one.Heartbeat();
  f.world.Run();
  // It reports again, as agents do when a Prepare is repeated, and is wrong this time.
  f.Prepared(f.two, kNew);
  CHECK(f.Latest(f.two).launch().image_digest() == kOld);
  f.Prepared(f.two, kOld);
  CHECK(f.one.link->Of(Message::kStart).size() == 1);
}

TEST_CASE("a registration with another digest is answered by a Prepare with the first one") {
  Gang f;
  f.two.Disconnect();
  f.Prepared(f.one, kOld);
  const v1::TaskKey key = f.Latest(f.two).key();
  v1::TaskReport report = f.two.ReportFor(f.job, key.task(), 1, v1::TaskReport::PREPARED);
  report.set_image(kImage);
  report.set_image_digest(kNew);
  f.two.journal[{key.job_uid(), key.task(), 1}] = report;
  f.two.Connect();
  CHECK(f.StateOn(f.two) == TaskState::kBound);
  CHECK(f.Latest(f.two).launch().image_digest() == kOld);
  f.Prepared(f.two, kOld);
  CHECK(f.one.link->Of(Message::kStart).size() == 1);
}

TEST_CASE("once none of its tasks lives, a job's tag counts again") {
  Gang f;
  f.Prepared(f.one, kOld);
  f.Prepared(f.two, kOld);
  f.one.mute = f.two.mute = false;
  f.one.Work();
  f.two.Work();
  REQUIRE(f.StateOn(f.one) == TaskState::kRunning);
  f.world.Cancel(f.job);
  f.one.Work();
  f.two.Work();
  f.one.mute = f.two.mute = true;
  f.job = f.world.Submit("next", {.tasks = 2, .image = kImage});
  f.world.Run();
  CHECK(f.Latest(f.one).launch().image_digest().empty());
  f.Prepared(f.one, kNew);
  f.Prepared(f.two, kNew);
  CHECK(f.StateOn(f.two) == TaskState::kStarting);
}

}  // namespace
}  // namespace berth
