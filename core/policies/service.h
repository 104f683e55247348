// What orders by service go by: how large a job is, how long it has run, and how much is left.
#ifndef BERTH_CORE_POLICIES_SERVICE_H_
#define BERTH_CORE_POLICIES_SERVICE_H_

#include <cstdint>
#include <optional>

#include "core/model/cluster_state.h"

namespace berth {

// In thousandths: devices of all tasks, or of jobs without any their cores. At least 1.
int64_t SizeOf(const ClusterState& state, const Job& job);

// Of all its runs, that of now included.
Duration Served(const Job& job, Time now);

// Seconds, at least 1, that the job is expected to run from now on: of its expected run, else of
// its walltime, what it has not run yet. Beyond that what is left to the longer of the run that one
// in ten exceeds and the walltime; beyond these, as long again as it has run. nullopt: nothing is
// known.
std::optional<int64_t> RemainingSeconds(const Job& job, Time now);

}  // namespace berth

#endif  // BERTH_CORE_POLICIES_SERVICE_H_
