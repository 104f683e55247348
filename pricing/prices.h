// The values of a mix's requests (RequestMix::priced) for a cluster.
//
// The value of a request is its size minus its shadow price in the configuration LP
// (pricing/configuration_lp.h). The prices of a single demand are degenerate: small changes make
// them jump. So they are averaged over kDemands demands. Each is the mix scaled to between 94 and
// 130 % of the cluster, with every type's amount varied by about 30 % up or down. The variations
// come from a fixed seed.
//
// This takes seconds: run it on a separate thread. Its floating point may differ between machines,
// so the priced mix is recorded, and never computed again.
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
  // Stops soon after it becomes true. May be null; must outlive the call.
  const std::atomic<bool>* cancelled = nullptr;
  std::chrono::milliseconds time_limit = std::chrono::seconds(60);
};

// The mix with values, for nodes with these rooms, counted as in the mix (mib_per_core). Pass all
// that they have, or, to price what remains now, what they have free. Devices of a room may be
// partly used. CANCELLED; DEADLINE_EXCEEDED; INVALID_ARGUMENT if the mix is invalid (CheckMix);
// FAILED_PRECONDITION if it requests no devices or the rooms have none; others from the solver.
absl::StatusOr<RequestMix> PricedMix(const std::vector<RoomKind>& kinds, RequestMix mix,
                                     const PriceOptions& options);

// The counted mix with values, and with the score that fills the rooms best if CPU or memory runs
// out before devices do (pricing/rehearsal.h). Errors as above.
absl::StatusOr<RequestMix> PricedFor(const DeviceDemand& demand, const PriceOptions& options);

inline constexpr size_t kMaxRoomKinds = 256;

// Merges equal rooms into kinds, in a fixed order. CPU is rounded down to the steps in which it
// counts anyway, and more coarsely if that leaves too many kinds.
std::vector<RoomKind> KindsOf(const std::vector<NodeRoom>& rooms);

}  // namespace berth

#endif  // BERTH_PRICING_PRICES_H_
