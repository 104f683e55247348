// A restart of a job that somebody asked for. Unlike the rest of the lifecycle it is a request, and
// so not part of a cycle: the events are those of a restart, of which a command emits all.
#ifndef BERTH_CORE_ENGINE_LIFECYCLE_REQUEUE_H_
#define BERTH_CORE_ENGINE_LIFECYCLE_REQUEUE_H_

#include <string>

#include "core/engine/lifecycle/lifecycle.h"

namespace berth {

// Stops what the job holds and lets it wait for another start, without a retry; everything runs
// again. Empty if it is not bound and does not run. Requires an active job that is no series.
Step RequeueOf(const ClusterState& state, const Job& job, const LifecycleParameters& parameters,
               Time now, const std::string& message);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_LIFECYCLE_REQUEUE_H_
