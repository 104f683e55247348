#include "server/convert/change.h"

#include "core/model/job.h"
#include "server/convert/job.h"

namespace berth {
namespace {

using store::v1::LogEvent;
using store::v1::LogTurn;
using store::v1::TaskChange;
using v1::ChangeEvent;
using Out = google::protobuf::RepeatedPtrField<ChangeEvent>;

// The meaning of an event for watchers, apart from its task changes.
struct Meaning {
  ChangeEvent::Type type = ChangeEvent::TYPE_UNSPECIFIED;  // unspecified: only task changes
  uint64_t job = 0;
  const std::string* message = nullptr;
};

Meaning JobMeaning(const LogEvent& event) {
  switch (event.body_case()) {
    case LogEvent::kJobSubmitted:
      return {ChangeEvent::JOB_SUBMITTED, event.job_submitted().id()};
    case LogEvent::kJobUpdated:
      return {ChangeEvent::JOB_UPDATED, event.job_updated().id()};
    case LogEvent::kJobCancelled:
      return {ChangeEvent::JOB_CHANGED, event.job_cancelled().id(),
              &event.job_cancelled().reason()};
    case LogEvent::kJobSuspended:
      return {ChangeEvent::JOB_CHANGED, event.job_suspended().id()};
    case LogEvent::kJobDeleted:
      return {ChangeEvent::JOB_DELETED, event.job_deleted().id()};
    case LogEvent::kJobReserved:
      return {ChangeEvent::JOB_CHANGED, event.job_reserved().job()};
    case LogEvent::kCheckpointRecorded:
      return {ChangeEvent::JOB_CHANGED, event.checkpoint_recorded().job()};
    case LogEvent::kTaskHung:
      return {ChangeEvent::JOB_CHANGED, event.task_hung().job()};
    case LogEvent::kJobStatusChanged:
      return {ChangeEvent::JOB_CHANGED, event.job_status_changed().job(),
              &event.job_status_changed().status().message()};
    default:
      return {};
  }
}

Meaning TaskMeaning(const LogEvent& event) {
  switch (event.body_case()) {
    case LogEvent::kTaskReported:
      return {{}, event.task_reported().job(), &event.task_reported().message()};
    case LogEvent::kTasksBound:
      return {{}, event.tasks_bound().job()};
    case LogEvent::kTasksStarted:
      return {{}, event.tasks_started().job()};
    case LogEvent::kTasksReleased:
      return {{}, event.tasks_released().job(), &event.tasks_released().detail()};
    case LogEvent::kTasksRequeued:
      return {{}, event.tasks_requeued().job()};
    case LogEvent::kTasksNominated:
      return {{}, event.tasks_nominated().job()};
    case LogEvent::kTasksUnnominated:
      return {{}, event.tasks_unnominated().job()};
    case LogEvent::kTasksPaused:
      return {ChangeEvent::JOB_CHANGED, event.tasks_paused().job(), &event.tasks_paused().detail()};
    case LogEvent::kTasksResumed:
      return {ChangeEvent::JOB_CHANGED, event.tasks_resumed().job()};
    case LogEvent::kTaskReady:
      return {{}, event.task_ready().job()};
    default:
      return {};
  }
}

Meaning OtherMeaning(const LogEvent& event) {
  switch (event.body_case()) {
    case LogEvent::kNodeRegistered:
      return {ChangeEvent::NODE_REGISTERED};
    case LogEvent::kNodeSteered:
      return {ChangeEvent::NODE_CHANGED, 0, &event.node_steered().reason()};
    case LogEvent::kNodeSilenced:
    case LogEvent::kNodeFenced:
      return {ChangeEvent::NODE_CHANGED};
    case LogEvent::kNodeRefused:
      return {ChangeEvent::NODE_CHANGED, 0, &event.node_refused().message()};
    case LogEvent::kNodeDeleted:
      return {ChangeEvent::NODE_DELETED};
    case LogEvent::kQueueCreated:
      return {ChangeEvent::QUEUE_CREATED};
    case LogEvent::kQueueUpdated:
    case LogEvent::kQueueOpened:
      return {ChangeEvent::QUEUE_CHANGED};
    case LogEvent::kQueueDeleted:
      return {ChangeEvent::QUEUE_DELETED};
    case LogEvent::kHyperNodeChanged:
      return {ChangeEvent::HYPER_NODE_CHANGED};
    case LogEvent::kHyperNodeDeleted:
      return {ChangeEvent::HYPER_NODE_DELETED};
    case LogEvent::kNodesJoined:
    case LogEvent::kNodesLeft:
      return {ChangeEvent::HYPER_NODE_NODES};
    default:
      return {};
  }
}

ChangeEvent* AddChange(const LogTurn& turn, const LogEvent& event, ChangeEvent::Type type,
                       Out* out) {
  ChangeEvent* change = out->Add();
  change->set_type(type);
  *change->mutable_time() = event.has_time() ? event.time() : turn.time();
  return change;
}

void AddSubject(const LogTurn& turn, const LogEvent& event, const Meaning& meaning, Out* out) {
  ChangeEvent* change = AddChange(turn, event, meaning.type, out);
  change->set_job(event.job_name());
  change->set_job_uid(meaning.job);
  if (event.has_job_state()) {
    change->set_job_state(JobStateToApi(static_cast<JobState>(event.job_state())));
  }
  change->set_node(event.node_name());
  if (event.has_node_state()) {
    change->set_node_state(static_cast<v1::NodeState>(static_cast<int>(event.node_state()) + 1));
  }
  change->set_hyper_node(event.hyper_node_name());
  change->set_queue(event.queue_name());
  if (event.has_queue_open()) {
    change->set_queue_state(event.queue_open() ? v1::QUEUE_OPEN : v1::QUEUE_CLOSED);
  }
  if (meaning.message != nullptr) change->set_message(*meaning.message);
}

void AddTask(const LogTurn& turn, const LogEvent& event, const Meaning& meaning,
             const TaskChange& task, Out* out) {
  ChangeEvent* change = AddChange(turn, event, ChangeEvent::TASK_CHANGED, out);
  change->set_job(task.job_name().empty() ? event.job_name() : task.job_name());
  change->set_job_uid(task.job() != 0 ? task.job() : meaning.job);
  change->set_task(task.name());
  change->set_task_state(TaskStateToApi(static_cast<TaskState>(task.state())));
  change->set_attempt(task.attempt());
  change->set_node(task.node_name());
  if (Ended(static_cast<TaskState>(task.state()))) {
    change->set_exit_code(task.exit_code());
    change->set_exit_signal(static_cast<int32_t>(task.exit_signal()));
  }
  if (meaning.message != nullptr) change->set_message(*meaning.message);
}

bool WantsSubject(const LogEvent& event, const ChangeFilter& filter) {
  if (!event.node_name().empty()) return filter.WantsNodes();
  if (!event.hyper_node_name().empty()) return filter.WantsHyperNodes();
  return filter.WantsQueues();
}

void RenderEvent(const LogTurn& turn, const LogEvent& event, const ChangeFilter& filter, Out* out) {
  if (const Meaning job = JobMeaning(event); job.type != ChangeEvent::TYPE_UNSPECIFIED) {
    if (filter.WantsJob(event.job_name())) AddSubject(turn, event, job, out);
    return;
  }
  if (const Meaning other = OtherMeaning(event); other.type != ChangeEvent::TYPE_UNSPECIFIED) {
    if (WantsSubject(event, filter)) AddSubject(turn, event, other, out);
  }
  const Meaning meaning = TaskMeaning(event);
  for (const TaskChange& task : event.tasks()) {
    const std::string& job = task.job_name().empty() ? event.job_name() : task.job_name();
    if (filter.WantsJob(job)) AddTask(turn, event, meaning, task, out);
  }
}

}  // namespace

ChangeFilter::ChangeFilter(const v1::WatchRequest& request)
    : jobs_(!request.no_jobs()),
      nodes_(request.nodes()),
      queues_(request.queues()),
      hyper_nodes_(request.hyper_nodes()),
      names_(request.jobs().begin(), request.jobs().end()) {}

void RenderChanges(const LogTurn& turn, const ChangeFilter& filter, Out* out,
                   std::vector<const LogEvent*>* from) {
  for (const LogEvent& event : turn.events()) {
    RenderEvent(turn, event, filter, out);
    if (from != nullptr) from->resize(static_cast<size_t>(out->size()), &event);
  }
}

}  // namespace berth
