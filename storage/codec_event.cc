// Events of the log. One Set and one Get per event type; the variant and the oneof are parallel.
#include <optional>
#include <variant>
#include <vector>

#include "core/base/fields.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(ReportState::kRefused) == pb::REPORT_REFUSED);
static_assert(static_cast<int>(ReportState::kRunning) == pb::REPORT_RUNNING);
static_assert(static_cast<int>(ReportState::kExited) == pb::REPORT_EXITED);
static_assert(static_cast<int>(ReportState::kPaused) == pb::REPORT_PAUSED);
static_assert(static_cast<int>(ExitCause::kKilled) == pb::CAUSE_KILLED);
static_assert(static_cast<int>(ExitCause::kLeaseLapsed) == pb::CAUSE_LEASE_LAPSED);
static_assert(static_cast<int>(ExitCause::kReboot) == pb::CAUSE_REBOOT);
static_assert(static_cast<int>(ExitCause::kSupervisorLost) == pb::CAUSE_SUPERVISOR_LOST);
static_assert(static_cast<int>(ExitCause::kGone) == pb::CAUSE_GONE);
static_assert(static_cast<int>(ExitCause::kDevice) == pb::CAUSE_DEVICE);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<QueueCreated> == 2);
static_assert(kFields<QueueUpdated> == 2);
static_assert(kFields<QueueOpened> == 2);
static_assert(kFields<QueueDeleted> == 1);
static_assert(kFields<NodeRegistered> == 7);
static_assert(kFields<NodeSilenced> == 3);
static_assert(kFields<NodeFenced> == 2);
static_assert(kFields<NodeSteered> == 6);
static_assert(kFields<NodeRefused> == 6);
static_assert(kFields<NodeDeleted> == 1);
static_assert(kFields<JobSubmitted> == 3);
static_assert(kFields<JobUpdated> == 4);
static_assert(kFields<JobCancelled> == 3);
static_assert(kFields<JobSuspended> == 4);
static_assert(kFields<JobDeleted> == 1);
static_assert(kFields<TaskReported> == 12);
static_assert(kFields<TasksBound> == 4);
static_assert(kFields<TasksStarted> == 2);
static_assert(kFields<TasksReleased> == 7);
static_assert(kFields<TasksRequeued> == 2);
static_assert(kFields<JobStatusChanged> == 2);
static_assert(kFields<TasksNominated> == 3);
static_assert(kFields<TasksUnnominated> == 2);
static_assert(kFields<JobReserved> == 2);
static_assert(kFields<UsageCharged> == 2);
static_assert(kFields<HyperNodeChanged> == 2);
static_assert(kFields<HyperNodeDeleted> == 1);
static_assert(kFields<NodesJoined> == 2);
static_assert(kFields<NodesLeft> == 2);
static_assert(kFields<RequestMixChanged> == 1);
static_assert(kFields<JobRunRecorded> == 1);
static_assert(kFields<TaskReady> == 2);
static_assert(kFields<CheckpointRecorded> == 5);
static_assert(kFields<AccessChanged> == 1);
static_assert(kFields<PriorityClassesChanged> == 1);
static_assert(kFields<NodeImagesChanged> == 3);

// One overload per event type, which fills the member of the oneof.
struct Setter {
  pb::LogEvent* out;

  void operator()(const QueueCreated& event) const {
    pb::QueueCreated* m = out->mutable_queue_created();
    m->set_id(event.id.value);
    SetQueueSpec(event.spec, m->mutable_spec());
  }
  void operator()(const QueueUpdated& event) const {
    pb::QueueUpdated* m = out->mutable_queue_updated();
    m->set_id(event.id.value);
    SetQueueSpec(event.spec, m->mutable_spec());
  }
  void operator()(const QueueOpened& event) const {
    out->mutable_queue_opened()->set_id(event.id.value);
    out->mutable_queue_opened()->set_open(event.open);
  }
  void operator()(const QueueDeleted& event) const {
    out->mutable_queue_deleted()->set_id(event.id.value);
  }
  void operator()(const NodeRegistered& event) const {
    pb::NodeRegistered* m = out->mutable_node_registered();
    m->set_id(event.id.value);
    SetNodeSpec(event.spec, m->mutable_spec());
    m->set_epoch(event.epoch);
    m->set_agent_id(event.agent_id);
    m->set_boot_id(event.boot_id);
    m->set_agent_version(event.agent_version);
    m->set_counts_faults(event.counts_faults);
  }
  void operator()(const NodeSilenced& event) const {
    out->mutable_node_silenced()->set_id(event.id.value);
    out->mutable_node_silenced()->set_ends_forced(event.ends_forced);
    out->mutable_node_silenced()->set_counts_faults(event.counts_faults);
  }
  void operator()(const NodeFenced& event) const {
    out->mutable_node_fenced()->set_id(event.id.value);
    out->mutable_node_fenced()->set_counts_faults(event.counts_faults);
  }
  void operator()(const NodeSteered& event) const {
    pb::NodeSteered* m = out->mutable_node_steered();
    m->set_id(event.id.value);
    m->set_cordoned(event.cordoned);
    m->set_draining(event.draining);
    m->set_reason(event.reason);
    if (!(event.drain == Drain{})) SetDrain(event.drain, m->mutable_drain());
    m->set_repaired(event.repaired);
  }
  void operator()(const NodeRefused& event) const {
    pb::NodeRefused* m = out->mutable_node_refused();
    m->set_id(event.id.value);
    m->set_refusals(event.refusals);
    m->set_job(event.job.value);
    if (event.backoff_until != absl::InfinitePast()) {
      SetTime(event.backoff_until, m->mutable_backoff_until());
    }
    m->set_message(event.message);
    m->set_counts_faults(event.counts_faults);
  }
  void operator()(const NodeDeleted& event) const {
    out->mutable_node_deleted()->set_id(event.id.value);
  }
  void operator()(const JobSubmitted& event) const {
    pb::JobSubmitted* m = out->mutable_job_submitted();
    m->set_id(event.id.value);
    m->set_in_line(event.in_line);
    SetJobSpec(event.spec, m->mutable_spec());
  }
  void operator()(const JobUpdated& event) const {
    pb::JobUpdated* m = out->mutable_job_updated();
    m->set_id(event.id.value);
    m->set_priority(event.priority);
    SetLabels(event.labels, m->mutable_labels());
    if (event.walltime.has_value()) SetDuration(*event.walltime, m->mutable_walltime());
  }
  void operator()(const JobCancelled& event) const {
    out->mutable_job_cancelled()->set_force(event.force);
    out->mutable_job_cancelled()->set_id(event.id.value);
    out->mutable_job_cancelled()->set_reason(event.reason);
  }
  void operator()(const JobSuspended& event) const {
    out->mutable_job_suspended()->set_id(event.id.value);
    out->mutable_job_suspended()->set_suspended(event.suspended);
    out->mutable_job_suspended()->set_why(event.why);
    out->mutable_job_suspended()->set_freeze(event.freeze);
  }
  void operator()(const JobDeleted& event) const {
    out->mutable_job_deleted()->set_id(event.id.value);
  }
  void operator()(const TaskReported& event) const {
    pb::TaskReported* m = out->mutable_task_reported();
    m->set_job(event.task.job.value);
    m->set_task(event.task.task);
    m->set_attempt(event.attempt);
    m->set_state(static_cast<pb::ReportState>(event.state));
    m->set_exit_code(event.exit_code);
    m->set_exit_signal(event.exit_signal);
    m->set_cause(static_cast<pb::ExitCause>(event.cause));
    m->set_port(event.port);
    m->set_message(event.message);
    m->set_own_fault(event.own_fault);
    m->set_trust_at_running(event.trust_at_running);
    m->set_devices_lent(event.devices_lent);
    m->set_nobodys_fault(event.nobodys_fault);
  }
  void operator()(const TasksBound& event) const {
    pb::TasksBound* m = out->mutable_tasks_bound();
    m->set_job(event.job.value);
    m->set_gang(event.gang);
    SetPlacements(event.placements, m->mutable_placements());
    m->set_epoch(event.epoch);
  }
  void operator()(const TasksStarted& event) const {
    pb::TasksStarted* m = out->mutable_tasks_started();
    m->set_job(event.job.value);
    m->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
  }
  void operator()(const TasksReleased& event) const {
    pb::TasksReleased* m = out->mutable_tasks_released();
    m->set_job(event.job.value);
    m->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
    m->set_requeue(event.requeue);
    m->set_reason(static_cast<pb::ReleaseReason>(event.reason));
    m->set_beneficiary(event.beneficiary.value);
    m->set_detail(event.detail);
    SetPlacements(event.moves_to, m->mutable_moves_to());
  }
  void operator()(const TasksRequeued& event) const {
    pb::TasksRequeued* m = out->mutable_tasks_requeued();
    m->set_job(event.job.value);
    m->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
  }
  void operator()(const JobStatusChanged& event) const {
    out->mutable_job_status_changed()->set_job(event.job.value);
    SetJobStatus(event.status, out->mutable_job_status_changed()->mutable_status());
  }
  void operator()(const TasksNominated& event) const {
    pb::TasksNominated* m = out->mutable_tasks_nominated();
    m->set_job(event.job.value);
    SetPlacements(event.placements, m->mutable_placements());
    m->set_claims(event.claims);
  }
  void operator()(const TasksUnnominated& event) const {
    pb::TasksUnnominated* m = out->mutable_tasks_unnominated();
    m->set_job(event.job.value);
    m->mutable_tasks()->Add(event.tasks.begin(), event.tasks.end());
  }
  void operator()(const JobReserved& event) const {
    pb::JobReserved* m = out->mutable_job_reserved();
    m->set_job(event.job.value);
    if (!event.reservation.places.empty()) {
      SetReservation(event.reservation, m->mutable_reservation());
    }
  }
  void operator()(const UsageCharged& event) const {
    pb::UsageCharged* m = out->mutable_usage_charged();
    SetDuration(event.elapsed, m->mutable_elapsed());
    SetDuration(event.half_life, m->mutable_half_life());
  }
  void operator()(const HyperNodeChanged& event) const {
    pb::HyperNodeChanged* m = out->mutable_hyper_node_changed();
    m->set_id(event.id.value);
    SetHyperNodeSpec(event.spec, m->mutable_spec());
  }
  void operator()(const HyperNodeDeleted& event) const {
    out->mutable_hyper_node_deleted()->set_id(event.id.value);
  }
  void operator()(const NodesJoined& event) const {
    pb::NodesJoined* m = out->mutable_nodes_joined();
    m->set_domain(event.domain.value);
    for (NodeId node : event.nodes) m->add_nodes(node.value);
  }
  void operator()(const RequestMixChanged& event) const {
    SetRequestMix(event.mix, out->mutable_request_mix_changed());
  }
  void operator()(const JobRunRecorded& event) const {
    out->mutable_job_run_recorded()->set_job(event.job.value);
  }
  void operator()(const NodesLeft& event) const {
    pb::NodesLeft* m = out->mutable_nodes_left();
    m->set_domain(event.domain.value);
    for (NodeId node : event.nodes) m->add_nodes(node.value);
  }
  void operator()(const AccessChanged& event) const {
    SetAccessChange(event.change, out->mutable_access_changed());
  }
  void operator()(const PriorityClassesChanged& event) const {
    SetPriorityClasses(event.change, out->mutable_priority_classes_changed());
  }
  void operator()(const NodeImagesChanged& event) const {
    SetNodeImages(event, out->mutable_node_images_changed());
  }
  void operator()(const TasksPaused& event) const {
    SetTasksPaused(event, out->mutable_tasks_paused());
  }
  void operator()(const TasksResumed& event) const {
    SetTasksResumed(event, out->mutable_tasks_resumed());
  }
  void operator()(const TaskReady& event) const {
    pb::TaskReady* m = out->mutable_task_ready();
    m->set_job(event.task.job.value);
    m->set_task(event.task.task);
    m->set_attempt(event.attempt);
  }
  void operator()(const CheckpointRecorded& event) const {
    pb::CheckpointRecorded* m = out->mutable_checkpoint_recorded();
    m->set_job(event.task.job.value);
    m->set_task(event.task.task);
    m->set_attempt(event.attempt);
    m->set_step(event.step);
    m->set_bytes(event.bytes);
    m->set_place(static_cast<pb::CheckpointPlace>(event.place));
  }
  void operator()(const TaskHung& event) const { SetTaskHung(event, out->mutable_task_hung()); }
};

EventBody GetNodeRegistered(const pb::NodeRegistered& m, Reader& reader) {
  return NodeRegistered{.id = NodeId{m.id()},
                        .spec = GetNodeSpec(m.spec(), reader),
                        .epoch = m.epoch(),
                        .agent_id = m.agent_id(),
                        .boot_id = m.boot_id(),
                        .agent_version = m.agent_version(),
                        .counts_faults = m.counts_faults()};
}

EventBody GetNodeRefused(const pb::NodeRefused& m, Reader& reader) {
  return NodeRefused{.id = NodeId{m.id()},
                     .refusals = reader.Count(m.refusals(), "refusals"),
                     .backoff_until = reader.GetTime(m.has_backoff_until(), m.backoff_until(),
                                                     absl::InfinitePast(), "backoff_until"),
                     .job = JobId{m.job()},
                     .message = m.message(),
                     .counts_faults = m.counts_faults()};
}

EventBody GetTaskReported(const pb::TaskReported& m, Reader& reader) {
  return TaskReported{
      .task = {.job = JobId{m.job()}, .task = m.task()},
      .attempt = m.attempt(),
      .state =
          reader.Enum<ReportState>(m.state(), pb::ReportState_IsValid(m.state()), "report state"),
      .exit_code = m.exit_code(),
      .exit_signal = reader.Number<uint8_t>(m.exit_signal(), "exit signal"),
      .cause = reader.Enum<ExitCause>(m.cause(), pb::ExitCause_IsValid(m.cause()), "exit cause"),
      .port = reader.Number<uint16_t>(m.port(), "port"),
      .message = m.message(),
      .own_fault = m.own_fault(),
      .nobodys_fault = m.nobodys_fault(),
      .trust_at_running = m.trust_at_running(),
      .devices_lent = m.devices_lent()};
}

EventBody GetTasksBound(const pb::TasksBound& m, Reader& reader) {
  return TasksBound{.job = JobId{m.job()},
                    .gang = m.gang(),
                    .placements = GetPlacements(m.placements(), reader),
                    .epoch = m.epoch()};
}

EventBody GetUsageCharged(const pb::UsageCharged& m, Reader& reader) {
  const Duration none = absl::ZeroDuration();
  return UsageCharged{
      .elapsed = reader.GetDuration(m.has_elapsed(), m.elapsed(), none, "elapsed"),
      .half_life = reader.GetDuration(m.has_half_life(), m.half_life(), none, "half_life")};
}

EventBody GetTasksReleased(const pb::TasksReleased& m, Reader& reader) {
  return TasksReleased{.job = JobId{m.job()},
                       .tasks = {m.tasks().begin(), m.tasks().end()},
                       .requeue = m.requeue(),
                       .reason = GetReleaseReason(m.reason(), reader),
                       .beneficiary = JobId{m.beneficiary()},
                       .detail = m.detail(),
                       .moves_to = GetPlacements(m.moves_to(), reader)};
}

EventBody GetQueueOrNodeEvent(const pb::LogEvent& m, Reader& reader) {
  switch (m.body_case()) {
    case pb::LogEvent::kQueueCreated:
      return QueueCreated{.id = QueueId{m.queue_created().id()},
                          .spec = GetQueueSpec(m.queue_created().spec(), reader)};
    case pb::LogEvent::kQueueUpdated:
      return QueueUpdated{.id = QueueId{m.queue_updated().id()},
                          .spec = GetQueueSpec(m.queue_updated().spec(), reader)};
    case pb::LogEvent::kQueueOpened:
      return QueueOpened{.id = QueueId{m.queue_opened().id()}, .open = m.queue_opened().open()};
    case pb::LogEvent::kQueueDeleted:
      return QueueDeleted{.id = QueueId{m.queue_deleted().id()}};
    case pb::LogEvent::kNodeRegistered:
      return GetNodeRegistered(m.node_registered(), reader);
    case pb::LogEvent::kNodeSilenced:
      return NodeSilenced{.id = NodeId{m.node_silenced().id()},
                          .ends_forced = m.node_silenced().ends_forced(),
                          .counts_faults = m.node_silenced().counts_faults()};
    case pb::LogEvent::kNodeFenced:
      return NodeFenced{.id = NodeId{m.node_fenced().id()},
                        .counts_faults = m.node_fenced().counts_faults()};
    case pb::LogEvent::kNodeSteered:
      return NodeSteered{.id = NodeId{m.node_steered().id()},
                         .cordoned = m.node_steered().cordoned(),
                         .draining = m.node_steered().draining(),
                         .reason = m.node_steered().reason(),
                         .drain = GetDrain(m.node_steered().drain(), reader),
                         .repaired = m.node_steered().repaired()};
    case pb::LogEvent::kNodeRefused:
      return GetNodeRefused(m.node_refused(), reader);
    case pb::LogEvent::kNodeDeleted:
      return NodeDeleted{.id = NodeId{m.node_deleted().id()}};
    default:
      reader.Refuse("an event of unknown kind");
      return QueueDeleted{};
  }
}

EventBody GetTopologyEvent(const pb::LogEvent& m, Reader& reader) {
  switch (m.body_case()) {
    case pb::LogEvent::kHyperNodeChanged:
      return HyperNodeChanged{.id = HyperNodeId{m.hyper_node_changed().id()},
                              .spec = GetHyperNodeSpec(m.hyper_node_changed().spec(), reader)};
    case pb::LogEvent::kHyperNodeDeleted:
      return HyperNodeDeleted{.id = HyperNodeId{m.hyper_node_deleted().id()}};
    case pb::LogEvent::kNodesJoined:
      return NodesJoined{.domain = HyperNodeId{m.nodes_joined().domain()},
                         .nodes = GetIds<NodeId>(m.nodes_joined().nodes())};
    case pb::LogEvent::kNodeImagesChanged:
      return GetNodeImages(m.node_images_changed());
    case pb::LogEvent::kRequestMixChanged:
      return RequestMixChanged{GetRequestMix(m.request_mix_changed())};
    case pb::LogEvent::kJobRunRecorded:
      return JobRunRecorded{JobId{m.job_run_recorded().job()}};
    case pb::LogEvent::kNodesLeft:
      return NodesLeft{.domain = HyperNodeId{m.nodes_left().domain()},
                       .nodes = GetIds<NodeId>(m.nodes_left().nodes())};
    default:
      return GetQueueOrNodeEvent(m, reader);
  }
}

EventBody GetProgressEvent(const pb::LogEvent& m, Reader& reader) {
  switch (m.body_case()) {
    case pb::LogEvent::kTaskReady:
      return TaskReady{.task = {.job = JobId{m.task_ready().job()}, .task = m.task_ready().task()},
                       .attempt = m.task_ready().attempt()};
    case pb::LogEvent::kCheckpointRecorded: {
      const pb::CheckpointRecorded& recorded = m.checkpoint_recorded();
      return CheckpointRecorded{.task = {.job = JobId{recorded.job()}, .task = recorded.task()},
                                .attempt = recorded.attempt(),
                                .step = recorded.step(),
                                .bytes = recorded.bytes(),
                                .place = GetCheckpointPlace(recorded.place(), reader)};
    }
    case pb::LogEvent::kTaskHung:
      return GetTaskHung(m.task_hung(), reader);
    case pb::LogEvent::kAccessChanged:
      return AccessChanged{GetAccessChange(m.access_changed(), reader)};
    case pb::LogEvent::kPriorityClassesChanged:
      return PriorityClassesChanged{GetPriorityClasses(m.priority_classes_changed())};
    default:
      return GetTopologyEvent(m, reader);
  }
}

EventBody GetPlanEvent(const pb::LogEvent& m, Reader& reader) {
  switch (m.body_case()) {
    case pb::LogEvent::kTasksPaused:
      return GetTasksPaused(m.tasks_paused(), reader);
    case pb::LogEvent::kTasksResumed:
      return GetTasksResumed(m.tasks_resumed());
    case pb::LogEvent::kTasksNominated:
      return TasksNominated{.job = JobId{m.tasks_nominated().job()},
                            .placements = GetPlacements(m.tasks_nominated().placements(), reader),
                            .claims = m.tasks_nominated().claims()};
    case pb::LogEvent::kTasksUnnominated: {
      const auto& tasks = m.tasks_unnominated().tasks();
      return TasksUnnominated{.job = JobId{m.tasks_unnominated().job()},
                              .tasks = {tasks.begin(), tasks.end()}};
    }
    case pb::LogEvent::kJobReserved:
      return JobReserved{.job = JobId{m.job_reserved().job()},
                         .reservation = GetReservation(m.job_reserved().reservation(), reader)};
    case pb::LogEvent::kUsageCharged:
      return GetUsageCharged(m.usage_charged(), reader);
    default:
      return GetProgressEvent(m, reader);
  }
}

JobUpdated GetJobUpdated(const pb::JobUpdated& m, Reader& reader) {
  JobUpdated event{.id = JobId{m.id()}, .priority = m.priority(), .labels = GetLabels(m.labels())};
  if (m.has_walltime()) {
    event.walltime = reader.GetDuration(true, m.walltime(), absl::InfiniteDuration(), "walltime");
  }
  return event;
}

EventBody GetBody(const pb::LogEvent& m, Reader& reader) {
  switch (m.body_case()) {
    case pb::LogEvent::kJobSubmitted:
      return JobSubmitted{.id = JobId{m.job_submitted().id()},
                          .spec = GetJobSpec(m.job_submitted().spec(), reader),
                          .in_line = m.job_submitted().in_line()};
    case pb::LogEvent::kJobUpdated:
      return GetJobUpdated(m.job_updated(), reader);
    case pb::LogEvent::kJobCancelled:
      return JobCancelled{.id = JobId{m.job_cancelled().id()},
                          .reason = m.job_cancelled().reason(),
                          .force = m.job_cancelled().force()};
    case pb::LogEvent::kJobSuspended:
      return JobSuspended{.id = JobId{m.job_suspended().id()},
                          .suspended = m.job_suspended().suspended(),
                          .why = m.job_suspended().why(),
                          .freeze = m.job_suspended().freeze()};
    case pb::LogEvent::kJobDeleted:
      return JobDeleted{.id = JobId{m.job_deleted().id()}};
    case pb::LogEvent::kTaskReported:
      return GetTaskReported(m.task_reported(), reader);
    case pb::LogEvent::kTasksBound:
      return GetTasksBound(m.tasks_bound(), reader);
    case pb::LogEvent::kTasksStarted: {
      const auto& tasks = m.tasks_started().tasks();
      return TasksStarted{.job = JobId{m.tasks_started().job()},
                          .tasks = {tasks.begin(), tasks.end()}};
    }
    case pb::LogEvent::kTasksReleased:
      return GetTasksReleased(m.tasks_released(), reader);
    case pb::LogEvent::kTasksRequeued: {
      const auto& tasks = m.tasks_requeued().tasks();
      return TasksRequeued{.job = JobId{m.tasks_requeued().job()},
                           .tasks = {tasks.begin(), tasks.end()}};
    }
    case pb::LogEvent::kJobStatusChanged:
      return JobStatusChanged{.job = JobId{m.job_status_changed().job()},
                              .status = GetJobStatus(m.job_status_changed().status(), reader)};
    default:
      return GetPlanEvent(m, reader);
  }
}

}  // namespace
}  // namespace codec

namespace pb = codec::pb;

void EncodeEvent(const Event& event, Time turn_time, pb::LogEvent* message) {
  if (event.time != turn_time) codec::SetTime(event.time, message->mutable_time());
  std::visit(codec::Setter{message}, event.body);
}

absl::StatusOr<Event> DecodeEvent(const pb::LogEvent& message, Time turn_time) {
  codec::Reader reader;
  Event event{.time = reader.GetTime(message.has_time(), message.time(), turn_time, "time"),
              .body = codec::GetBody(message, reader)};
  if (!reader.status().ok()) return reader.status();
  return event;
}

absl::StatusOr<pb::LogTurn> ParseTurn(absl::string_view turn) {
  pb::LogTurn message;
  if (absl::Status status = codec::ParseMessage(turn, &message, nullptr); !status.ok()) {
    return absl::DataLossError("log: not a valid turn");
  }
  return message;
}

namespace {

std::vector<QuietCycle> GetQuietCycles(const pb::LogTurn& turn, codec::Reader& reader) {
  std::vector<QuietCycle> cycles;
  for (const pb::QuietCycle& cycle : turn.quiet_cycles()) {
    cycles.push_back({.time = reader.GetTime(cycle.has_time(), cycle.time(), absl::InfinitePast(),
                                             "quiet cycle"),
                      .budget = cycle.budget()});
  }
  return cycles;
}

std::optional<Remembered> GetRemembered(const pb::LogTurn& turn, codec::Reader& reader) {
  if (!turn.has_remembered()) return std::nullopt;
  const pb::Remembered& message = turn.remembered();
  Remembered remembered{
      .passed_time = reader.GetTime(message.has_passed_time(), message.passed_time(),
                                    absl::InfinitePast(), "passed time"),
      .unsettled = {}};
  for (uint64_t job : message.unsettled()) remembered.unsettled.push_back(JobId{job});
  return remembered;
}

std::vector<ActorRange> GetActors(const pb::LogTurn& turn, codec::Reader& reader) {
  std::vector<ActorRange> actors;
  const auto events = static_cast<uint32_t>(turn.events_size());
  for (const pb::TurnActor& m : turn.actors()) {
    if (m.first() > m.end() || m.end() > events) reader.Refuse("an actor of events that are not");
    actors.push_back({codec::GetActor(m.actor(), reader), m.first(), m.end()});
  }
  return actors;
}

}  // namespace

absl::StatusOr<LoggedTurn> DecodeTurn(absl::string_view turn) {
  absl::StatusOr<pb::LogTurn> message = ParseTurn(turn);
  if (!message.ok()) return message.status();
  const std::string key = SequenceKey(message->sequence());
  codec::Reader reader;
  LoggedTurn logged{
      .sequence = message->sequence(),
      .time = reader.GetTime(message->has_time(), message->time(), absl::InfinitePast(), "time"),
      .events = {},
      .cycle_budget = message->cycle_budget(),
      .cycle_work = message->cycle_work(),
      .events_before_cycle = message->events_before_cycle(),
      .policies = message->policies(),
      .quiet_cycles = GetQuietCycles(*message, reader),
      .loaded = message->loaded(),
      .remembered = GetRemembered(*message, reader),
      .version = message->version(),
      .actors = GetActors(*message, reader)};
  absl::Status status = codec::Verdict(reader, RecordKind::kLog, key);
  if (!status.ok()) return status;
  logged.events.reserve(static_cast<size_t>(message->events_size()));
  for (const pb::LogEvent& event : message->events()) {
    absl::StatusOr<Event> decoded = DecodeEvent(event, logged.time);
    if (!decoded.ok()) return NameRecord(decoded.status(), RecordKind::kLog, key);
    logged.events.push_back(*std::move(decoded));
  }
  return logged;
}

}  // namespace berth
