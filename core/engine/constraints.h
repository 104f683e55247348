// Which constraints take away how many nodes from the tasks of one shape, alone, in order, and
// together; and the fewest of them that would suffice to bar the job.
//
//   10 nodes     ready 9   unschedulable -   labels 4 lost   hardware 2 lost   free 6 lost   kept -
//   in order:    1 lost                      3 more          2 more            3 more        1 left
//   smallest:    {labels, free}: the nodes that have both hold fewer tasks than are needed
#ifndef BERTH_CORE_ENGINE_CONSTRAINTS_H_
#define BERTH_CORE_ENGINE_CONSTRAINTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/engine/policies.h"
#include "core/engine/reservations.h"
#include "core/model/cluster_state.h"
#include "core/topology/tree.h"

namespace berth {

// One constraint, and what it takes away.
struct ConstraintCount {
  // In this order: "ready", "schedulable" (cordon, drain, back-off), the configured filters by name
  // ("node_selector", "taints", ...: for what the node is), "size" (the node, even empty, is too
  // small, or has no such devices), "links" (only where they have a floor: its devices are not
  // connected as asked), "topology" (only where a hard constraint holds the group
  // together: the node is in no domain of its tiers that could hold all its tasks if it were
  // empty), "affinity" (only of jobs that are to be near to or apart from others, or others from
  // them: where tasks of these are), "free" (what others hold), "reserved" (what is kept for
  // others).
  std::string name;
  int64_t nodes_alone = 0;     // nodes that it rejects, whatever the others say
  int64_t devices_alone = 0;   // free devices of the asked kinds on these
  int64_t nodes_in_order = 0;  // nodes that pass all before it and not it
  int64_t devices_in_order = 0;
  bool operator==(const ConstraintCount&) const = default;
};

// Of one group of a waiting job.
struct GroupConstraints {
  uint32_t group = 0;
  int64_t needed_tasks = 0;
  int64_t nodes = 0;                         // all that there are
  int64_t devices = 0;                       // free ones of the asked kinds on them
  std::vector<ConstraintCount> constraints;  // in order; those that reject nothing too
  int64_t nodes_left = 0;                    // pass all: a task fits there now
  int64_t tasks_left = 0;                    // that fit there together, at most needed_tasks
  int64_t largest_block = 0;  // most free devices of the asked kinds on one node that is not
                              // rejected before "free"
  // Names: the fewest constraints such that the nodes that pass these alone hold fewer tasks than
  // needed; of equally many the first in order. Empty if all tasks have room.
  std::vector<std::string> blocking;
  bool operator==(const GroupConstraints&) const = default;
};

// A hard topology constraint on all tasks of a group.
struct TopologyLimit {
  const TopologyTree* tree = nullptr;
  std::vector<bool> may;  // by domain: it may be used, by its tier and by what runs
};

// Looks at every node once: O(nodes * filters). Adds the nodes looked at to `work`. With a limit,
// what nodes hold together is what those of one domain hold.
GroupConstraints CountConstraints(const ClusterState& state, const Policies& policies,
                                  Reservations& reservations, const Job& job, uint32_t group,
                                  int64_t needed_tasks, Time now,
                                  const std::optional<TopologyLimit>& limit, uint64_t* work);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_CONSTRAINTS_H_
