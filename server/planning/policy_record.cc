#include "server/planning/policy_record.h"

#include <vector>

#include "server/convert/values.h"

namespace berth {
namespace {

using config::v1::Scheduling;
using Names = google::protobuf::RepeatedPtrField<std::string>;

std::vector<std::string> NamesFrom(const Names& names) { return {names.begin(), names.end()}; }

BackfillFit FitFrom(config::v1::Backfill::Fit fit) {
  using config::v1::Backfill;
  if (fit == Backfill::PREDICTED) return BackfillFit::kPredicted;
  if (fit == Backfill::PREDICTED_UNLESS_AGED) return BackfillFit::kPredictedUnlessAged;
  return BackfillFit::kRequested;
}

BackfillParameters BackfillFrom(const config::v1::Backfill& backfill) {
  const bool shortest = backfill.order() == config::v1::Backfill::SHORTEST_FIRST;
  const bool all = backfill.mode() == config::v1::Backfill::CONSERVATIVE;
  return {.mode = all ? BackfillMode::kConservative : BackfillMode::kEasy,
          .order = shortest ? BackfillOrder::kShortestFirst : BackfillOrder::kService,
          .fit = FitFrom(backfill.fit()),
          .reservations_per_queue = backfill.reservations_per_queue(),
          .reservations = backfill.reservations(),
          .conservative_depth = backfill.conservative_depth(),
          .refresh = DurationFrom(backfill.refresh())};
}

EvictionParameters EvictionFrom(const config::v1::Eviction& eviction) {
  return {.min_runtime = DurationFrom(eviction.min_runtime()),
          .cooldown = DurationFrom(eviction.cooldown()),
          .min_gain = DurationFrom(eviction.min_gain()),
          .max_victims = eviction.max_victims(),
          .gang_grace = DurationFrom(eviction.gang_grace()),
          .checkpoint_wait = DurationFrom(eviction.checkpoint_wait())};
}

SharingPolicy SharingFrom(config::v1::DeviceSharing::Policy policy) {
  using config::v1::DeviceSharing;
  switch (policy) {
    case DeviceSharing::FRAGMENTATION:
      return SharingPolicy::kFragmentation;
    case DeviceSharing::FGD:
      return SharingPolicy::kFgd;
    case DeviceSharing::BINPACK:
      return SharingPolicy::kBinpack;
    case DeviceSharing::SPREAD:
      return SharingPolicy::kSpread;
    default:
      return SharingPolicy::kBidPrice;
  }
}

}  // namespace

config::v1::Server WithoutPlacing(config::v1::Server config) {
  Names& actions = *config.mutable_scheduling()->mutable_actions();
  actions.Clear();
  *actions.Add() = "expire_gangs";  // an empty list would mean the default
  return config;
}

PolicyConfig PolicyConfigFrom(const config::v1::Server& config) {
  const Scheduling& scheduling = config.scheduling();
  PolicyConfig policies;
  policies.actions = NamesFrom(scheduling.actions());
  policies.filters = NamesFrom(scheduling.filters());
  policies.scores = NamesFrom(scheduling.scores());
  policies.job_orders = NamesFrom(scheduling.job_orders());
  policies.lifecycle.cordon_after_refusals = config.cordon_after_refusals();
  policies.lifecycle.restart_hold = DurationFrom(scheduling.restart_hold());
  // Logs of versions without pauses do not have it.
  if (scheduling.has_longest_pause()) {
    policies.lifecycle.longest_pause = DurationFrom(scheduling.longest_pause());
  }
  policies.fair_share = {.half_life = DurationFrom(scheduling.fair_share().half_life()),
                         .usage_weight = scheduling.fair_share().usage_weight()};
  policies.backfill = BackfillFrom(scheduling.backfill());
  policies.prediction.enabled = scheduling.prediction().enabled();
  policies.shortest_first = {.requested_weight = scheduling.shortest_first().requested_weight(),
                             .expected_weight = scheduling.shortest_first().expected_weight(),
                             .overtaking = scheduling.shortest_first().overtaking(),
                             .age = DurationFrom(scheduling.shortest_first().age())};
  policies.least_attained.levels.clear();
  for (const auto& level : scheduling.least_attained().levels()) {
    policies.least_attained.levels.push_back(DurationFrom(level));
  }
  policies.least_attained.promote_after = scheduling.least_attained().promote_after();
  policies.eviction = EvictionFrom(scheduling.eviction());
  const config::v1::Migration& migration = scheduling.migration();
  policies.migration = {.max_jobs = migration.max_jobs(),
                        .cooldown = DurationFrom(migration.cooldown()),
                        .restart_cost = DurationFrom(migration.restart_cost()),
                        .slowdown = migration.slowdown()};
  policies.reliable_first.min_tasks = scheduling.reliable_first().min_tasks();
  policies.image_locality.devices = scheduling.image_locality().devices();
  policies.sharing.policy = SharingFrom(scheduling.sharing().policy());
  if (scheduling.topology().degraded() == config::v1::Topology::EXCLUDE) {
    policies.topology.degraded = DegradedDomains::kExclude;
  }
  return policies;
}

std::string PolicyRecordFrom(const config::v1::Server& config) {
  config::v1::Server record;
  record.set_cordon_after_refusals(config.cordon_after_refusals());
  *record.mutable_scheduling() = config.scheduling();
  // The events contain the results of these.
  record.mutable_scheduling()->clear_preemptible_below_priority();
  record.mutable_scheduling()->mutable_topology()->clear_gangs();
  return record.SerializeAsString();
}

}  // namespace berth
