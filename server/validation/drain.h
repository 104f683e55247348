// Rules for DrainNodeRequest.
#ifndef BERTH_SERVER_VALIDATION_DRAIN_H_
#define BERTH_SERVER_VALIDATION_DRAIN_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "berth/v1/node.pb.h"
#include "core/model/node.h"

namespace berth {

inline constexpr absl::Duration kMaxDrainDeadline = absl::Hours(24 * 30);

// By itself. UNIMPLEMENTED for WHEN_PLACED; FAILED_PRECONDITION if the store's format is one whose
// servers would read another drain from it.
absl::Status ValidateDrain(const v1::DrainNodeRequest& request, uint32_t store_format);

// The drain of that node, given that ValidateDrain accepted the request. A drain that is only
// repeated goes on: its begin stays. INVALID_ARGUMENT lists devices that the node does not have;
// FAILED_PRECONDITION if devices are to be drained while the node is.
absl::StatusOr<Drain> DrainFor(const Node& node, const v1::DrainNodeRequest& request, Time now);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_DRAIN_H_
