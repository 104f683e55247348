// The API's rules for queues: by themselves, and against the current tree.
#ifndef BERTH_SERVER_VALIDATION_QUEUE_H_
#define BERTH_SERVER_VALIDATION_QUEUE_H_

#include "absl/status/status.h"
#include "berth/v1/queue.pb.h"
#include "core/model/cluster_state.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr size_t kMaxQueues = 100'000;
inline constexpr int kMaxQueueDepth = 16;

absl::Status ValidateCreateQueue(const v1::CreateQueueRequest& request);
absl::Status ValidateUpdateQueue(const v1::UpdateQueueRequest& request);

// Relations between the shares of a whole spec; an update is checked as the result that it would
// produce. Also used for the server's configuration.
void CheckQueueDefaults(const FieldPath& path, const v1::QueueDefaults& defaults,
                        Findings& findings);

void CheckQueueShares(const QueueSpec& spec, Findings& findings);

// RESOURCE_EXHAUSTED: it names too many kinds of resources.
absl::Status CheckQueueKinds(const ClusterState& state, const v1::QueueSpec& spec);

// Whether this queue may be created now. ALREADY_EXISTS, NOT_FOUND (no such parent),
// FAILED_PRECONDITION (the parent has jobs), RESOURCE_EXHAUSTED (too many queues or kinds). Reader
// lock or loop thread.
absl::Status CheckQueueFits(const ClusterState& state, const v1::Queue& queue);

// Whether the queue may be deleted. FAILED_PRECONDITION with jobs or children.
absl::Status CheckQueueEmpty(const ClusterState& state, const Queue& queue);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_QUEUE_H_
