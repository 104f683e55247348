// The API's rules for queues: by themselves, and against the tree as it stands.
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

// What the shares of a whole spec must be to each other: an update is checked as it would leave the
// queue.
// Also of the server's configuration.
void CheckQueueDefaults(const FieldPath& path, const v1::QueueDefaults& defaults,
                        Findings& findings);

void CheckQueueShares(const QueueSpec& spec, Findings& findings);

// RESOURCE_EXHAUSTED: the resources that it names are too many kinds.
absl::Status CheckQueueKinds(const ClusterState& state, const v1::QueueSpec& spec);

// May this queue be made now? ALREADY_EXISTS, NOT_FOUND (no such parent),
// FAILED_PRECONDITION (the parent has jobs), RESOURCE_EXHAUSTED (too many queues or kinds). Reader
// lock or loop thread.
absl::Status CheckQueueFits(const ClusterState& state, const v1::Queue& queue);

// May the queue go? FAILED_PRECONDITION with jobs or children.
absl::Status CheckQueueEmpty(const ClusterState& state, const Queue& queue);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_QUEUE_H_
