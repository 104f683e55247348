// GPUs are repartitioned for pending jobs, driven only by registrations.
#include "server/controllers/mig_keeper.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "server/convert/cold.h"
#include "tests/unit/server/loop_world.h"

namespace berth {
namespace {

using testing::Agent;
using testing::World;

const std::vector<std::string> kSevenfold(7, "1g.10gb");
const std::vector<std::string> kHalves(2, "3g.40gb");

// A server, and a node with one H100 in MIG mode.
class MigWorld {
 public:
  explicit MigWorld(bool divides = true) {
    Divide(kSevenfold, false, divides);
    agent.Connect();
    keeper = std::make_unique<MigKeeper>(world.loop.get(), world.gateway.get());
  }

  // The GPU in this state is in the next registration of the node.
  void Divide(const std::vector<std::string>& profiles, bool held = false, bool divides = true) {
    agent.inventory.clear_devices();
    agent.inventory.set_divides_gpus(divides);
    if (divides) Add("GPU-1", "NVIDIA H100 80GB HBM3", 80, true);
    ++layouts_;
    for (size_t i = 0; i < profiles.size(); ++i)
      Add(absl::StrCat("MIG-", held ? layouts_ - 1 : layouts_, "-", i), profiles[i], 40, held);
    if (held) --layouts_;
  }
  void Register(const std::vector<std::string>& profiles, bool held = false) {
    Divide(profiles, held);
    agent.Disconnect();
    agent.Connect();
  }

  JobId Ask(const std::string& name, const std::string& profile, int count) {
    JobId id;
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  id = turn.state().next_job_id();
                  JobSpec spec{.name = name,
                               .queue = turn.state().FindQueue("main")->id,
                               .min_available = 1};
                  GroupSpec group{.name = "worker", .replicas = 1, .min_available = 1};
                  group.shape.devices = {{.kind = "mig", .count = count, .models = {profile}}};
                  spec.groups.push_back(std::move(group));
                  REQUIRE(turn.Emit(JobSubmitted{id, std::move(spec)}).ok());
                  v1::JobSpec cold;
                  cold.add_groups()->add_command("run");
                  turn.PutCold(id, std::make_shared<const std::string>(EncodeCold(cold)));
                })
                .ok());
    world.Run();
    return id;
  }

  // The node's agent sends heartbeats, and the keeper ticks.
  void Wait(absl::Duration duration) {
    for (absl::Duration gone; gone < duration; gone += absl::Seconds(1)) {
      world.Advance(absl::Seconds(1));
      agent.Heartbeat();
      keeper->Tick();
      world.Run();
    }
  }
  // Messages with a division on the current connection: "3g.40gb@0 3g.40gb@4", or "" for none.
  std::vector<std::string> Messages() const {
    std::vector<std::string> texts;
    for (const v1::ServerMessage& message : agent.link->Of(v1::ServerMessage::kDivideGpu)) {
      std::string& text = texts.emplace_back(message.divide_gpu().gpu());
      for (const v1::GpuPart& part : message.divide_gpu().parts())
        absl::StrAppend(&text, " ", part.profile(), "@", part.start());
    }
    return texts;
  }

  World world;
  Agent agent{&world, "n1"};
  std::unique_ptr<MigKeeper> keeper;

 private:
  void Add(const std::string& uuid, const std::string& model, int64_t gib, bool unhealthy) {
    v1::Device& device = *agent.inventory.add_devices();
    device.set_kind("mig");
    device.set_uuid(uuid);
    device.set_model(model);
    device.set_memory_bytes(gib << 30);
    device.set_pci_bus_id("0000:10:00.0");
    device.set_unhealthy(unhealthy);
  }
  int layouts_ = 0;
};

const std::vector<std::string> kWish = {"GPU-1 3g.40gb@0 3g.40gb@4"};

TEST_CASE("a GPU is held, divided and used") {
  MigWorld mig;
  const JobId job = mig.Ask("j", "3g.40gb", 2);
  mig.Wait(absl::Seconds(4));
  CHECK(mig.Messages().empty());  // the job might still find a place
  mig.Wait(absl::Seconds(4));
  CHECK(mig.Messages() == kWish);
  mig.Wait(absl::Seconds(10));
  CHECK(mig.Messages() == kWish);  // once for each registration
  mig.Register(kSevenfold, true);
  mig.Wait(absl::Seconds(2));
  CHECK(mig.Messages() == kWish);
  mig.Register(kHalves);
  mig.agent.Work();
  CHECK(mig.agent.Runs(job));
  mig.Wait(absl::Minutes(2));
  CHECK(mig.Messages().empty());
  CHECK(mig.keeper->counters().done == 1);
  CHECK(mig.keeper->counters().failed == 0);
}

TEST_CASE("nothing is divided if the node does not allow it or no job needs it") {
  MigWorld forbidden(false);
  forbidden.Ask("j", "3g.40gb", 2);
  forbidden.Wait(absl::Seconds(30));
  CHECK(forbidden.Messages().empty());
  MigWorld enough;
  enough.Ask("j", "1g.10gb", 2);
  enough.Wait(absl::Seconds(30));
  CHECK(enough.Messages().empty());
  CHECK(enough.keeper->counters().failed == 0);
}

TEST_CASE("a GPU on which a task started before it was held is left alone") {
  MigWorld mig;
  mig.Ask("j", "3g.40gb", 2);
  mig.Wait(absl::Seconds(8));
  REQUIRE(mig.Messages() == kWish);
  mig.Ask("quick", "1g.10gb", 1);
  mig.Register(kSevenfold, true);
  mig.Wait(absl::Seconds(30));
  CHECK(mig.Messages().empty());
  CHECK(mig.keeper->counters().failed == 1);
}

TEST_CASE("no GPU is divided for a job that has ended") {
  MigWorld mig;
  const JobId job = mig.Ask("j", "3g.40gb", 2);
  mig.Wait(absl::Seconds(8));
  mig.world.Cancel(job);
  mig.Register(kSevenfold, true);
  mig.Wait(absl::Seconds(30));
  CHECK(mig.Messages().empty());
}

TEST_CASE("a server that restarts continues from the current state") {
  MigWorld mig;
  const JobId job = mig.Ask("j", "3g.40gb", 2);
  mig.Wait(absl::Seconds(8));
  mig.Register(kSevenfold, true);
  mig.world.Restart();  // before the second message
  mig.keeper = std::make_unique<MigKeeper>(mig.world.loop.get(), mig.world.gateway.get());
  mig.agent.Connect();
  mig.Wait(absl::Seconds(8));
  CHECK(mig.Messages() == kWish);
  mig.world.Restart();  // while the agent divides
  mig.keeper = std::make_unique<MigKeeper>(mig.world.loop.get(), mig.world.gateway.get());
  mig.agent.Connect();
  mig.Register(kHalves);
  mig.agent.Work();
  CHECK(mig.agent.Runs(job));
}

TEST_CASE("an agent that does not divide is asked at growing intervals") {
  MigWorld mig;
  mig.Ask("j", "3g.40gb", 2);
  std::vector<int> after;  // seconds between messages
  int since = 0;
  for (size_t seen = 0; after.size() < 3; ++since) {
    REQUIRE(since < 3600);
    mig.Wait(absl::Seconds(1));
    if (mig.Messages().size() == seen) continue;
    ++seen;
    after.push_back(std::exchange(since, 0));
  }
  const auto about = [](absl::Duration duration) {
    const auto seconds = static_cast<int>(absl::ToInt64Seconds(duration));
    return Catch::Matchers::Predicate<int>(
        [seconds](int value) { return value >= seconds - 1 && value <= seconds + 3; });
  };
  CHECK_THAT(after[1], about(MigKeeper::kTimeout + MigKeeper::kCoolDown));
  CHECK_THAT(after[2], about(MigKeeper::kTimeout + 2 * MigKeeper::kCoolDown));
  CHECK(mig.keeper->counters().failed == 2);
}

TEST_CASE("a division that failed halfway is retried later") {
  MigWorld mig;
  mig.Ask("j", "3g.40gb", 2);
  mig.Wait(absl::Seconds(8));
  mig.Register(kSevenfold, true);
  mig.Wait(absl::Seconds(2));
  mig.Register({"3g.40gb"});  // one of two
  mig.Wait(absl::Seconds(30));
  CHECK(mig.keeper->counters().failed == 1);
  CHECK(mig.Messages().empty());
  mig.Wait(absl::Seconds(40));
  CHECK(mig.Messages() == kWish);
}

}  // namespace
}  // namespace berth
