// Why a class of pending jobs cannot be placed now, with numbers. Verdicts are kept with the class
// (PendingClass::blocked) and shown to users (WhyWaiting).
#ifndef BERTH_CORE_ENGINE_SEARCH_VERDICT_H_
#define BERTH_CORE_ENGINE_SEARCH_VERDICT_H_

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "core/engine/plan.h"
#include "core/engine/search/node_search.h"

namespace berth {

// What queues hold: all of it, or what remains once what is being released is gone. The first is
// for starts, the second for nominations.
enum class Use : uint8_t { kNow, kOnceReleased };
Resources HeldBy(const Queue& queue, Use use);

// The number of tasks in these needs.
int32_t TasksIn(const JobNeeds& needs);

// The needs of these tasks, ascending, as of one gang.
JobNeeds NeedsOfTasks(const Job& job, const std::vector<uint32_t>& tasks);

// What all of these needs use together: as queues count it, and on the devices where shares use
// least. Only the second decides whether there can be room.
Resources RequestOf(const ClusterState& state, const Job& job, const JobNeeds& needs);
Resources LeastOf(const ClusterState& state, const Job& job, const JobNeeds& needs);

// The requested resource with the largest share of what exists; ties by name, because the order of
// kinds is accidental.
ResourceKind Scarcest(const Interner& interner, const Resources& needed, const Resources& there);

// The queue or an ancestor is closed, or has its maximum of running jobs.
std::optional<BlockedVerdict> QueueVerdict(const ClusterState& state, const Job& job,
                                           Use use = Use::kNow);

// The request alone exceeds the limit of the queue or an ancestor, so it can never fit under that
// limit. Returns the first such queue, from `queue` upward; nullopt if none.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, QueueId queue,
                                                 const Resources& request);
// The same for the first request of a job if it were submitted so.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const JobSpec& spec);
// The same for what the job requests now.
std::optional<BlockedVerdict> BeyondLimitVerdict(const ClusterState& state, const Job& job);
// True for that verdict, and for what even empty nodes cannot hold.
bool CanNeverStart(const WaitReason& reason);

// BeyondLimitVerdict; otherwise the first queue, from the job's own upward, whose limit the request
// would exceed with what the queue holds; nullopt if none.
std::optional<BlockedVerdict> LimitVerdict(const ClusterState& state, QueueId queue,
                                           const Resources& request, Use use = Use::kNow);

// The first queue, from the job's own upward, whose non-preemptible use would exceed what it
// deserves; nullopt if none. For needs that are not preemptible. Only resources that `deserved`
// names are bounded. So reclaim can always take back what others lend.
std::optional<BlockedVerdict> NonpreemptibleVerdict(const ClusterState& state, const Job& job,
                                                    const Resources& request, Use use = Use::kNow);

// The request would take what is set aside for the guarantees of other queues. nullopt if it does
// not, or takes only what its own queue or an ancestor is guaranteed. O(depth).
//
// Going up, what must stay free is the request plus what is kept for the siblings so far. It must
// be available at each queue with a limit, and at the root, within the capacity of the ready nodes.
// Example: 8 GPUs, b is guaranteed 3 and holds 1. a holds 4: it may have 1 more, not 2.
std::optional<BlockedVerdict> GuaranteeVerdict(const ClusterState& state, QueueId queue,
                                               const Resources& request);

// The same after some of what queues hold has gone; `gone` returns how much of each. O(queues).
using GoneOf = absl::FunctionRef<Resources(QueueId)>;
std::optional<BlockedVerdict> GuaranteeVerdictAfter(const ClusterState& state, QueueId queue,
                                                    const Resources& request, GoneOf gone);

// Too little is free: `placed` of the tasks found a place. `state` still has those tasks in place.
// kNoMatchingNode and kNeverFits are found by checking empty nodes.
BlockedVerdict ShortageVerdict(const ClusterState& state, NodeSearch& search, const Job& job,
                               const JobNeeds& needs, int32_t placed, uint64_t* work);

// It lacks room and nothing else, or room is reserved.
bool LacksRoom(const BlockedVerdict& verdict);

// It lacks what other jobs return when they end: room, a queue limit, or room beyond guarantees.
bool WaitsForEnds(const BlockedVerdict& verdict);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_VERDICT_H_
