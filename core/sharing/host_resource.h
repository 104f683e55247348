// The host resource: which of CPU and memory the sharing policies count beside devices.
//
// One of them runs out before the other: the one of which the mix asks for the greater part of what
// the nodes have. That one decides what devices are left of use, so it is counted, and the other is
// left to the filters. Memory is counted as if it were CPU (RequestMix::mib_per_core).
//
//   nodes of 16 CPUs and 64 GiB; requests of 1 CPU and 16 GiB: memory, of which 4 GiB count as one
//   CPU; a request counts as 4 CPUs, and an empty node as 16
#ifndef BERTH_CORE_SHARING_HOST_RESOURCE_H_
#define BERTH_CORE_SHARING_HOST_RESOURCE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"
#include "core/sharing/sharing_policy.h"

namespace berth {

// RequestMix::mib_per_core for empty nodes with these rooms; 0: CPU is counted.
int64_t MibPerCore(const RequestMix& mix, absl::Span<const NodeRoom> rooms);

// With what is counted in place of the CPU, and no memory. Both are rounded up, so that what fits
// still does.
Request Counted(Request request, int64_t mib_per_core);
NodeRoom Counted(NodeRoom room, int64_t mib_per_core);

// A mix of requests as they are, without values: as it is counted.
RequestMix Counted(RequestMix mix, int64_t mib_per_core);

// What a counted request of a mix may have asked for, as far as it tells.
Request Uncounted(Request request, int64_t mib_per_core);

// A mix that was learned, and empty nodes, as they are; and as they are counted for the policy:
// FGD's own score knows CPU alone.
struct DeviceDemand {
  RequestMix mix;
  std::vector<NodeRoom> rooms;
};
DeviceDemand CountedFor(SharingPolicy policy, DeviceDemand demand);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_HOST_RESOURCE_H_
