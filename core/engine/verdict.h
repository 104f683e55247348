// Why a class of waiting jobs cannot be placed now, with numbers. Verdicts are kept with the class
// (PendingClass::blocked) and shown to users (WhyWaiting).
#ifndef BERTH_CORE_ENGINE_VERDICT_H_
#define BERTH_CORE_ENGINE_VERDICT_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "core/engine/node_search.h"
#include "core/engine/plan.h"

namespace berth {

// What queues hold: all of it, or what they still do once what is being released is gone. A start
// asks for the first, a nomination for the second.
enum class Use : uint8_t { kNow, kOnceReleased };
Resources HeldBy(const Queue& queue, Use use);

// What all of these needs take together: as queues count it, and on the devices where shares take
// least. Only the second says whether there is room for them at all.
Resources RequestOf(const ClusterState& state, const Job& job, const JobNeeds& needs);
Resources LeastOf(const ClusterState& state, const Job& job, const JobNeeds& needs);

// The resource asked for whose share of what is there is largest; ties by name, as the order of
// kinds is an accident of history.
ResourceKind Scarcest(const Interner& interner, const Resources& needed, const Resources& there);

// The queue or an ancestor is closed, or has as many running jobs as it may.
std::optional<BlockedVerdict> QueueVerdict(const ClusterState& state, const Job& job,
                                           Use use = Use::kNow);

// The request alone is larger than the limit of the queue or of one above it, so that it can never
// be met while the limit is as it is: the first such queue, from `queue` upward. nullopt if none.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, QueueId queue,
                                                 const Resources& request);
// The same of what a job would ask for at first if it were submitted so.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const JobSpec& spec);
// The same of what the job asks for now.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const Job& job);
// True of what that says, and of what even empty nodes cannot hold.
bool CanNeverStart(const WaitReason& reason);

// What BeyondLimitVerdict says; else the first queue, from the job's own upward, whose limit the
// request would break with what the queue holds; nullopt if there is none.
std::optional<BlockedVerdict> LimitVerdict(const ClusterState& state, QueueId queue,
                                           const Resources& request, Use use = Use::kNow);

// A queue, from the job's own upward, whose non-preemptible use the request would take beyond what
// it deserves; nullopt if there is none. For needs that are not preemptible. Only resources that
// `deserved` names are bounded. So what others lend, reclaim can always take back.
std::optional<BlockedVerdict> NonpreemptibleVerdict(const ClusterState& state, const Job& job,
                                                    const Resources& request, Use use = Use::kNow);

// The request would take what is set aside for the guarantees of other queues. nullopt if it does
// not, or takes only of what its own queue or an ancestor is guaranteed. O(depth).
//
// Going up, what must stay free is the request and what is kept for the siblings so far; where a
// queue has a limit, and at the root with the capacity of the ready nodes, that must be there.
// Example: 8 GPUs, b is guaranteed 3 and holds 1. a holds 4: it may have 1 more, not 2.
std::optional<BlockedVerdict> GuaranteeVerdict(const ClusterState& state, QueueId queue,
                                               const Resources& request);

// The same when some of what queues hold has gone; `gone` says how much of each. O(queues).
using GoneOf = absl::FunctionRef<Resources(QueueId)>;
std::optional<BlockedVerdict> GuaranteeVerdictAfter(const ClusterState& state, QueueId queue,
                                                    const Resources& request, GoneOf gone);

// Too little is free: `placed` of the tasks had found a place. `state` is as it was then, so with
// those tasks in place. kNoMatchingNode and kNeverFits are found by looking at empty nodes.
BlockedVerdict ShortageVerdict(const ClusterState& state, NodeSearch& search, const Job& job,
                               const JobNeeds& needs, int32_t placed, uint64_t* work);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VERDICT_H_
