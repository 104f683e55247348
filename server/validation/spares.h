// Rules for spares of groups (TaskGroup.spares, role SPARE).
#ifndef BERTH_SERVER_VALIDATION_SPARES_H_
#define BERTH_SERVER_VALIDATION_SPARES_H_

#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr int32_t kMaxSpares = 64;  // of a group

// For a group with `spares`: whether they can be added to the job.
bool CheckSparesOf(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                   Findings& findings);
// The groups with role SPARE, of a job without `spares`.
void CheckSpareGroups(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_SPARES_H_
