// Rules for DrainNodeRequest.
#ifndef BERTH_SERVER_VALIDATION_DRAIN_H_
#define BERTH_SERVER_VALIDATION_DRAIN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/v1/node.pb.h"

namespace berth {

inline constexpr absl::Duration kMaxDrainDeadline = absl::Hours(24 * 30);

// What is wrong with it whatever the node is. FAILED_PRECONDITION if servers that read the store's
// format would read another drain from it.
absl::Status ValidateDrain(const v1::DrainNodeRequest& request, uint32_t store_format);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_DRAIN_H_
