// The API's rules for the volumes of a task group.
#ifndef BERTH_SERVER_VALIDATION_VOLUMES_H_
#define BERTH_SERVER_VALIDATION_VOLUMES_H_

#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

// `path`: the group.
void CheckVolumes(const FieldPath& path, const v1::TaskGroup& group, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_VOLUMES_H_
