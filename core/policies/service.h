// The inputs of orders by service: a job's size, its run time so far, and its remaining run time.
#ifndef BERTH_CORE_POLICIES_SERVICE_H_
#define BERTH_CORE_POLICIES_SERVICE_H_

#include <cstdint>
#include <optional>

#include "core/model/cluster_state.h"

namespace berth {

// Thousandths of devices over all tasks; for jobs without devices, thousandths of cores. At least
// 1.
int64_t SizeOf(const ClusterState& state, const Job& job);

// Over all its runs, including the current one.
Duration Served(const Job& job, Time now);

// How many seconds (at least 1) the job is expected to run from now on: the rest of its expected
// run, or of its walltime if no prediction is known. Beyond that, the rest of the walltime or of
// the run that one in ten exceeds, whichever is longer; beyond both, as long again as it has run.
// nullopt if nothing is known.
std::optional<int64_t> RemainingSeconds(const Job& job, Time now);

}  // namespace berth

#endif  // BERTH_CORE_POLICIES_SERVICE_H_
