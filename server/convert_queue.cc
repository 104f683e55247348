#include "server/convert_queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/convert_values.h"

namespace berth {
namespace {

void RenderQueueSpec(const ClusterState& state, const Queue& queue, v1::QueueSpec* out) {
  if (queue.spec.parent != kRootQueue) {
    out->set_parent(state.queues().At(queue.spec.parent).spec.name);
  }
  if (!queue.spec.limit.empty()) ToProto(queue.spec.limit, out->mutable_limit());
  out->set_max_jobs(queue.spec.max_jobs);
  out->set_max_running_jobs(queue.spec.max_running_jobs);
  ToProto(queue.spec.labels, out->mutable_labels());
}

void RenderQueueStatus(const ClusterState& state, const Queue& queue, v1::QueueStatus* out) {
  out->set_state(QueueStateToApi(queue));
  ToProto(queue.allocated, state.interner(), out->mutable_allocated());
  ToProto(queue.pending, state.interner(), out->mutable_pending());
  out->set_pending_jobs(
      std::max<int64_t>(0, queue.active_jobs - queue.running_jobs - queue.held_jobs));
  out->set_running_jobs(queue.running_jobs);
  out->set_held_jobs(queue.held_jobs);
  out->set_ended_jobs(queue.jobs - queue.active_jobs);
  for (const QueueId child : queue.children) {
    out->add_children(state.queues().At(child).spec.name);
  }
}

}  // namespace

QueueSpec QueueSpecFrom(const v1::Queue& queue) {
  QueueSpec result;
  result.name = queue.name();
  result.limit = AmountsFrom(queue.spec().limit());
  result.max_jobs = queue.spec().max_jobs();
  result.max_running_jobs = queue.spec().max_running_jobs();
  result.labels = LabelsFrom(queue.spec().labels());
  return result;
}

void UpdateQueueSpec(const google::protobuf::FieldMask& mask, const QueueSpec& from,
                     QueueSpec& to) {
  for (const std::string& path : mask.paths()) {
    if (path == "spec.limit") to.limit = from.limit;
    if (path == "spec.max_jobs") to.max_jobs = from.max_jobs;
    if (path == "spec.max_running_jobs") to.max_running_jobs = from.max_running_jobs;
    if (path == "spec.labels") to.labels = from.labels;
  }
}

v1::QueueState QueueStateToApi(const Queue& queue) {
  if (queue.open) return v1::QUEUE_OPEN;
  return queue.running_jobs > 0 ? v1::QUEUE_CLOSING : v1::QUEUE_CLOSED;
}

void RenderQueue(const ClusterState& state, const Queue& queue, v1::Queue* out) {
  out->set_name(queue.spec.name);
  RenderQueueSpec(state, queue, out->mutable_spec());
  RenderQueueStatus(state, queue, out->mutable_status());
  out->set_etag(absl::StrCat(queue.revision));
}

}  // namespace berth
