// How many nodes each constraint removes for the tasks of one shape: alone, in order, and together;
// and the smallest set of constraints that blocks the job.
//
//   10 nodes     ready 9   unschedulable -   labels 4 lost   hardware 2 lost   free 6 lost   kept -
//   in order:    1 lost                      3 more          2 more            3 more        1 left
//   smallest:    {labels, free}: the nodes that have both hold fewer tasks than are needed
#ifndef BERTH_CORE_ENGINE_EXPLAIN_CONSTRAINTS_H_
#define BERTH_CORE_ENGINE_EXPLAIN_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/policies.h"
#include "core/engine/search/reservations.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// One constraint, and what it removes.
struct ConstraintCount {
  // In this order: "ready"; "schedulable" (cordon, drain, back-off); the configured filters by name
  // ("node_selector", "taints", ...: properties of the node); "size" (the node, even when empty, is
  // too small or lacks such devices); "links" (only for requests with a link floor: the node's
  // devices are not connected as requested); "topology" (only if a hard constraint keeps the group
  // together: no domain of its tiers with this node could hold all its tasks when empty);
  // "affinity" (only for jobs with affinity to other jobs, in either direction: where tasks of
  // those run); "avoided" (only if a device failed under the job: where that was); "free" (held by
  // others); "reserved" (kept for others).
  std::string name;
  int64_t nodes_alone = 0;     // nodes that it rejects, whatever the others say
  int64_t devices_alone = 0;   // free devices of the requested kinds on these
  int64_t nodes_in_order = 0;  // nodes that pass all before it but not it
  int64_t devices_in_order = 0;
  bool operator==(const ConstraintCount&) const = default;
};

// For one group of a pending job.
struct GroupConstraints {
  uint32_t group = 0;
  int64_t needed_tasks = 0;
  int64_t nodes = 0;                         // all nodes
  int64_t devices = 0;                       // free devices of the requested kinds on them
  std::vector<ConstraintCount> constraints;  // in order, including those that reject nothing
  int64_t nodes_left = 0;                    // pass all: a task fits there now
  int64_t tasks_left = 0;                    // how many fit there together, at most needed_tasks
  int64_t largest_block = 0;  // most free devices of the requested kinds on one node that no
                              // constraint before "free" rejects
  // Names of the smallest set of constraints such that the nodes that pass them hold fewer tasks
  // than needed; among sets of equal size the first in order. Empty if all tasks have room.
  std::vector<std::string> blocking;
  bool operator==(const GroupConstraints&) const = default;
};

// A hard topology constraint on all tasks of a group.
struct TopologyLimit {
  const TopologyTree* tree = nullptr;
  std::vector<bool> may;  // by domain: whether its tier and its running tasks allow its use
};

// Visits every node once: O(nodes * filters). Adds the visited nodes to `work`. With a limit, the
// tasks that nodes hold together are counted within one domain.
GroupConstraints CountConstraints(const ClusterState& state, const Policies& policies,
                                  Reservations& reservations, const Job& job, uint32_t group,
                                  int64_t needed_tasks, Time now,
                                  const std::optional<TopologyLimit>& limit, uint64_t* work);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EXPLAIN_CONSTRAINTS_H_
