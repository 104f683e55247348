// Entitlements of queues as API messages, with the reasons in words.
#ifndef BERTH_SERVER_CONVERT_SHARES_H_
#define BERTH_SERVER_CONVERT_SHARES_H_

#include "absl/status/status.h"
#include "berth/v1/queue.pb.h"
#include "core/engine/parameters.h"
#include "core/model/cluster_state.h"

namespace berth {

inline constexpr size_t kMaxListedShares = 10'000;

// Renders the queues below `top`, and `top` itself unless it is the root and `with_root` is false:
// parents before children, siblings by name. FAILED_PRECONDITION if there are more than
// kMaxListedShares. Recomputes all shares, O(all queues): loop thread or reader lock.
absl::Status RenderShares(const ClusterState& state, const FairShareParameters& parameters,
                          const Queue& top, bool with_root, v1::ListQueueSharesResponse* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_SHARES_H_
