// A log is verified: the engine repeats the decisions of a cluster under the real loop.
#include "offline/sim/verify.h"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "berth/v1/job.pb.h"
#include "core/engine/explain/dry_run.h"
#include "server/config/config.h"
#include "server/convert/cold.h"
#include "server/loop/history.h"
#include "server/planning/policy_record.h"
#include "storage/codec.h"
#include "storage/load.h"
#include "support/random.h"
#include "support/yaml_proto.h"
#include "tests/unit/server/loop_world.h"

namespace berth::testing {
namespace {

config::v1::Server ConfigOf(const std::string& yaml) {
  config::v1::Server config;
  REQUIRE(ReadYaml(yaml, "berthd.yaml", &config).ok());
  REQUIRE(CompleteConfig(config).ok());
  return config;
}

// The second: other reservations, usage that decays, and earlier evictions.
const std::vector<std::string> kConfigs = {
    "scheduling: {eviction: {cooldown: 5s, minGain: 0s}}",
    "scheduling: {backfill: {mode: CONSERVATIVE, conservativeDepth: 5}, fairShare: {halfLife: 1m}, "
    "eviction: {cooldown: 0s, minGain: 0s, gangGrace: 10s}}"};

ColdPart SomeCold() {
  v1::JobSpec spec;
  spec.add_groups()->add_command("run");
  return std::make_shared<const std::string>(EncodeCold(spec));
}

// A cluster of four nodes and three queues with random changes.
class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed) {
    world.clock.tick = absl::Milliseconds(20);  // so long that budgets shrink
    const config::v1::Server config = ConfigOf(kConfigs[0]);
    world.policies = Policies::Create(PolicyConfigFrom(config)).value();
    world.policy_record = PolicyRecordFrom(config);
    world.Restart();
    for (int i = 1; i <= 4; ++i) {
      agents_.push_back(std::make_unique<Agent>(&world, absl::StrCat("n", i)));
      agents_.back()->Connect();
    }
    for (const char* name : {"a", "b"}) {
      QueueSpec spec;
      spec.name = name;
      spec.deserved = {{.name = "cpu", .amount = 12'000}};
      Emit([&](const ClusterState& state) { return QueueCreated{state.next_queue_id(), spec}; });
    }
  }

  void Go(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    world.Run();
  }

  // More jobs than a cycle's budget can evaluate.
  void Flood() {
    for (int i = 0; i < 120; ++i) Submit();
    world.Run();
  }

  void Restart() {
    cut_before_ += world.loop->counters().cycles_exhausted.load();
    world.Restart();
    for (auto& agent : agents_) agent->Connect();
  }

  void Reload(const std::string& yaml) {
    const config::v1::Server config = ConfigOf(yaml);
    world.loop->SetPolicies(
        std::make_shared<const Policies>(Policies::Create(PolicyConfigFrom(config)).value()),
        PolicyRecordFrom(config));
    world.Run();
  }

  void Rest(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(5)) Pass(absl::Seconds(5));
  }

  // A dry run of a job like the submitted ones.
  void Ask() {
    const JobSpec spec = SomeJob("asked");
    REQUIRE(world.loop
                ->Post([&](Turn& turn) {
                  DryRun(turn.Trial(), turn.policies(), spec, turn.now()).status().IgnoreError();
                })
                .ok());
    world.Run();
  }

  uint64_t cycles_cut() const {
    return cut_before_ + world.loop->counters().cycles_exhausted.load();
  }

  World world;

 private:
  using MakeEvent = std::function<std::optional<EventBody>(const ClusterState&)>;

  // Impossible events are refused, without consequence.
  void Emit(const MakeEvent& make) {
    const auto command = [make](Turn& turn) {
      if (auto event = make(turn.state()); event.has_value()) {
        turn.Emit(*std::move(event)).IgnoreError();
      }
    };
    REQUIRE(world.loop->Post(command, CommandClass::kEssential).ok());
    world.Run();
  }

  uint64_t Up(uint64_t bound) { return 1 + random_.Below(bound); }

  JobSpec SomeJob(const std::string& name) {
    JobSpec spec;
    spec.name = name;
    spec.queue = QueueId{static_cast<uint32_t>(Up(3))};
    spec.priority = static_cast<int32_t>(random_.Below(4));
    spec.preemptible = random_.Below(3) != 0;
    spec.max_retries = 1;
    if (random_.Below(2) == 0) spec.walltime = absl::Seconds(Up(60));
    GroupSpec group;
    group.name = "w";
    group.replicas = static_cast<int32_t>(Up(5));
    group.min_available = static_cast<int32_t>(Up(static_cast<uint64_t>(group.replicas)));
    group.shape.cpu_millis = static_cast<int64_t>(100 * Up(60));
    spec.min_available = group.min_available;
    spec.groups.push_back(group);
    return spec;
  }

  void Submit() {
    const JobSpec spec = SomeJob(absl::StrCat("j", ++submitted_));
    REQUIRE(world.loop
                ->Post([spec](Turn& turn) {
                  const JobId id = turn.state().next_job_id();
                  if (!turn.Emit(JobSubmitted{id, spec}).ok()) return;
                  turn.PutCold(id, SomeCold());
                })
                .ok());
  }

  std::optional<JobId> AnyJob(const ClusterState& state) {
    return state.jobs().NextFrom(JobId{random_.Below(state.next_job_id().value)});
  }

  void ChangeJob() {
    const uint64_t what = random_.Below(4);
    Emit([this, what](const ClusterState& state) -> std::optional<EventBody> {
      const std::optional<JobId> id = AnyJob(state);
      if (!id.has_value()) return std::nullopt;
      if (what == 0) return JobCancelled{*id, "test"};
      if (what == 1) return JobUpdated{*id, static_cast<int32_t>(random_.Below(6)), {}};
      return JobSuspended{*id, what == 2};
    });
  }

  void SteerNode() {
    const NodeId node{static_cast<uint32_t>(Up(4))};
    const bool cordoned = random_.Below(3) == 0, drains = cordoned && random_.Below(2) == 0;
    Emit([=](const ClusterState&) { return NodeSteered{node, cordoned, drains, "test"}; });
  }

  void EndTasks() {
    Agent& agent = *agents_[random_.Below(agents_.size())];
    std::vector<Agent::Key> running;
    for (const auto& [key, report] : agent.journal) {
      if (report.state() == v1::TaskReport::RUNNING) running.push_back(key);
    }
    for (const Agent::Key& key : running) {
      if (random_.Below(2) == 0) continue;
      agent.Exit(JobId{std::get<0>(key)}, std::get<1>(key), random_.Below(5) == 0 ? 1 : 0);
    }
  }

  void Pass(absl::Duration time) {
    for (auto& agent : agents_) {
      if (!agent->link->closed) agent->Heartbeat();
    }
    world.Advance(time);
  }

  void LoseNode() {
    Agent& agent = *agents_[random_.Below(agents_.size())];
    agent.Disconnect();
    for (int i = 0; i < 12; ++i) Pass(absl::Seconds(5));
    agent.Connect();
  }

  void Step() {
    const uint64_t what = random_.Below(40);
    if (what < 12) Submit();
    if (what >= 12 && what < 24) EndTasks();
    if (what >= 24 && what < 34) Pass(absl::Seconds(Up(4)));
    if (what == 34) SteerNode();
    if (what >= 35 && what < 38) ChangeJob();
    if (what == 38) Ask();
    if (what == 39 && random_.Below(4) == 0) LoseNode();
    for (auto& agent : agents_) {
      if (!agent->link->closed) agent->Work();
    }
  }

  Random random_;
  std::vector<std::unique_ptr<Agent>> agents_;
  int submitted_ = 0;
  uint64_t cut_before_ = 0;
};

// The same log with one turn changed, without records.
std::unique_ptr<MemoryStore> Changed(const Store& from,
                                     const std::function<void(store::v1::LogTurn&)>& change) {
  auto store = std::make_unique<MemoryStore>();
  const auto entries = from.ReadLog(0, 1'000'000);
  REQUIRE(entries.ok());
  for (const LogEntry& entry : *entries) {
    store::v1::LogTurn turn = ParseTurn(entry.turn).value();
    change(turn);
    const Batch batch{.sequence = entry.sequence, .records = {}, .log = turn.SerializeAsString()};
    REQUIRE(store->Append({&batch}).ok());
  }
  return store;
}

sim::v1::VerifyResult MustVerify(Store& store) {
  auto result = VerifyLog(store);
  INFO(result.status().message());
  REQUIRE(result.ok());
  return *std::move(result);
}

sim::v1::VerifyResult CheckEqual(Store& store) {
  sim::v1::VerifyResult result = MustVerify(store);
  INFO(PrintedVerify(result, "table"));
  CHECK_FALSE(result.has_difference());
  CHECK(result.last_turn() == store.LastSequence());
  return result;
}

// Whether the first decision of the turn's cycle binds tasks.
bool IsPlacing(const store::v1::LogTurn& turn) {
  const int first = static_cast<int>(turn.events_before_cycle());
  return turn.events_size() > first && turn.events(first).has_tasks_bound();
}

TEST_CASE("verify: the engine repeats every decision of a random cluster") {
  const auto seed = GENERATE(range(1, 4));
  INFO("seed " << seed);
  Life life(static_cast<uint64_t>(seed));
  life.Go(60);
  life.Reload(kConfigs[1]);
  life.Go(40);
  life.Restart();  // the file is unchanged: the first configuration again
  life.Go(20);     // until budgets are small
  life.Flood();
  life.Go(25);
  CHECK(life.cycles_cut() > 0);
  const sim::v1::VerifyResult result = CheckEqual(life.world.store);
  CHECK(result.base() == 0);
  CHECK(result.first_turn() == 2);  // the first turn's policies are not recorded
  CHECK(result.decisions() > 300);
  CHECK(result.cycles() > result.turns());  // includes idle cycles
}

TEST_CASE("verify: begins with a base once the start of the log has aged out") {
  Life life(7);
  life.Go(40);
  life.Flood();  // verdicts, and cycles that the budget cuts
  const uint64_t base = life.world.store.KeepBase().value();
  life.Go(8);
  life.world.loop->Replan();
  life.Go(25);
  life.Restart();
  life.Go(10);
  REQUIRE(life.world.store.TrimLog(base + 10).ok());
  REQUIRE(FirstLogged(life.world.store).value() == base + 1);
  const sim::v1::VerifyResult result = CheckEqual(life.world.store);
  CHECK(result.base() == base);
  CHECK(result.first_turn() > base + 1);  // turns before the replan were only applied
  CHECK(result.first_turn() < base + 200);
}

TEST_CASE("verify: a log that begins too late is refused, and the message says where") {
  Life life(8);
  life.Go(20);
  REQUIRE(life.world.store.TrimLog(10).ok());
  const absl::Status status = VerifyLog(life.world.store).status();
  CHECK(absl::IsNotFound(status));
  CHECK(status.message() == "the log begins with batch 11, and there is no base to begin with");
}

TEST_CASE("verify: the first decision that differs is reported, both versions of it") {
  Life life(9);
  life.Go(40);
  uint64_t changed = 0;
  SECTION("another node") {
    const auto tampered = Changed(life.world.store, [&](store::v1::LogTurn& turn) {
      if (changed > 0 || turn.sequence() < 20 || !IsPlacing(turn)) return;
      const int first = static_cast<int>(turn.events_before_cycle());
      store::v1::TasksBound& bound = *turn.mutable_events(first)->mutable_tasks_bound();
      store::v1::Placement& place = *bound.mutable_placements(0);
      place.set_node(place.node() % 4 + 1);
      changed = turn.sequence();
    });
    REQUIRE(changed > 0);
    const sim::v1::Difference difference = MustVerify(*tampered).difference();
    CHECK(difference.turn() == changed);
    CHECK(difference.position() == 1);
    CHECK(difference.logged().find("tasks_bound") == 0);
    CHECK(difference.planned().find("tasks_bound") == 0);
    CHECK(difference.logged() != difference.planned());
    CHECK(difference.logged().find("(job j") != std::string::npos);
    CHECK(difference.version().empty());
    const std::string table = PrintedVerify(MustVerify(*tampered), "table");
    CHECK(table.find(absl::StrCat("turn ", changed, ", cycle at 20")) != std::string::npos);
    CHECK(table.find(difference.planned()) != std::string::npos);
  }
  SECTION("a missing decision") {
    const auto tampered = Changed(life.world.store, [&](store::v1::LogTurn& turn) {
      if (changed > 0 || turn.sequence() < 20 || !IsPlacing(turn)) return;
      const int first = static_cast<int>(turn.events_before_cycle());
      turn.mutable_events()->DeleteSubrange(first, turn.events_size() - first);
      changed = turn.sequence();
    });
    REQUIRE(changed > 0);
    const sim::v1::Difference difference = MustVerify(*tampered).difference();
    CHECK(difference.turn() == changed);
    CHECK(difference.logged().empty());
    CHECK(difference.planned().find("tasks_bound") == 0);
  }
  SECTION("by another version") {
    const auto tampered = Changed(life.world.store, [&](store::v1::LogTurn& turn) {
      if (turn.loaded()) turn.set_version("0.0.9");
      if (changed > 0 || turn.sequence() < 20 || !IsPlacing(turn)) return;
      turn.mutable_events()->DeleteSubrange(static_cast<int>(turn.events_before_cycle()), 1);
      changed = turn.sequence();
    });
    REQUIRE(changed > 0);
    CHECK(MustVerify(*tampered).difference().version() == "0.0.9");
  }
}

TEST_CASE("verify: unknown policies are named") {
  Life life(10);
  life.Go(5);
  uint64_t changed = 0;
  const auto theirs = Changed(life.world.store, [&](store::v1::LogTurn& turn) {
    if (turn.policies().empty()) return;
    config::v1::Server record;
    REQUIRE(record.ParseFromString(turn.policies()));
    record.mutable_scheduling()->add_filters("maintenance");
    turn.set_policies(record.SerializeAsString());
    if (changed == 0) changed = turn.sequence();
  });
  const absl::Status status = VerifyLog(*theirs).status();
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message() ==
        absl::StrCat("log ", changed,
                     " was planned with policies that this program does not have: ",
                     "unknown filter \"maintenance\" (known: node_selector, ",
                     "resources/devices, taints)"));
}

TEST_CASE("verify: a log without policies, or with an impossible event") {
  Life life(11);
  life.Go(10);
  const auto silent =
      Changed(life.world.store, [](store::v1::LogTurn& turn) { turn.clear_policies(); });
  const absl::Status absent = VerifyLog(*silent).status();
  CHECK(absl::IsNotFound(absent));
  CHECK(absent.message() == "no turn after 0 records the policies of its planning");

  const auto impossible = Changed(life.world.store, [](store::v1::LogTurn& turn) {
    if (turn.sequence() == 1) turn.mutable_events(0)->mutable_queue_created()->set_id(77);
  });
  const absl::Status wrong = VerifyLog(*impossible).status();
  CHECK(absl::IsDataLoss(wrong));
  CHECK(wrong.message().find("log 1: an impossible event: ") == 0);

  MemoryStore empty;
  CHECK(MustVerify(empty).turns() == 0);
}

TEST_CASE("history: two bases are kept per history, and the log from the newest base before it") {
  Life life(12);
  const absl::Duration history = absl::Minutes(10);
  MemoryStore& store = life.world.store;
  int kept = 0;
  for (int minute = 0; minute < 40; ++minute) {
    life.Go(6);
    life.Rest(absl::Minutes(1));
    const absl::Time now = life.world.clock.Now();
    const absl::StatusOr<bool> renewed = RenewBase(store, now, history);
    REQUIRE(renewed.ok());
    kept += *renewed ? 1 : 0;
    if (*renewed) life.world.loop->Replan();
    REQUIRE(TrimHistory(store, now, history).ok());
  }
  CHECK(kept >= 5);
  CHECK(kept <= 9);
  const std::vector<uint64_t> bases = store.Bases().value();
  CHECK(bases.size() >= 2);
  CHECK(bases.size() <= 4);
  CHECK(FirstLogged(store).value() == bases.front() + 1);
  const uint64_t old =
      LastTurnBefore(store, life.world.clock.Now() - history, store.LastSequence()).value();
  CHECK(bases.front() <= old);
  CHECK(bases[1] > old);
  CheckEqual(store);
}

}  // namespace
}  // namespace berth::testing
