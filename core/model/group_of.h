// The group of a task, for who has the groups without the Job.
#ifndef BERTH_CORE_MODEL_GROUP_OF_H_
#define BERTH_CORE_MODEL_GROUP_OF_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/model/job.h"

namespace berth {

uint32_t GroupOf(absl::Span<const Group> groups, uint32_t task);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_GROUP_OF_H_
