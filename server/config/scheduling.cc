#include "server/config/scheduling.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/model/hyper_node.h"
#include "server/convert/queue.h"
#include "server/convert/values.h"
#include "server/planning/policy_record.h"
#include "server/validation/job.h"
#include "server/validation/values.h"
#include "storage/store.h"

namespace berth {
namespace {

using config::v1::Scheduling;
using Names = google::protobuf::RepeatedPtrField<std::string>;

// The defaults, if the configuration lists no names.
void FillNames(const std::vector<std::string>& names, Names* field) {
  if (field->empty()) field->Assign(names.begin(), names.end());
}

void FillEviction(const EvictionParameters& defaults, config::v1::Eviction& eviction) {
  if (!eviction.has_min_runtime()) ToProto(defaults.min_runtime, eviction.mutable_min_runtime());
  if (!eviction.has_cooldown()) ToProto(defaults.cooldown, eviction.mutable_cooldown());
  if (!eviction.has_min_gain()) ToProto(defaults.min_gain, eviction.mutable_min_gain());
  if (!eviction.has_max_victims()) eviction.set_max_victims(defaults.max_victims);
  if (!eviction.has_gang_grace()) ToProto(defaults.gang_grace, eviction.mutable_gang_grace());
  if (!eviction.has_checkpoint_wait()) {
    ToProto(defaults.checkpoint_wait, eviction.mutable_checkpoint_wait());
  }
}

void FillMigration(const MigrationParameters& defaults, config::v1::Migration& migration) {
  if (!migration.has_max_jobs()) migration.set_max_jobs(defaults.max_jobs);
  if (!migration.has_cooldown()) ToProto(defaults.cooldown, migration.mutable_cooldown());
  if (!migration.has_restart_cost()) {
    ToProto(defaults.restart_cost, migration.mutable_restart_cost());
  }
  if (!migration.has_slowdown()) migration.set_slowdown(defaults.slowdown);
}

void FillBackfill(const BackfillParameters& defaults, config::v1::Backfill& backfill) {
  using config::v1::Backfill;
  if (backfill.mode() == Backfill::MODE_UNSPECIFIED) {
    const bool easy = defaults.mode == BackfillMode::kEasy;
    backfill.set_mode(easy ? Backfill::EASY : Backfill::CONSERVATIVE);
  }
  if (!backfill.has_reservations_per_queue()) {
    backfill.set_reservations_per_queue(defaults.reservations_per_queue);
  }
  if (!backfill.has_reservations()) backfill.set_reservations(defaults.reservations);
  if (!backfill.has_conservative_depth()) {
    backfill.set_conservative_depth(defaults.conservative_depth);
  }
  if (!backfill.has_refresh()) ToProto(defaults.refresh, backfill.mutable_refresh());
  if (backfill.order() == Backfill::ORDER_UNSPECIFIED) backfill.set_order(Backfill::SERVICE);
  if (backfill.fit() == Backfill::FIT_UNSPECIFIED) backfill.set_fit(Backfill::REQUESTED);
}

void FillShortestFirst(const ShortestFirstParameters& defaults, config::v1::ShortestFirst& order) {
  if (!order.has_requested_weight()) order.set_requested_weight(defaults.requested_weight);
  if (!order.has_expected_weight()) order.set_expected_weight(defaults.expected_weight);
  if (!order.has_age()) ToProto(defaults.age, order.mutable_age());
  if (!order.has_overtaking()) order.set_overtaking(defaults.overtaking);
}

void FillLeastAttained(const LeastAttainedParameters& defaults, config::v1::LeastAttained& order) {
  if (!order.has_promote_after()) order.set_promote_after(defaults.promote_after);
  if (order.levels_size() > 0) return;
  for (const Duration level : defaults.levels) ToProto(level, order.add_levels());
}

void CheckEviction(const FieldPath& path, const config::v1::Eviction& eviction,
                   Findings& findings) {
  const absl::Duration none = absl::ZeroDuration();
  CheckDuration({path, "min_runtime"}, eviction.min_runtime(), none, kMaxDuration, findings);
  CheckDuration({path, "cooldown"}, eviction.cooldown(), none, kMaxDuration, findings);
  CheckDuration({path, "min_gain"}, eviction.min_gain(), none, kMaxDuration, findings);
  CheckDuration({path, "gang_grace"}, eviction.gang_grace(), none, kMaxDuration, findings);
  CheckDuration({path, "checkpoint_wait"}, eviction.checkpoint_wait(), none, kMaxDuration,
                findings);
  CheckRange({path, "max_victims"}, eviction.max_victims(), 1, 1'000'000, findings);
}

void CheckMigration(const FieldPath& path, const config::v1::Migration& migration,
                    Findings& findings) {
  const absl::Duration none = absl::ZeroDuration();
  CheckRange({path, "max_jobs"}, migration.max_jobs(), 0, 1000, findings);
  CheckDuration({path, "cooldown"}, migration.cooldown(), none, kMaxDuration, findings);
  CheckDuration({path, "restart_cost"}, migration.restart_cost(), none, kMaxDuration, findings);
  CheckRange({path, "slowdown"}, migration.slowdown(), 1, 1000, findings);
}

void CheckBackfill(const FieldPath& path, const config::v1::Backfill& backfill,
                   Findings& findings) {
  CheckEnum({path, "mode"}, backfill.mode(), findings);
  CheckEnum({path, "order"}, backfill.order(), findings);
  CheckEnum({path, "fit"}, backfill.fit(), findings);
  CheckRange({path, "reservations_per_queue"}, backfill.reservations_per_queue(), 0, 1000,
             findings);
  CheckRange({path, "reservations"}, backfill.reservations(), 0, 100'000, findings);
  CheckRange({path, "conservative_depth"}, backfill.conservative_depth(), 0, 100'000, findings);
  CheckDuration({path, "refresh"}, backfill.refresh(), absl::ZeroDuration(), kMaxDuration,
                findings);
}

void CheckShortestFirst(const FieldPath& path, const config::v1::ShortestFirst& order,
                        Findings& findings) {
  constexpr int32_t kMost = 1000;
  const int32_t expected = order.expected_weight();
  CheckRange({path, "expected_weight"}, expected, 0, kMost, findings);
  const int32_t rest = std::clamp(kMost - expected, 0, kMost);
  CheckRange({path, "requested_weight"}, order.requested_weight(), 0, rest, findings);
  CheckDuration({path, "age"}, order.age(), absl::ZeroDuration(), kMaxDuration, findings);
  CheckRange({path, "overtaking"}, order.overtaking(), 0, kMost, findings);
}

void CheckLeastAttained(const FieldPath& path, const config::v1::LeastAttained& order,
                        Findings& findings) {
  constexpr int kMostLevels = 16;
  CheckRange({path, "promote_after"}, order.promote_after(), 0, 1000, findings);
  if (order.levels_size() > kMostLevels) {
    return findings.Invalid({path, "levels"}, absl::StrCat("has ", order.levels_size(),
                                                           " levels; at most ", kMostLevels));
  }
  absl::Duration least = absl::Milliseconds(1);
  for (int i = 0; i < order.levels_size(); ++i) {
    CheckDuration({path, "levels", i}, order.levels(i), least, kMaxDuration, findings);
    least = DurationFrom(order.levels(i)) + absl::Milliseconds(1);
  }
}

// Settings that use predictions need them.
void CheckPredictionUse(const FieldPath& path, const Scheduling& scheduling, Findings& findings) {
  if (scheduling.prediction().enabled()) return;
  const auto fit = scheduling.backfill().fit();
  if (fit == config::v1::Backfill::PREDICTED ||
      fit == config::v1::Backfill::PREDICTED_UNLESS_AGED) {
    findings.Invalid({path, "fit"}, "needs scheduling.prediction.enabled");
  }
}

}  // namespace

void FillScheduling(Scheduling& scheduling) {
  const PolicyConfig defaults;
  FillNames(defaults.actions, scheduling.mutable_actions());
  FillNames(defaults.filters, scheduling.mutable_filters());
  FillNames(defaults.scores, scheduling.mutable_scores());
  FillNames(defaults.job_orders, scheduling.mutable_job_orders());
  config::v1::FairShare& share = *scheduling.mutable_fair_share();
  if (!share.has_half_life()) ToProto(defaults.fair_share.half_life, share.mutable_half_life());
  if (!share.has_usage_weight()) share.set_usage_weight(defaults.fair_share.usage_weight);
  FillBackfill(defaults.backfill, *scheduling.mutable_backfill());
  FillShortestFirst(defaults.shortest_first, *scheduling.mutable_shortest_first());
  FillLeastAttained(defaults.least_attained, *scheduling.mutable_least_attained());
  FillEviction(defaults.eviction, *scheduling.mutable_eviction());
  FillMigration(defaults.migration, *scheduling.mutable_migration());
  config::v1::ReliableFirst& reliable = *scheduling.mutable_reliable_first();
  if (!reliable.has_min_tasks()) reliable.set_min_tasks(defaults.reliable_first.min_tasks);
  config::v1::ImageLocality& images = *scheduling.mutable_image_locality();
  if (!images.has_devices()) images.set_devices(defaults.image_locality.devices);
  if (!scheduling.has_restart_hold()) {
    ToProto(defaults.lifecycle.restart_hold, scheduling.mutable_restart_hold());
  }
  if (!scheduling.has_longest_pause()) {
    ToProto(defaults.lifecycle.longest_pause, scheduling.mutable_longest_pause());
  }
  config::v1::Topology& topology = *scheduling.mutable_topology();
  if (topology.degraded() == config::v1::Topology::DEGRADED_UNSPECIFIED) {
    topology.set_degraded(config::v1::Topology::AVOID);
  }
  config::v1::GangTopology& gangs = *topology.mutable_gangs();
  const GangTopology gang_default;
  if (!gangs.has_highest_tier()) gangs.set_highest_tier(gang_default.highest_tier);
  if (!gangs.has_patience()) ToProto(gang_default.patience, gangs.mutable_patience());
  config::v1::DeviceSharing& sharing = *scheduling.mutable_sharing();
  if (sharing.policy() == config::v1::DeviceSharing::POLICY_UNSPECIFIED) {
    sharing.set_policy(config::v1::DeviceSharing::BID_PRICE);
  }
}

void CheckScheduling(const FieldPath& path, const Scheduling& scheduling, Findings& findings) {
  config::v1::Server config;
  *config.mutable_scheduling() = scheduling;
  const absl::Status names = Policies::Create(PolicyConfigFrom(config)).status();
  if (!names.ok()) findings.Invalid(path, std::string(names.message()));
  const FieldPath share(path, "fair_share");
  CheckDuration({share, "half_life"}, scheduling.fair_share().half_life(), absl::ZeroDuration(),
                kMaxDuration, findings);
  CheckRange({share, "usage_weight"}, scheduling.fair_share().usage_weight(), 0, 1000, findings);
  CheckBackfill({path, "backfill"}, scheduling.backfill(), findings);
  CheckPredictionUse({path, "backfill"}, scheduling, findings);
  CheckShortestFirst({path, "shortest_first"}, scheduling.shortest_first(), findings);
  CheckLeastAttained({path, "least_attained"}, scheduling.least_attained(), findings);
  CheckEviction({path, "eviction"}, scheduling.eviction(), findings);
  CheckMigration({path, "migration"}, scheduling.migration(), findings);
  const FieldPath reliable(path, "reliable_first");
  CheckRange({reliable, "min_tasks"}, scheduling.reliable_first().min_tasks(), 1, kMaxTasksPerJob,
             findings);
  const FieldPath images(path, "image_locality");
  CheckRange({images, "devices"}, scheduling.image_locality().devices(), 0,
             static_cast<int64_t>(kMaxDevicesPerNode), findings);
  CheckDuration({path, "restart_hold"}, scheduling.restart_hold(), absl::ZeroDuration(),
                absl::Hours(24), findings);
  CheckDuration({path, "longest_pause"}, scheduling.longest_pause(), absl::Minutes(1),
                absl::Hours(24 * 30), findings);
  const FieldPath topology(path, "topology");
  CheckEnum({topology, "degraded"}, scheduling.topology().degraded(), findings);
  const FieldPath gangs(topology, "gangs");
  CheckRange({gangs, "highest_tier"}, scheduling.topology().gangs().highest_tier(), 0,
             kMaxHyperNodeTier, findings);
  CheckDuration({gangs, "patience"}, scheduling.topology().gangs().patience(), absl::ZeroDuration(),
                kMaxDuration, findings);
  const FieldPath sharing(path, "sharing");
  CheckEnum({sharing, "policy"}, scheduling.sharing().policy(), findings);
  CheckRange({path, "preemptible_below_priority"}, scheduling.preemptible_below_priority(),
             -kMaxPriority, kMaxPriority + 1, findings);
}

absl::Status CheckStoreFormat(const config::v1::Server& config, uint32_t store_format) {
  constexpr uint32_t kFormatOfRuns = 6;
  if (!config.scheduling().prediction().enabled() || store_format >= kFormatOfRuns) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("scheduling.prediction.enabled needs store format ", kFormatOfRuns,
                   ", and the store has ", store_format, ": run `berth cluster finalize` first"));
}

JobDefaults JobDefaultsFrom(const config::v1::Server& config) {
  JobDefaults defaults{.finished_job_ttl = DurationFrom(config.finished_job_ttl())};
  if (config.limits().array_parallelism() > 0) {
    defaults.array_parallelism = config.limits().array_parallelism();
  }
  if (config.limits().has_kill_grace()) {
    defaults.greatest_kill_grace = DurationFrom(config.limits().kill_grace());
  }
  if (config.scheduling().has_preemptible_below_priority()) {
    defaults.preemptible_below_priority = config.scheduling().preemptible_below_priority();
  }
  defaults.queue_defaults = QueueDefaultsFrom(config.job_defaults());
  const config::v1::GangTopology& gangs = config.scheduling().topology().gangs();
  defaults.gangs = {.highest_tier = gangs.highest_tier(),
                    .patience = DurationFrom(gangs.patience())};
  return defaults;
}

}  // namespace berth
