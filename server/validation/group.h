// The API's rules for task groups and lifecycle policies.
#ifndef BERTH_SERVER_VALIDATION_GROUP_H_
#define BERTH_SERVER_VALIDATION_GROUP_H_

#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"
#include "server/validation/resources.h"

namespace berth {

// One group of the job by itself. Adds what its tasks ask for to `totals`, which must not outlive
// the group.
void CheckGroup(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                const config::v1::Limits& limits, ResourceTotals& totals, Findings& findings);

// BINPACK, SPREAD or nothing.
void CheckDeviceStrategy(const FieldPath& path, v1::Strategy strategy, Findings& findings);

// What the groups of one job must be to each other: unique names, dependencies and nearness that
// are known and have no cycle.
void CheckGroupGraph(const FieldPath& job_spec, const v1::JobSpec& spec, Findings& findings);

using PolicyList = google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>;
void CheckPolicies(const FieldPath& parent, const PolicyList& policies, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_GROUP_H_
