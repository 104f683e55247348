// Rehearsal: finds out which of a few scores (RequestMix::score) fills these nodes best with a
// demand, by trying each.
//
// Prices are right as long as devices run out first. If CPU or memory runs out first, what remains
// of them is scattered, and prices do not capture which requests still fit: sometimes one score
// allocates more devices, sometimes another. So the cluster, or a sample of it, is filled with
// requests of the mix in a random order, as many as request all devices together. None ends, and
// those that do not fit are dropped. Every score gets the same orders.
//
//   600 nodes, 4 scores, 3 orders: 12 fillings of some thousand requests each, about a second
#ifndef BERTH_PRICING_REHEARSAL_H_
#define BERTH_PRICING_REHEARSAL_H_

#include <cstdint>
#include <functional>

#include "core/sharing/host_resource.h"
#include "core/sharing/request_mix.h"

namespace berth {

inline constexpr size_t kRehearsedNodes = 600;       // of more, every second, third, ...
inline constexpr int64_t kRehearsedRequests = 8000;  // per order
inline constexpr int kRehearsedOrders = 3;

// True if CPU or memory, whichever is counted, runs out before devices do.
bool HostRunsOut(const DeviceDemand& demand);

// The score that allocates most devices; ties go to the first. `demand` is counted, and its mix has
// values. If `stop` returns true, returns the best so far.
MixScore BestScore(const DeviceDemand& demand, const std::function<bool()>& stop);

}  // namespace berth

#endif  // BERTH_PRICING_REHEARSAL_H_
