// What requests are worth: the values of a mix (RequestMix::priced) for a cluster.
//
// The value of a request is its size less its shadow price in the configuration LP
// (pricing/configuration_lp.h). Of one demand the prices are degenerate: small changes make them
// jump. So they are the mean over kDemands demands, each the mix scaled to between 94 and 130 % of
// the cluster, with every type's amount varied by some 30 % up or down. The variations come from a
// seed and are the same each time.
//
// This takes seconds: it is for a thread of its own. The floating point in it may differ between
// machines; so the priced mix is recorded, and nobody computes it a second time.
#ifndef BERTH_PRICING_PRICES_H_
#define BERTH_PRICING_PRICES_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sharing/host_resource.h"
#include "core/sharing/request_mix.h"
#include "pricing/configuration_lp.h"

namespace berth {

inline constexpr int kDemands = 12;

struct PriceOptions {
  uint64_t seed = 1;
  // Given up as soon as it is true. May be null; must outlive the call.
  const std::atomic<bool>* cancelled = nullptr;
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
};

// The mix with values, for nodes with these rooms, counted as in the mix (mib_per_core): all that
// they have, or, to price what is left now, what they have free. A room's devices may be in parts.
// CANCELLED; DEADLINE_EXCEEDED; INVALID_ARGUMENT if the mix may not be (CheckMix);
// FAILED_PRECONDITION if it asks for no devices, or the rooms have none; others from the solver.
absl::StatusOr<RequestMix> PricedMix(const std::vector<RoomKind>& kinds, RequestMix mix,
                                     const PriceOptions& options);

// The counted mix with values, and with the score by which it fills the rooms best where CPU or
// memory runs out before devices do (pricing/rehearsal.h). Errors as above.
absl::StatusOr<RequestMix> PricedFor(const DeviceDemand& demand, const PriceOptions& options);

inline constexpr size_t kMaxRoomKinds = 256;

// Equal rooms as one kind, in a certain order. CPU is rounded down: to the steps in which it counts
// anyway, and further where there are more kinds than that otherwise.
std::vector<RoomKind> KindsOf(const std::vector<NodeRoom>& rooms);

}  // namespace berth

#endif  // BERTH_PRICING_PRICES_H_
