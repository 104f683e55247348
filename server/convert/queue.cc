#include "server/convert/queue.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/convert/values.h"

namespace berth {
namespace {

void RenderDefaults(const QueueDefaults& defaults, v1::QueueDefaults* out) {
  out->set_cpu_millis(defaults.cpu_millis);
  out->set_memory_bytes(defaults.memory_bytes);
  if (defaults.walltime != absl::InfiniteDuration()) {
    ToProto(defaults.walltime, out->mutable_walltime());
  }
}

void RenderQueueSpec(const ClusterState& state, const Queue& queue, v1::QueueSpec* out) {
  if (queue.spec.parent != kRootQueue) {
    out->set_parent(state.queues().At(queue.spec.parent).spec.name);
  }
  if (!queue.spec.limit.empty()) ToProto(queue.spec.limit, out->mutable_limit());
  if (!queue.spec.deserved.empty()) ToProto(queue.spec.deserved, out->mutable_deserved());
  if (!queue.spec.guarantee.empty()) ToProto(queue.spec.guarantee, out->mutable_guarantee());
  out->set_weight(queue.spec.weight);
  out->set_priority(queue.spec.priority);
  out->set_reclaimable(queue.spec.reclaimable);
  const bool strict = queue.spec.order == QueueOrder::kFifoStrict;
  out->set_order(strict ? v1::QueueSpec::FIFO_STRICT : v1::QueueSpec::FIFO_SKIP);
  const bool drf = queue.spec.user_fairness == UserFairness::kDrf;
  out->set_user_fairness(drf ? v1::QueueSpec::DRF : v1::QueueSpec::NONE);
  out->set_strategy(StrategyToApi(queue.spec.strategy));
  out->set_surplus_only(queue.spec.surplus_only);
  if (queue.spec.slice > absl::ZeroDuration()) ToProto(queue.spec.slice, out->mutable_slice());
  out->set_device_strategy(StrategyToApi(queue.spec.device_strategy));
  out->set_max_jobs(queue.spec.max_jobs);
  out->set_max_running_jobs(queue.spec.max_running_jobs);
  out->set_max_tasks(queue.spec.max_tasks);
  if (queue.spec.defaults != QueueDefaults{}) {
    RenderDefaults(queue.spec.defaults, out->mutable_defaults());
  }
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
  out->set_active_tasks(queue.active_tasks);
  constexpr int64_t kUsageScale = 1024;  // Queue::usage
  std::vector<NamedAmount> usage = queue.usage;
  for (NamedAmount& one : usage) one.amount = (one.amount + kUsageScale / 2) / kUsageScale;
  if (!usage.empty()) ToProto(usage, out->mutable_usage());
  for (const QueueId child : queue.children) {
    out->add_children(state.queues().At(child).spec.name);
  }
}

}  // namespace

QueueDefaults QueueDefaultsFrom(const v1::QueueDefaults& defaults) {
  QueueDefaults result{.cpu_millis = defaults.cpu_millis(),
                       .memory_bytes = defaults.memory_bytes()};
  if (defaults.has_walltime()) result.walltime = DurationFrom(defaults.walltime());
  return result;
}

QueueSpec QueueSpecFrom(const v1::Queue& queue) {
  QueueSpec result;
  result.name = queue.name();
  const v1::QueueSpec& spec = queue.spec();
  result.limit = AmountsFrom(spec.limit());
  result.deserved = AmountsFrom(spec.deserved());
  result.guarantee = AmountsFrom(spec.guarantee());
  if (spec.has_weight()) result.weight = spec.weight();
  result.priority = spec.priority();
  if (spec.has_reclaimable()) result.reclaimable = spec.reclaimable();
  if (spec.order() == v1::QueueSpec::FIFO_STRICT) result.order = QueueOrder::kFifoStrict;
  if (spec.user_fairness() == v1::QueueSpec::DRF) result.user_fairness = UserFairness::kDrf;
  result.strategy = StrategyFrom(spec.strategy());
  result.surplus_only = spec.surplus_only();
  if (spec.has_slice()) result.slice = DurationFrom(spec.slice());
  result.device_strategy = StrategyFrom(spec.device_strategy());
  result.max_jobs = spec.max_jobs();
  result.max_running_jobs = spec.max_running_jobs();
  result.max_tasks = spec.max_tasks();
  result.defaults = QueueDefaultsFrom(spec.defaults());
  result.labels = LabelsFrom(spec.labels());
  return result;
}

void UpdateQueueSpec(const google::protobuf::FieldMask& mask, const QueueSpec& from,
                     QueueSpec& to) {
  for (const std::string& path : mask.paths()) {
    if (path == "spec.limit") to.limit = from.limit;
    if (path == "spec.deserved") to.deserved = from.deserved;
    if (path == "spec.guarantee") to.guarantee = from.guarantee;
    if (path == "spec.weight") to.weight = from.weight;
    if (path == "spec.priority") to.priority = from.priority;
    if (path == "spec.reclaimable") to.reclaimable = from.reclaimable;
    if (path == "spec.order") to.order = from.order;
    if (path == "spec.user_fairness") to.user_fairness = from.user_fairness;
    if (path == "spec.strategy") to.strategy = from.strategy;
    if (path == "spec.surplus_only") to.surplus_only = from.surplus_only;
    if (path == "spec.slice") to.slice = from.slice;
    if (path == "spec.device_strategy") to.device_strategy = from.device_strategy;
    if (path == "spec.max_jobs") to.max_jobs = from.max_jobs;
    if (path == "spec.max_running_jobs") to.max_running_jobs = from.max_running_jobs;
    if (path == "spec.max_tasks") to.max_tasks = from.max_tasks;
    if (path == "spec.defaults") to.defaults = from.defaults;
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
