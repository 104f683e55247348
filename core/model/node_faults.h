// How often a node failed lately: each fault counts 1, and half as much after each further week.
//
//   a fault now, one a week ago, two a fortnight ago     1 + 0.5 + 2 * 0.25 = 2
//
// Counted are incidents that hit tasks and that the node is to blame for: it was lost with tasks on
// it, a device became unhealthy under a task, or it refused the start of another job
// (RefusedJobs). Few nodes cause a large part of the failures of large jobs ("lemon nodes", Kokolis
// et al., "Revisiting Reliability in Large-Scale Machine Learning Research Clusters", 2024): the
// score `reliable_first` keeps large gangs off them.
#ifndef BERTH_CORE_MODEL_NODE_FAULTS_H_
#define BERTH_CORE_MODEL_NODE_FAULTS_H_

#include <cstdint>

#include "core/model/ids.h"

namespace berth {

struct NodeFaults {
  int64_t thousandths = 0;         // at that time; 1000 is one fault; at most kMaxNodeFaults
  Time at = absl::InfinitePast();  // of the latest fault
  bool operator==(const NodeFaults&) const = default;
};

inline constexpr Duration kFaultHalfLife = absl::Hours(7 * 24);
inline constexpr int64_t kMaxNodeFaults = 1'000'000;
// From this on, operators are told that the node should be cordoned and repaired.
inline constexpr int64_t kFailingNode = 3000;

// Thousandths. Between the half-lives it falls in a straight line.
int64_t FaultsAt(const NodeFaults& faults, Time now);
NodeFaults WithFault(const NodeFaults& faults, Time now);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_NODE_FAULTS_H_
