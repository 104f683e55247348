// Reload of the configuration: what changes, what waits for a restart, and the effect of an invalid
// file.
#include "server/config/reload.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "berth/store/v1/store.pb.h"
#include "server/config/config.h"
#include "server/config/scheduling.h"
#include "server/convert/values.h"
#include "server/planning/policy_record.h"
#include "storage/codec.h"
#include "support/yaml_proto.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/server/service_world.h"
#include "tests/unit/server/validation_samples.h"

namespace berth::testing {
namespace {

absl::StatusOr<config::v1::Server> ConfigOf(const std::string& yaml) {
  config::v1::Server config;
  if (absl::Status status = ReadYaml(yaml, "berthd.yaml", &config); !status.ok()) return status;
  if (absl::Status status = CompleteConfig(config); !status.ok()) return status;
  return config;
}

const std::string kLiveYaml = R"(
scheduling:
  actions: []
  scores: [best_fit]
  reliableFirst: {minTasks: 9}
  imageLocality: {devices: 5}
  fairShare: {halfLife: 1h, usageWeight: 3}
  backfill: {mode: CONSERVATIVE, reservationsPerQueue: 2, reservations: 3, conservativeDepth: 4,
    refresh: 7s}
  eviction: {minRuntime: 1m, cooldown: 2m, minGain: 3m, maxVictims: 5, gangGrace: 6m}
  preemptibleBelowPriority: 7
  topology: {gangs: {highestTier: 2, patience: 8m}}
cordonAfterRefusals: 8
finishedJobTtl: 9h
history: 10h
log: {level: error}
)";

}  // namespace

TEST_CASE("reload: the scheduling section becomes the planner's configuration") {
  const PolicyConfig policies = PolicyConfigFrom(ConfigOf(kLiveYaml).value());
  CHECK(policies.actions == PolicyConfig{}.actions);  // an empty list is the default
  CHECK(policies.fair_share.half_life == absl::Hours(1));
  CHECK(policies.fair_share.usage_weight == 3);
  CHECK(policies.backfill.mode == BackfillMode::kConservative);
  CHECK(policies.backfill.reservations_per_queue == 2);
  CHECK(policies.backfill.reservations == 3);
  CHECK(policies.backfill.conservative_depth == 4);
  CHECK(policies.backfill.refresh == absl::Seconds(7));
  CHECK(policies.eviction.min_runtime == absl::Minutes(1));
  CHECK(policies.eviction.cooldown == absl::Minutes(2));
  CHECK(policies.eviction.min_gain == absl::Minutes(3));
  CHECK(policies.eviction.max_victims == 5);
  CHECK(policies.eviction.gang_grace == absl::Minutes(6));
  CHECK(policies.lifecycle.cordon_after_refusals == 8);
  CHECK(policies.reliable_first.min_tasks == 9);
  CHECK(policies.image_locality.devices == 5);
  CHECK(JobDefaultsFrom(ConfigOf(kLiveYaml).value()).preemptible_below_priority == 7);
  CHECK_FALSE(JobDefaultsFrom(ConfigOf("").value()).preemptible_below_priority.has_value());
  CHECK(JobDefaultsFrom(ConfigOf(kLiveYaml).value()).gangs.highest_tier == 2);
  CHECK(JobDefaultsFrom(ConfigOf(kLiveYaml).value()).gangs.patience == absl::Minutes(8));
  CHECK(JobDefaultsFrom(ConfigOf("").value()).gangs.highest_tier == GangTopology{}.highest_tier);
  CHECK(JobDefaultsFrom(ConfigOf("").value()).gangs.patience == GangTopology{}.patience);

  const PolicyConfig defaults = PolicyConfigFrom(ConfigOf("").value());
  CHECK(defaults.scores == PolicyConfig{}.scores);
  CHECK(defaults.eviction.cooldown == EvictionParameters{}.cooldown);
  CHECK(defaults.backfill.reservations == BackfillParameters{}.reservations);
}

TEST_CASE("reload: the record in the log restores the same policies") {
  config::v1::Server record;
  REQUIRE(record.ParseFromString(PolicyRecordFrom(ConfigOf(kLiveYaml).value())));
  const PolicyConfig policies = PolicyConfigFrom(record);
  CHECK(policies.backfill.conservative_depth == 4);
  CHECK(policies.lifecycle.cordon_after_refusals == 8);
  CHECK(policies.filters == PolicyConfig{}.filters);
  CHECK(record.listen().empty());
}

TEST_CASE("reload: live keys are applied, and others are reported to need a restart") {
  const config::v1::Server before = ConfigOf("").value();
  config::v1::Server wanted = ConfigOf(kLiveYaml).value();
  wanted.set_listen("127.0.0.1:1");
  wanted.mutable_limits()->set_watchers(5);
  const std::vector<ConfigChange> changes = DiffConfig(before, wanted);
  CHECK(changes.front() == ConfigChange{"listen", "127.0.0.1:7070", "127.0.0.1:1", true});
  std::vector<ConfigChange> waiting = DiffConfig(WithLiveKeys(before, wanted), wanted);
  CHECK(waiting == std::vector<ConfigChange>{{"listen", "127.0.0.1:7070", "127.0.0.1:1", true},
                                             {"limits.watchers", "1000", "5", true}});
  size_t live = 0;
  for (const ConfigChange& change : changes) live += change.needs_restart ? 0 : 1;
  CHECK(live == 22);
  const auto has = [&](const ConfigChange& change) {
    return std::find(changes.begin(), changes.end(), change) != changes.end();
  };
  CHECK(has({"scheduling.backfill.mode", "EASY", "CONSERVATIVE", false}));
  CHECK(has({"scheduling.eviction.cooldown", "60s", "120s", false}));
  CHECK(has({"scheduling.preemptible_below_priority", "none", "7", false}));
}

TEST_CASE("reload: a list of messages is compared as a whole") {
  config::v1::Server before;
  REQUIRE(CompleteConfig(before).ok());
  config::v1::Server after = before;
  CHECK(DiffConfig(before, after).empty());
  config::v1::RunAs& ada = *after.add_run_as();
  ada.set_user("ada");
  ada.add_certificates("laptop");
  CHECK(DiffConfig(before, after) ==
        std::vector<ConfigChange>{
            {"run_as", "[]", "[{user: \"ada\" certificates: \"laptop\"}]", true}});
}

TEST_CASE("reload: an invalid file changes nothing") {
  std::string yaml = "scheduling: {backfill: {reservations: 3}}";
  std::vector<int32_t> adopted;
  Reloader reloader(
      ConfigOf("").value(), [&] { return ConfigOf(yaml); },
      [&](const config::v1::Server& config) {
        adopted.push_back(config.scheduling().backfill().reservations());
      });
  CHECK(reloader.Reload(true).value().size() == 1);
  CHECK(adopted.empty());
  REQUIRE(reloader.Reload(false).ok());
  CHECK(adopted == std::vector<int32_t>{3});
  CHECK(reloader.Reload(false).value().empty());
  yaml = "scheduling: {actions: [conquer]}";
  const absl::Status wrong = reloader.Reload(false).status();
  CHECK(absl::IsFailedPrecondition(wrong));
  CHECK(wrong.message() ==
        "the configuration is unchanged: scheduling: unknown action \"conquer\" (known: "
        "allocate, backfill, consolidate, expire_gangs, migrate, preempt, reclaim, rotate)");
  yaml = "scheduling: {action: [allocate]}";
  CHECK(std::string(reloader.Reload(false).status().message()).find("berthd.yaml:1:14") !=
        std::string::npos);
  CHECK(adopted.size() == 2);  // the second is the one without changes
  yaml = "";
  CHECK(reloader.Reload(false).value() ==
        std::vector<ConfigChange>{{"scheduling.backfill.reservations", "3", "16", false}});
}

TEST_CASE("reload: without a file there is nothing to read") {
  Reloader reloader(ConfigOf("").value(), nullptr, [](const config::v1::Server&) {});
  CHECK(absl::IsFailedPrecondition(reloader.Reload(false).status()));
}

TEST_CASE("reload: over the API, new jobs and the next cycle use the new configuration") {
  ServiceWorld world;
  v1::ReloadConfigRequest request;
  v1::ReloadConfigResponse response;
  using Cluster = v1::ClusterService::Stub;
  CHECK(
      absl::IsFailedPrecondition(Call(*world.cluster, &Cluster::ReloadConfig, request, &response)));
  world.reread = [] {
    return ConfigOf(
        "scheduling: {preemptibleBelowPriority: 5}\nhttpListen: 'off'\n"
        "listen: 127.0.0.1:0\nlog: {level: error}");
  };
  world.Restart();
  world.CreateQueue("q");
  request.set_dry_run(true);
  REQUIRE(Call(*world.cluster, &Cluster::ReloadConfig, request, &response).ok());
  REQUIRE(response.changes_size() == 1);
  CHECK(response.changes(0).path() == "scheduling.preemptible_below_priority");
  CHECK(response.changes(0).before() == "none");
  CHECK(response.changes(0).after() == "5");
  const auto preemptible = [&](const std::string& name) {
    world.MustSubmit({name});
    return world.MustGetJob(name).spec().preemptible();
  };
  CHECK_FALSE(preemptible("before"));
  request.set_dry_run(false);
  REQUIRE(Call(*world.cluster, &Cluster::ReloadConfig, request, &response).ok());
  CHECK(preemptible("after"));
  REQUIRE(Call(*world.cluster, &Cluster::ReloadConfig, request, &response).ok());
  CHECK(response.changes_size() == 0);
}

TEST_CASE("reload: policies switch between turns, wake pending jobs, and are in the log") {
  World world;
  Agent agent(&world, "n1");
  agent.Connect();
  PolicyConfig idle;
  idle.actions.clear();
  world.loop->SetPolicies(std::make_shared<const Policies>(Policies::Create(idle).value()),
                          "no actions");
  world.Run();
  const JobId job = world.Submit("j");
  CHECK(world.job(job).status.state == JobState::kPending);
  CHECK(world.task(job).state == TaskState::kPending);
  world.loop->SetPolicies(std::make_shared<const Policies>(Policies::Default()), "all");
  world.Run();
  CHECK(world.task(job).state != TaskState::kPending);

  std::vector<std::string> records;
  const auto page = world.store.ReadLog(0, 1000);
  REQUIRE(page.ok());
  for (const LogEntry& entry : *page) {
    const LoggedTurn turn = DecodeTurn(entry.turn).value();
    if (!turn.policies.empty()) records.push_back(turn.policies);
    CHECK(turn.events_before_cycle <= turn.events.size());
    if (turn.policies != "all") continue;
    CHECK(turn.events_before_cycle == 0);  // only the cycle's decisions
    CHECK(turn.cycle_budget > 0);
    CHECK(std::holds_alternative<TasksBound>(turn.events.front().body));
  }
  CHECK(records == std::vector<std::string>{"no actions", "all"});
}

}  // namespace berth::testing
