// Queues between the API and the core.
#ifndef BERTH_SERVER_CONVERT_QUEUE_H_
#define BERTH_SERVER_CONVERT_QUEUE_H_

#include "berth/v1/queue.pb.h"
#include "core/model/cluster_state.h"
#include "core/model/queue.h"

namespace berth {

// The root, as ClusterState names it: the parent of queues without a parent.
inline constexpr absl::string_view kRootQueueName = "root";

// The queue of jobs that name none. A new store gets one; after that it is a queue like any other.
inline constexpr absl::string_view kDefaultQueueName = "default";

// Everything but the parent, which needs the state. Only validated queues.
QueueDefaults QueueDefaultsFrom(const v1::QueueDefaults& defaults);

QueueSpec QueueSpecFrom(const v1::Queue& queue);

// Copies the fields named by `mask` (validated) from `from`.
void UpdateQueueSpec(const google::protobuf::FieldMask& mask, const QueueSpec& from, QueueSpec& to);

v1::QueueState QueueStateToApi(const Queue& queue);

// Reader lock.
void RenderQueue(const ClusterState& state, const Queue& queue, v1::Queue* out);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_QUEUE_H_
