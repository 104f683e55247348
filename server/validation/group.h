// The API's rules for task groups and lifecycle policies.
#ifndef BERTH_SERVER_VALIDATION_GROUP_H_
#define BERTH_SERVER_VALIDATION_GROUP_H_

#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"
#include "server/validation/resources.h"

namespace berth {

// Checks one group by itself. Adds its tasks' requests to `totals`, which must not outlive the
// group.
void CheckGroup(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                const config::v1::Limits& limits, ResourceTotals& totals, Findings& findings);

// What the group's command and each of its containers have: command, args, env, working_dir, image
// and what belongs to it, volumes.
void CheckProcess(const FieldPath& path, const v1::TaskGroup& group, Findings& findings);

// BINPACK, SPREAD or nothing.
void CheckDeviceStrategy(const FieldPath& path, v1::Strategy strategy, Findings& findings);

// Relations between the groups of one job: unique names; dependencies and affinity that exist and
// have no cycle.
void CheckGroupGraph(const FieldPath& job_spec, const v1::JobSpec& spec, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_GROUP_H_
