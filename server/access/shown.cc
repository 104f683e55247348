#include "server/access/shown.h"

#include <algorithm>
#include <utility>

#include "berth/store/v1/store.pb.h"

namespace berth {
namespace {

using v1::ChangeEvent;
using v1::WaitReason;
using Reasons = google::protobuf::RepeatedPtrField<WaitReason>;

bool SeesJob(const ClusterState& state, Rights& rights, const std::string& name) {
  const Job* job = state.FindJob(name);
  if (job == nullptr) return rights.OnCluster(state, Verb::kListJobs);  // deleted meanwhile
  return rights.OnJob(state, Verb::kListJobs, *job);
}

bool SeesQueue(const ClusterState& state, Rights& rights, const std::string& name) {
  const Queue* queue = state.FindQueue(name);
  return queue != nullptr && rights.OnQueue(state, Verb::kReadQueue, queue->id);
}

// A queue, or one above it: what it limits there explains why a job waits.
bool IsOnPath(const ClusterState& state, QueueId queue, const std::string& name) {
  const Queue* found = state.FindQueue(name);
  if (found == nullptr) return false;
  const PathToRoot path = PathOf(state, queue);
  return std::find(path.begin(), path.end(), found->id) != path.end();
}

void HideOthersIn(const ClusterState& state, Rights& rights, QueueId queue, WaitReason* reason) {
  if (!reason->job().empty() && !SeesJob(state, rights, reason->job())) {
    reason->clear_job();
    reason->clear_detail();
  }
  if (!reason->queue().empty() && !IsOnPath(state, queue, reason->queue()) &&
      !SeesQueue(state, rights, reason->queue())) {
    reason->clear_queue();
    reason->clear_detail();
  }
  if (reason->code() == WaitReason::NODE_FENCING && !rights.OnCluster(state, Verb::kReadCluster)) {
    reason->clear_detail();
  }
  // The text names other queues, and what they hold.
  for (v1::RoomAsked& asked : *reason->mutable_asked()) asked.clear_barred();
}

void HideOthersIn(const ClusterState& state, Rights& rights, QueueId queue, Reasons* reasons) {
  for (WaitReason& reason : *reasons) HideOthersIn(state, rights, queue, &reason);
}

void HideOthersIn(const ClusterState& state, Rights& rights, v1::Eviction* eviction) {
  if (SeesJob(state, rights, eviction->beneficiary())) return;
  eviction->clear_beneficiary();
  eviction->clear_beneficiary_uid();
  eviction->clear_detail();
}

void HideOthersIn(const ClusterState& state, Rights& rights, v1::JobPause* pause) {
  if (pause->beneficiary().empty() || SeesJob(state, rights, pause->beneficiary())) return;
  pause->clear_beneficiary();
  pause->clear_beneficiary_uid();
  pause->clear_detail();
}

// Codes whose texts come from the cluster, and not from the job's command, labels or messages.
bool ShowsDetail(WaitReason::Code code) {
  switch (code) {
    case WaitReason::INSUFFICIENT_RESOURCES:
    case WaitReason::QUEUE_LIMIT:
    case WaitReason::QUEUE_CLOSED:
    case WaitReason::NEVER_FITS:
    case WaitReason::DEPENDENCY:
    case WaitReason::GROUP_DEPENDENCY:
    case WaitReason::NOT_CONSIDERED:
    case WaitReason::QUEUE_RUNNING_JOBS:
    case WaitReason::NODE_FENCING:
    case WaitReason::NON_PREEMPTIBLE_QUOTA:
    case WaitReason::GUARANTEE_KEPT:
    case WaitReason::BEHIND_HEAD:
    case WaitReason::RESERVED:
    case WaitReason::WAITS_FOR_BETTER_TIER:
      return true;
    default:
      return false;
  }
}

void ListReasons(const Reasons& full, Reasons* out) {
  for (const WaitReason& reason : full) {
    WaitReason& added = *out->Add();
    added = reason;
    if (!ShowsDetail(reason.code())) added.clear_detail();
  }
}

void ListGroup(const v1::TaskGroup& full, v1::TaskGroup* out) {
  out->set_name(full.name());
  if (full.has_replicas()) out->set_replicas(full.replicas());
  if (full.has_min_available()) out->set_min_available(full.min_available());
  if (full.has_resources()) *out->mutable_resources() = full.resources();
  if (full.has_preemptible()) out->set_preemptible(full.preemptible());
  if (full.has_priority()) out->set_priority(full.priority());
  out->set_role(full.role());
}

void ListSpec(const v1::JobSpec& full, v1::JobSpec* out) {
  out->set_queue(full.queue());
  out->set_priority(full.priority());
  out->set_priority_class(full.priority_class());
  if (full.has_preemptible()) out->set_preemptible(full.preemptible());
  if (full.has_walltime()) *out->mutable_walltime() = full.walltime();
  if (full.has_start_after()) *out->mutable_start_after() = full.start_after();
  if (full.has_deadline()) *out->mutable_deadline() = full.deadline();
  out->set_min_available(full.min_available());
  out->set_suspended(full.suspended());
  out->set_user(full.user());
  for (const v1::TaskGroup& group : full.groups()) ListGroup(group, out->add_groups());
}

void ListStatus(const v1::JobStatus& full, v1::JobStatus* out) {
  out->set_state(full.state());
  ListReasons(full.reasons(), out->mutable_reasons());
  out->set_start_count(full.start_count());
  out->set_owner(full.owner());
  if (full.has_submit_time()) *out->mutable_submit_time() = full.submit_time();
  if (full.has_start_time()) *out->mutable_start_time() = full.start_time();
  if (full.has_end_time()) *out->mutable_end_time() = full.end_time();
  *out->mutable_groups() = full.groups();
  if (full.has_reservation()) {
    v1::Reservation& reservation = *out->mutable_reservation();
    if (full.reservation().has_start()) *reservation.mutable_start() = full.reservation().start();
    if (full.reservation().has_end()) *reservation.mutable_end() = full.reservation().end();
  }
}

v1::Job Listed(const v1::Job& full) {
  v1::Job job;
  job.set_name(full.name());
  job.set_uid(full.uid());
  job.set_etag(full.etag());
  ListSpec(full.spec(), job.mutable_spec());
  ListStatus(full.status(), job.mutable_status());
  return job;
}

v1::Task Listed(const v1::Task& full) {
  v1::Task task;
  task.set_job(full.job());
  task.set_group(full.group());
  task.set_index(full.index());
  task.set_rank(full.rank());
  task.set_state(full.state());
  task.set_attempt(full.attempt());
  if (full.has_start_time()) *task.mutable_start_time() = full.start_time();
  if (full.has_end_time()) *task.mutable_end_time() = full.end_time();
  if (full.has_state_time()) *task.mutable_state_time() = full.state_time();
  return task;
}

void HideNodesIn(v1::ExplainJobResponse* rendered) {
  if (rendered->has_reservation()) rendered->mutable_reservation()->clear_nodes();
  for (v1::TopologyScope& scope : *rendered->mutable_topology()) {
    scope.clear_largest();
    scope.clear_best();
  }
}

// A queue that the caller cannot use is no remedy.
void HideRemedies(const ClusterState& state, Rights& rights, v1::ExplainJobResponse* rendered) {
  auto* remedies = rendered->mutable_remedies();
  const auto hidden = [&](const v1::Remedy& remedy) {
    return remedy.kind() == v1::Remedy::OTHER_QUEUE && !SeesQueue(state, rights, remedy.value());
  };
  remedies->erase(std::remove_if(remedies->begin(), remedies->end(), hidden), remedies->end());
}

void HideHolders(const ClusterState& state, Rights& rights, v1::ExplainJobResponse* rendered) {
  for (v1::Holder& holder : *rendered->mutable_holders()) {
    if (SeesJob(state, rights, holder.job())) continue;
    holder.clear_job();
    holder.clear_queue();
  }
}

bool IsOfQueue(ChangeEvent::Type type) {
  return type == ChangeEvent::QUEUE_CREATED || type == ChangeEvent::QUEUE_CHANGED ||
         type == ChangeEvent::QUEUE_DELETED;
}

// Where the event could be seen, if that queue still exists. `from`: a LogEvent, or a TaskChange.
template <class Logged>
QueueId SeenIn(const ClusterState& state, const Logged& from) {
  const QueueId queue{from.seen_in()};
  return from.seen_in() != 0 && state.queues().Find(queue) != nullptr ? queue : kRootQueue;
}

bool ShowsQueue(const ClusterState& state, Rights& rights, const store::v1::LogEvent& from,
                const ChangeEvent& event) {
  const Queue* queue = state.FindQueue(event.queue());
  return rights.OnQueue(state, Verb::kReadQueue,
                        queue != nullptr ? queue->id : SeenIn(state, from));
}

template <class Logged>
VerbSet RightsOnGone(const ClusterState& state, Rights& rights, const Logged& from) {
  const Principal& caller = rights.caller().principal;
  const bool owner =
      caller.kind == Principal::Kind::kUser && !from.owner().empty() && caller.name == from.owner();
  return rights.At(state, SeenIn(state, from)) | (owner ? kOwnerVerbs : VerbSet());
}

// What the caller may do with the job of the event, of listing and reading it.
VerbSet RightsOnJobOf(const ClusterState& state, Rights& rights, const store::v1::LogEvent& from,
                      const ChangeEvent& event) {
  const Job* job = state.jobs().Find(JobId{event.job_uid()});
  if (job == nullptr) {
    for (const store::v1::TaskChange& change : from.tasks()) {
      if (change.job() == event.job_uid()) return RightsOnGone(state, rights, change);
    }
    return RightsOnGone(state, rights, from);
  }
  VerbSet found;
  for (const Verb verb : {Verb::kListJobs, Verb::kReadJob}) {
    if (rights.OnJob(state, verb, *job)) found.Add(verb);
  }
  return found;
}

}  // namespace

void Show(const ClusterState& state, Rights& rights, const Job& job, v1::Job* rendered) {
  if (!rights.OnJob(state, Verb::kReadJob, job)) *rendered = Listed(*rendered);
  if (rights.SeesAll(state)) return;
  v1::JobStatus& status = *rendered->mutable_status();
  HideOthersIn(state, rights, job.queue, status.mutable_reasons());
  if (status.has_last_eviction()) {
    HideOthersIn(state, rights, status.mutable_last_eviction());
  }
  if (status.has_pause()) {
    HideOthersIn(state, rights, status.mutable_pause());
  }
}

void Show(const ClusterState& state, Rights& rights, const Job& job, v1::Task* rendered) {
  if (rights.OnJob(state, Verb::kReadJob, job)) return;
  v1::Task listed = Listed(*rendered);
  if (rights.OnCluster(state, Verb::kReadCluster)) {
    listed.set_node(rendered->node());
    listed.set_next_node(rendered->next_node());
    *listed.mutable_devices() = rendered->devices();
  }
  *rendered = std::move(listed);
}

void Show(const ClusterState& state, Rights& rights, const Job& job,
          v1::ExplainJobResponse* rendered) {
  if (!rights.OnJob(state, Verb::kReadJob, job)) {
    Reasons listed;
    ListReasons(rendered->reasons(), &listed);
    rendered->mutable_reasons()->Swap(&listed);
  }
  if (rights.SeesAll(state)) return;
  HideOthersIn(state, rights, job.queue, rendered->mutable_reasons());
  HideHolders(state, rights, rendered);
  HideRemedies(state, rights, rendered);
  if (!rights.OnCluster(state, Verb::kReadCluster)) HideNodesIn(rendered);
}

void Show(const ClusterState& state, Rights& rights, QueueId queue, v1::PlanJobResponse* rendered) {
  if (rights.SeesAll(state)) return;
  HideOthersIn(state, rights, queue, rendered->mutable_blockers());
  for (v1::PlannedEviction& eviction : *rendered->mutable_evictions()) {
    if (SeesJob(state, rights, eviction.job())) continue;
    eviction.clear_job();
    eviction.clear_queue();
    eviction.clear_detail();
  }
}

bool Show(const ClusterState& state, Rights& rights, const store::v1::LogEvent& from,
          ChangeEvent* rendered) {
  if (IsOfQueue(rendered->type())) return ShowsQueue(state, rights, from, *rendered);
  if (rendered->job_uid() == 0) return rights.OnCluster(state, Verb::kReadCluster);
  const VerbSet rights_here = RightsOnJobOf(state, rights, from, *rendered);
  if (!rights_here.Has(Verb::kListJobs)) return false;
  if (rights_here.Has(Verb::kReadJob)) return true;
  rendered->clear_message();
  rendered->clear_exit_code();
  rendered->clear_exit_signal();
  if (!rights.OnCluster(state, Verb::kReadCluster)) rendered->clear_node();
  return true;
}

}  // namespace berth
