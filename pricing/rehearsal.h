// Rehearsal: by which of a few scores (RequestMix::score) a demand fills these nodes best, found by
// trying each.
//
// Prices tell what devices are worth as long as devices are what runs out. Where CPU or memory runs
// out first, what is left of them lies about in pieces, and who still fits into these is decided by
// more than prices know: then now this score, now that one gives out more devices. So the cluster,
// or a part of it, is filled with requests of the mix in a random order, as many as ask for all
// devices together; none ends, what finds no place is dropped. Each score meets the same orders.
//
//   600 nodes, 4 scores, 3 orders: 12 fillings of some thousand requests each, about a second
#ifndef BERTH_PRICING_REHEARSAL_H_
#define BERTH_PRICING_REHEARSAL_H_

#include <cstdint>
#include <functional>

#include "core/sharing/host_resource.h"
#include "core/sharing/request_mix.h"

namespace berth {

inline constexpr size_t kRehearsedNodes = 600;       // of more, every second, every third, ...
inline constexpr int64_t kRehearsedRequests = 8000;  // of one order
inline constexpr int kRehearsedOrders = 3;

// CPU or memory, whichever is counted, runs out before devices do.
bool HostRunsOut(const DeviceDemand& demand);

// The score that gives out most devices; of equal ones the first. `demand` is counted, and its mix
// has values. As soon as `stop` says so, what is known by then counts.
MixScore BestScore(const DeviceDemand& demand, const std::function<bool()>& stop);

}  // namespace berth

#endif  // BERTH_PRICING_REHEARSAL_H_
