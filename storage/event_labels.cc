#include "storage/event_labels.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"

namespace berth {
namespace {

namespace pb = ::berth::store::v1;

// ---- Before the event

struct Before {
  const ClusterState& state;
  LabelsBefore out = {};

  void operator()(const QueueDeleted& event) {
    const Queue* queue = state.queues().Find(event.id);
    if (queue == nullptr) return;
    out.name = queue->spec.name;
    out.seen_in = queue->spec.parent;
  }
  void operator()(const NodeDeleted& event) {
    if (const Node* node = state.nodes().Find(event.id)) out.name = node->spec.name;
  }
  void operator()(const HyperNodeDeleted& event) {
    const HyperNode* domain = state.hyper_nodes().Find(event.id);
    if (domain != nullptr) out.name = domain->spec.name;
  }
  void operator()(const JobDeleted& event) {
    const Job* job = state.jobs().Find(event.id);
    if (job == nullptr) return;
    out.name = job->name;
    out.seen_in = job->queue;
    out.owner = job->owner;
  }
  void operator()(const NodeRegistered& event) { TasksOn(event.id); }
  void operator()(const NodeSilenced& event) { TasksOn(event.id); }
  void operator()(const NodeFenced& event) { TasksOn(event.id); }
  template <class Other>
  void operator()(const Other&) {}

 private:
  void TasksOn(NodeId id) {
    const Node* node = state.nodes().Find(id);
    if (node == nullptr) return;
    for (TaskKey key : node->tasks) {
      out.tasks.emplace_back(key, state.jobs().At(key.job).tasks[key.task].state);
    }
    std::sort(out.tasks.begin(), out.tasks.end());
  }
};

// ---- After the event

struct Labeler {
  const ClusterState& state;
  const LabelsBefore& before;
  pb::LogEvent* out;

  void operator()(const QueueCreated& event) { LabelQueue(event.id); }
  void operator()(const QueueUpdated& event) { LabelQueue(event.id); }
  void operator()(const QueueOpened& event) { LabelQueue(event.id); }
  void operator()(const QueueDeleted&) {
    out->set_queue_name(before.name);
    out->set_seen_in(before.seen_in.value);
  }

  void operator()(const NodeRegistered& event) { LabelNode(event.id); }
  void operator()(const NodeSilenced& event) { LabelNode(event.id); }
  void operator()(const NodeFenced& event) { LabelNode(event.id); }
  void operator()(const NodeSteered& event) { LabelNode(event.id); }
  void operator()(const NodeRefused& event) { LabelNode(event.id); }
  void operator()(const NodeImagesChanged& event) { LabelNode(event.id); }
  void operator()(const NodeDeleted&) { out->set_node_name(before.name); }

  void operator()(const HyperNodeChanged& event) { out->set_hyper_node_name(event.spec.name); }
  void operator()(const HyperNodeDeleted&) { out->set_hyper_node_name(before.name); }
  void operator()(const NodesJoined& event) { LabelDomain(event.domain); }
  void operator()(const NodesLeft& event) { LabelDomain(event.domain); }

  void operator()(const JobSubmitted& event) { LabelJob(event.id); }
  void operator()(const JobUpdated& event) { LabelJob(event.id); }
  void operator()(const JobCancelled& event) { LabelJob(event.id); }
  void operator()(const JobSuspended& event) { LabelJob(event.id); }
  void operator()(const JobStatusChanged& event) { LabelJob(event.job); }
  void operator()(const JobDeleted&) {
    out->set_job_name(before.name);
    out->set_seen_in(before.seen_in.value);
    out->set_owner(before.owner);
  }

  void operator()(const TaskReported& event) {
    LabelTask(NameJob(event.task.job), event.task.task);
  }
  void operator()(const TasksBound& event) {
    const Job& job = NameJob(event.job);
    for (const Placement& placement : event.placements) LabelTask(job, placement.task);
  }
  void operator()(const TasksStarted& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const TasksReleased& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const TasksRequeued& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const TasksPaused& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const TasksResumed& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const TasksNominated& event) {
    const Job& job = NameJob(event.job);
    for (const Placement& placement : event.placements) LabelTask(job, placement.task);
  }
  void operator()(const TasksUnnominated& event) { LabelTasks(event.job, event.tasks); }
  void operator()(const JobReserved& event) {  // cleared, possibly because the job was deleted
    if (state.jobs().Find(event.job) != nullptr) LabelJob(event.job);
  }
  void operator()(const TaskReady& event) { LabelTask(NameJob(event.task.job), event.task.task); }
  void operator()(const CheckpointRecorded& event) { LabelJob(event.task.job); }
  void operator()(const TaskHung& event) { LabelJob(event.task.job); }
  void operator()(const RequestMixChanged&) {}
  void operator()(const AccessChanged&) {}
  void operator()(const PriorityClassesChanged&) {}
  void operator()(const JobRunRecorded&) {}  // its end was logged before
  void operator()(const UsageCharged&) {}    // concerns all queues; changes no state

 private:
  // The job's name, and who may learn of the event when the job is gone.
  template <class Message>
  static void Name(const Job& job, Message* message) {
    message->set_job_name(job.name);
    message->set_seen_in(job.queue.value);
    message->set_owner(job.owner);
  }

  void LabelDomain(HyperNodeId id) {
    out->set_hyper_node_name(state.hyper_nodes().At(id).spec.name);
  }

  void LabelQueue(QueueId id) {
    const Queue& queue = state.queues().At(id);
    out->set_queue_name(queue.spec.name);
    out->set_queue_open(queue.open);
  }

  // Also labels the node's tasks that changed with it.
  void LabelNode(NodeId id) {
    const Node& node = state.nodes().At(id);
    out->set_node_name(node.spec.name);
    out->set_node_state(static_cast<pb::NodeState>(node.status.state));
    for (const auto& [key, state_before] : before.tasks) {
      const Job& job = state.jobs().At(key.job);
      if (job.tasks[key.task].state == state_before) continue;
      pb::TaskChange* change = LabelTask(job, key.task);
      change->set_job(key.job.value);
      Name(job, change);
    }
  }

  const Job& NameJob(JobId id) {
    const Job& job = state.jobs().At(id);
    Name(job, out);
    return job;
  }

  void LabelJob(JobId id) {
    out->set_job_state(static_cast<pb::JobState>(NameJob(id).status.state));
  }

  void LabelTasks(JobId id, const std::vector<uint32_t>& tasks) {
    const Job& job = NameJob(id);
    for (uint32_t task : tasks) LabelTask(job, task);
  }

  pb::TaskChange* LabelTask(const Job& job, uint32_t index) {
    const Task& task = job.tasks[index];
    const Group& group = job.groups[GroupOf(job, index)];
    pb::TaskChange* change = out->add_tasks();
    change->set_task(index);
    change->set_name(absl::StrCat(group.name, "-", index - group.first_task));
    change->set_state(static_cast<pb::TaskState>(task.state));
    change->set_attempt(task.attempt);
    const bool placed = task.attempt > 0 || Reserves(task.state);
    const Node* node = placed ? state.nodes().Find(task.node) : nullptr;
    if (node != nullptr) change->set_node_name(node->spec.name);
    if (task.end_cause == EndCause::kExit || task.end_cause == EndCause::kDevice) {
      change->set_exit_code(task.exit_code);
      change->set_exit_signal(task.exit_signal);
    }
    return change;
  }
};

}  // namespace

LabelsBefore LookBefore(const ClusterState& state, const EventBody& event) {
  Before before{state};
  std::visit(before, event);
  return std::move(before.out);
}

void LabelEvent(const ClusterState& after, const EventBody& event, const LabelsBefore& before,
                pb::LogEvent* message) {
  std::visit(Labeler{after, before, message}, event);
}

}  // namespace berth
