// The API's rules for containers of tasks, and for host names of groups.
#ifndef BERTH_SERVER_VALIDATION_CONTAINERS_H_
#define BERTH_SERVER_VALIDATION_CONTAINERS_H_

#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr int64_t kMaxNamedTasks = 4096;  // in a job with host names

// `path`: the group.
void CheckContainers(const FieldPath& path, const v1::TaskGroup& group, Findings& findings);

// Of all groups of the job. `path`: the job's specification.
void CheckHostNames(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_CONTAINERS_H_
