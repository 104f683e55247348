// The host resource: whether the sharing policies count CPU or memory besides devices.
//
// One of them runs out first: the one of which the mix requests the greater part of what the nodes
// have. It determines which remaining devices are usable, so it is counted; filters handle the
// other. Memory is counted as if it were CPU (RequestMix::mib_per_core).
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

// With the counted resource in place of CPU, and without memory. Requests and rooms are both
// rounded up, so that what fits still does.
Request Counted(Request request, int64_t mib_per_core);
NodeRoom Counted(NodeRoom room, int64_t mib_per_core);

// The counted form of a mix with actual requests, without values.
RequestMix Counted(RequestMix mix, int64_t mib_per_core);

// An actual request that may correspond to a counted request of a mix.
Request Uncounted(Request request, int64_t mib_per_core);

// A learned mix and the empty nodes, as they are and as the policy counts them. FGD's own score
// uses CPU only.
struct DeviceDemand {
  RequestMix mix;
  std::vector<NodeRoom> rooms;
};
DeviceDemand CountedFor(SharingPolicy policy, DeviceDemand demand);

}  // namespace berth

#endif  // BERTH_CORE_SHARING_HOST_RESOURCE_H_
