#include "core/topology/gang_topology.h"

#include <algorithm>

namespace berth {
namespace {

bool SaysWhere(const GroupSpec& group) {
  return group.strategy != Strategy::kDefault || group.topology.Any() ||
         group.partition_topology.Any() || !group.near_groups.empty() ||
         !group.apart_from.empty() || group.spread.Any();
}

}  // namespace

void AddDefaultTopology(const ClusterState& state, const GangTopology& topology, JobSpec* spec) {
  if (topology.highest_tier == 0 || spec->min_available < 2 || state.hyper_nodes().empty()) return;
  if (spec->strategy != Strategy::kDefault || spec->topology.Any()) return;
  if (!spec->affinity.empty()) return;
  if (std::any_of(spec->groups.begin(), spec->groups.end(), SaysWhere)) return;
  spec->topology.mode = TopologyMode::kSoft;
  spec->topology.highest_tier = topology.highest_tier;
  spec->topology.patience = topology.patience;
}

}  // namespace berth
