#include "offline/sim/scenario_result.h"

#include <algorithm>

#include "core/engine/shares/fair_share.h"
#include "offline/sim/names.h"
#include "offline/sim/scenario_load.h"
#include "offline/sim/specs.h"
#include "server/convert/job.h"
#include "server/convert/node.h"
#include "server/convert/values.h"

namespace berth {
namespace {

using AmountMap = google::protobuf::Map<std::string, double>;

void AddAmounts(const Interner& interner, const Resources& amounts, AmountMap* to) {
  for (size_t i = 0; i < interner.kind_count(); ++i) {
    const ResourceKind kind{static_cast<uint8_t>(i)};
    if (amounts[kind] == 0) continue;
    (*to)[interner.KindName(kind)] = InUnits(amounts[kind], UnitOf(kind));
  }
}

void AddAmounts(const std::vector<NamedAmount>& amounts, int64_t unit, AmountMap* to) {
  for (const NamedAmount& one : amounts) {
    (*to)[one.name] = InUnits(one.amount / unit, UnitOf(one.name));
  }
}

sim::v1::TaskResult TaskOf(const ClusterState& state, const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  sim::v1::TaskResult result;
  result.set_job(job.name);
  result.set_task(TaskNameOf(job, index));
  result.set_state(TaskStateToApi(task.state));
  result.set_attempt(static_cast<int32_t>(task.attempt));
  result.set_exit_code(task.exit_code);
  if (Occupies(task.state) || Reserves(task.state)) {
    const Node& node = state.nodes().At(task.node);
    result.set_node(node.spec.name);
    RenderUuids(node, task.devices, result.mutable_devices());
  }
  if (!Occupies(task.state)) return result;
  result.set_requeue(task.requeue);
  if (!task.moves) return result;
  const Node& next = state.nodes().At(task.next_node);
  result.set_moves_to(next.spec.name);
  RenderUuids(next, task.next_devices, result.mutable_moves_to_devices());
  return result;
}

void SetTime(Time time, google::protobuf::Duration* to) { ToProto(time - ScenarioStart(), to); }

std::string QueueName(const ClusterState& state, QueueId id) {
  const Queue* queue = state.queues().Find(id);
  return queue == nullptr ? "" : queue->spec.name;
}

sim::v1::WaitReason ReasonOf(const ClusterState& state, const WaitReason& from) {
  sim::v1::WaitReason reason;
  RenderShortage(from, &reason);
  const bool of_queue = from.code == WaitCode::kQueueLimit || from.code == WaitCode::kQueueClosed ||
                        from.code == WaitCode::kQueueRunningJobs || from.queue != kRootQueue;
  if (of_queue) reason.set_queue(QueueName(state, from.queue));
  const Job* job = state.jobs().Find(from.job);
  if (job != nullptr) reason.set_job(job->name);
  for (const RoomAsked& asked : from.asked) (*reason.mutable_barred())[asked.action] = asked.barred;
  if (from.until != absl::InfinitePast() && from.until != absl::InfiniteFuture()) {
    SetTime(from.until, reason.mutable_until());
  }
  return reason;
}

sim::v1::Place PlaceOf(const ClusterState& state, const Job& job, const Placement& placement) {
  sim::v1::Place place;
  const Node& node = state.nodes().At(placement.node);
  place.set_task(TaskNameOf(job, placement.task));
  place.set_node(node.spec.name);
  RenderUuids(node, placement.devices, place.mutable_devices());
  return place;
}

sim::v1::JobResult JobOf(const SimCluster& cluster, const Job& job) {
  const ClusterState& state = cluster.state();
  sim::v1::JobResult result;
  result.set_name(job.name);
  result.set_queue(QueueName(state, job.queue));
  result.set_state(JobStateToApi(job.status.state));
  for (const WaitReason& reason : WhyWaiting(state, job, cluster.now())) {
    *result.add_reasons() = ReasonOf(state, reason);
  }
  result.set_retries(job.status.retries);
  result.set_starts(static_cast<int32_t>(job.status.starts));
  result.set_message(job.status.message);
  SetTime(job.submit, result.mutable_submitted());
  if (job.status.start != absl::InfinitePast()) SetTime(job.status.start, result.mutable_started());
  if (job.status.end != absl::InfinitePast()) SetTime(job.status.end, result.mutable_ended());
  const auto reserved = state.reservations().find(job.id);
  if (reserved == state.reservations().end()) return result;
  sim::v1::Reservation* reservation = result.mutable_reservation();
  SetTime(reserved->second.start, reservation->mutable_start());
  if (reserved->second.end != absl::InfiniteFuture()) {
    SetTime(reserved->second.end, reservation->mutable_end());
  }
  for (const Placement& place : reserved->second.places) {
    *reservation->add_places() = PlaceOf(state, job, place);
  }
  return result;
}

sim::v1::QueueResult QueueOf(const ClusterState& state, const Queue& queue,
                             const FairShares::OfQueue& share) {
  const Interner& interner = state.interner();
  sim::v1::QueueResult result;
  result.set_name(queue.spec.name);
  AddAmounts(interner, queue.allocated, result.mutable_allocated());
  AddAmounts(interner, queue.pending, result.mutable_pending());
  AddAmounts(interner, queue.nonpreemptible, result.mutable_nonpreemptible());
  AddAmounts(queue.spec.guarantee, 1, result.mutable_guarantee());
  AddAmounts(queue.spec.deserved, 1, result.mutable_deserved());
  AddAmounts(queue.spec.limit, 1, result.mutable_limit());
  AddAmounts(queue.usage, 1024, result.mutable_usage());
  result.set_active_jobs(queue.active_jobs);
  result.set_running_jobs(queue.running_jobs);
  result.set_held_jobs(queue.held_jobs);
  AddAmounts(interner, share.fair_share, result.mutable_fair_share());
  AddAmounts(interner, share.deserved, result.mutable_entitled());
  result.set_closed(!queue.open);
  return result;
}

sim::v1::NodeResult NodeOf(const ClusterState& state, const Node& node) {
  sim::v1::NodeResult result;
  result.set_name(node.spec.name);
  result.set_state(NodeStateToApi(node.status.state));
  result.set_cordoned(node.status.cordoned);
  result.set_draining(node.status.draining);
  result.set_tasks(static_cast<int32_t>(node.tasks.size()));
  result.set_refusals(node.status.refusals);
  RenderDomains(state, node, result.mutable_domains());
  AddAmounts(state.interner(), FreeOf(node), result.mutable_free());
  return result;
}

template <class List>
void SortByName(List* list) {
  std::sort(list->begin(), list->end(),
            [](const auto& a, const auto& b) { return NaturalLess(a.name(), b.name()); });
}

std::vector<const Job*> JobsByName(const ClusterState& state) {
  std::vector<const Job*> jobs;
  state.jobs().ForEach([&](JobId, const Job& job) { jobs.push_back(&job); });
  std::sort(jobs.begin(), jobs.end(),
            [](const Job* a, const Job* b) { return NaturalLess(a->name, b->name); });
  return jobs;
}

}  // namespace

RepeatedPtrField<sim::v1::TaskResult> TasksOf(const ClusterState& state) {
  RepeatedPtrField<sim::v1::TaskResult> tasks;
  for (const Job* job : JobsByName(state)) {
    for (uint32_t i = 0; i < job->tasks.size(); ++i) *tasks.Add() = TaskOf(state, *job, i);
  }
  return tasks;
}

void AddEnd(const SimCluster& cluster, sim::v1::ScenarioResult* result) {
  const ClusterState& state = cluster.state();
  *result->mutable_tasks() = TasksOf(state);
  for (const Job* job : JobsByName(state)) *result->add_jobs() = JobOf(cluster, *job);
  const FairShares shares = FairSharesOf(state, cluster.policies().fair_share());
  state.queues().ForEach([&](QueueId id, const Queue& queue) {
    *result->add_queues() = QueueOf(state, queue, shares.At(id));
  });
  state.nodes().ForEach(
      [&](NodeId, const Node& node) { *result->add_nodes() = NodeOf(state, node); });
  SortByName(result->mutable_queues());
  SortByName(result->mutable_nodes());
  SetTime(cluster.now(), result->mutable_time());
}

}  // namespace berth
