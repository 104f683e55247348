// Status records of jobs and tasks: the parts that change.
#include "core/base/fields.h"
#include "core/model/line.h"
#include "core/model/refusals.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace codec {
namespace {

static_assert(static_cast<int>(JobState::kHeld) == pb::JOB_HELD);
static_assert(static_cast<int>(JobState::kBinding) == pb::JOB_BINDING);
static_assert(static_cast<int>(JobState::kRunning) == pb::JOB_RUNNING);
static_assert(static_cast<int>(JobState::kRestarting) == pb::JOB_RESTARTING);
static_assert(static_cast<int>(JobState::kSuspended) == pb::JOB_SUSPENDED);
static_assert(static_cast<int>(JobState::kCompleting) == pb::JOB_COMPLETING);
static_assert(static_cast<int>(JobState::kSucceeded) == pb::JOB_SUCCEEDED);
static_assert(static_cast<int>(JobState::kFailed) == pb::JOB_FAILED);
static_assert(static_cast<int>(JobState::kCancelled) == pb::JOB_CANCELLED);
static_assert(static_cast<int>(TaskState::kNominated) == pb::TASK_NOMINATED);
static_assert(static_cast<int>(TaskState::kBound) == pb::TASK_BOUND);
static_assert(static_cast<int>(TaskState::kPrepared) == pb::TASK_PREPARED);
static_assert(static_cast<int>(TaskState::kStarting) == pb::TASK_STARTING);
static_assert(static_cast<int>(TaskState::kRunning) == pb::TASK_RUNNING);
static_assert(static_cast<int>(TaskState::kReleasing) == pb::TASK_RELEASING);
static_assert(static_cast<int>(TaskState::kLost) == pb::TASK_LOST);
static_assert(static_cast<int>(TaskState::kSucceeded) == pb::TASK_SUCCEEDED);
static_assert(static_cast<int>(TaskState::kFailed) == pb::TASK_FAILED);
static_assert(static_cast<int>(EndCause::kExit) == pb::END_EXIT);
static_assert(static_cast<int>(EndCause::kStopped) == pb::END_STOPPED);
static_assert(static_cast<int>(EndCause::kRefused) == pb::END_REFUSED);
static_assert(static_cast<int>(EndCause::kNodeLost) == pb::END_NODE_LOST);
static_assert(static_cast<int>(EndCause::kDevice) == pb::END_DEVICE);

static_assert(static_cast<int>(PauseState::kPausing) == pb::PAUSE_PAUSING);
static_assert(static_cast<int>(PauseState::kPaused) == pb::PAUSE_PAUSED);
static_assert(static_cast<int>(PauseState::kResuming) == pb::PAUSE_RESUMING);
static_assert(static_cast<int>(CheckpointPlace::kLocal) == pb::PLACE_LOCAL);
static_assert(static_cast<int>(CheckpointPlace::kPeer) == pb::PLACE_PEER);
static_assert(static_cast<int>(CheckpointPlace::kShared) == pb::PLACE_SHARED);
static_assert(static_cast<int>(ReleaseReason::kSuspended) == pb::RELEASE_SUSPENDED);
static_assert(static_cast<int>(ReleaseReason::kRestart) == pb::RELEASE_RESTART);
static_assert(static_cast<int>(ReleaseReason::kGangBroken) == pb::RELEASE_GANG_BROKEN);
static_assert(static_cast<int>(ReleaseReason::kDrain) == pb::RELEASE_DRAIN);
static_assert(static_cast<int>(ReleaseReason::kTimeout) == pb::RELEASE_TIMEOUT);
static_assert(static_cast<int>(ReleaseReason::kCompleted) == pb::RELEASE_COMPLETED);
static_assert(static_cast<int>(ReleaseReason::kFailed) == pb::RELEASE_FAILED);
static_assert(static_cast<int>(ReleaseReason::kPrepareTimeout) == pb::RELEASE_PREPARE_TIMEOUT);
static_assert(static_cast<int>(ReleaseReason::kReclaimed) == pb::RELEASE_RECLAIMED);
static_assert(static_cast<int>(ReleaseReason::kPreempted) == pb::RELEASE_PREEMPTED);
static_assert(static_cast<int>(ReleaseReason::kConsolidated) == pb::RELEASE_CONSOLIDATED);
static_assert(static_cast<int>(ReleaseReason::kGangExpired) == pb::RELEASE_GANG_EXPIRED);

// Whoever adds a field encodes and decodes it below, and then changes the number.
static_assert(kFields<JobStatus> == 29);
static_assert(kFields<AvoidedNode> == 2);
static_assert(kFields<Checkpoint> == 4);
static_assert(kFields<Hang> == 5);
static_assert(kFields<Eviction> == 5);
static_assert(kFields<Refusals> == 6);
static_assert(kFields<DelayedAction> == 5);
static_assert(kFields<Reservation> == 4);
static_assert(kFields<Placement> == 3);
static_assert(kFields<StoredJobStatus> == 7);
static_assert(kFields<Task> == 26);
static_assert(kFields<StoredTask> == 3);

void SetEviction(const Eviction& eviction, pb::Eviction* out) {
  if (eviction.time != absl::InfinitePast()) SetTime(eviction.time, out->mutable_time());
  out->set_reason(static_cast<pb::ReleaseReason>(eviction.reason));
  out->set_beneficiary(eviction.beneficiary.value);
  out->set_tasks(eviction.tasks);
  out->set_detail(eviction.detail);
}

Eviction GetEviction(const pb::Eviction& m, Reader& reader) {
  return {.time = reader.GetTime(m.has_time(), m.time(), absl::InfinitePast(), "eviction time"),
          .reason = GetReleaseReason(m.reason(), reader),
          .beneficiary = JobId{m.beneficiary()},
          .tasks = m.tasks(),
          .detail = m.detail()};
}

void SetRefusals(const Refusals& refusals, pb::Refusals* out) {
  out->set_own(refusals.own);
  out->set_starts(refusals.starts);
  out->set_spare(refusals.spare);
  for (NodeId node : refusals.nodes) out->add_nodes(node.value);
  if (refusals.until != absl::InfinitePast()) SetTime(refusals.until, out->mutable_until());
  out->set_rests(refusals.rests);
}

Refusals GetRefusals(const pb::Refusals& m, Reader& reader) {
  Refusals refusals{
      .own = reader.Count(m.own(), "own refusals"),
      .starts = reader.Count(m.starts(), "refused starts"),
      .spare = reader.Count(m.spare(), "spare refusals"),
      .nodes = {},
      .until = reader.GetTime(m.has_until(), m.until(), absl::InfinitePast(), "refusals until"),
      .rests = m.rests()};
  for (uint32_t node : m.nodes()) refusals.nodes.push_back(NodeId{node});
  if (!WellFormed(refusals)) reader.Refuse("refusing nodes that are too many or out of order");
  return refusals;
}

AvoidedNodes GetAvoided(const pb::JobStatus& m, Reader& reader) {
  AvoidedNodes avoided;
  for (const pb::AvoidedNode& one : m.avoided()) {
    avoided.push_back({.node = NodeId{one.node()},
                       .until = reader.GetTime(one.has_until(), one.until(), absl::InfinitePast(),
                                               "end of an avoided node")});
  }
  if (!WellFormed(avoided)) reader.Refuse("avoided nodes that are too many or out of order");
  return avoided;
}

void SetCheckpoint(const Checkpoint& checkpoint, pb::Checkpoint* out) {
  SetTime(checkpoint.time, out->mutable_time());
  out->set_step(checkpoint.step);
  out->set_bytes(checkpoint.bytes);
  out->set_place(static_cast<pb::CheckpointPlace>(checkpoint.place));
}

Checkpoint GetCheckpoint(const pb::Checkpoint& m, Reader& reader) {
  return {.time = reader.GetTime(m.has_time(), m.time(), absl::InfinitePast(), "checkpoint time"),
          .step = m.step(),
          .bytes = m.bytes(),
          .place = GetCheckpointPlace(m.place(), reader)};
}

void SetHang(const Hang& hang, pb::Hang* out) {
  SetTime(hang.time, out->mutable_time());
  out->set_task(hang.task);
  out->set_attempt(hang.attempt);
  SetDuration(hang.still, out->mutable_still());
  out->set_step(hang.step);
}

Hang GetHang(const pb::Hang& m, Reader& reader) {
  return {.time = reader.GetTime(m.has_time(), m.time(), absl::InfinitePast(), "hang time"),
          .task = m.task(),
          .attempt = m.attempt(),
          .still = reader.GetDuration(m.has_still(), m.still(), absl::ZeroDuration(), "still"),
          .step = m.step()};
}

}  // namespace

CheckpointPlace GetCheckpointPlace(pb::CheckpointPlace place, Reader& reader) {
  return reader.Enum<CheckpointPlace>(place, pb::CheckpointPlace_IsValid(place),
                                      "place of a checkpoint");
}

void SetLaunch(const Task& task, pb::Launch* out) {
  out->set_attempt(task.attempt);
  out->set_epoch(task.epoch);
  out->set_world(task.world);
  if (task.released != ReleaseReason::kCancelled) {
    out->set_released(static_cast<pb::ReleaseReason>(task.released));
  }
  out->set_ready(task.ready);
  if (task.saved != absl::InfinitePast()) SetTime(task.saved, out->mutable_saved());
}

void GetLaunch(const pb::Launch& m, Reader& reader, Task& task) {
  if (m.attempt() != task.attempt) return;
  task.epoch = m.epoch();
  task.world = reader.Number<uint16_t>(m.world(), "world");
  task.released = GetReleaseReason(m.released(), reader);
  task.ready = m.ready();
  task.saved = reader.GetTime(m.has_saved(), m.saved(), absl::InfinitePast(), "saved");
}

ReleaseReason GetReleaseReason(pb::ReleaseReason reason, Reader& reader) {
  return reader.Enum<ReleaseReason>(reason, pb::ReleaseReason_IsValid(reason), "release reason");
}

void SetJobStatus(const JobStatus& status, pb::JobStatus* out) {
  out->set_state(static_cast<pb::JobState>(status.state));
  out->set_outcome(static_cast<pb::JobState>(status.outcome));
  out->set_retries(status.retries);
  out->set_starts(status.starts);
  if (status.bound != absl::InfinitePast()) SetTime(status.bound, out->mutable_bound());
  if (status.start != absl::InfinitePast()) SetTime(status.start, out->mutable_start());
  if (status.end != absl::InfinitePast()) SetTime(status.end, out->mutable_end());
  if (status.hold_until != absl::InfinitePast()) {
    SetTime(status.hold_until, out->mutable_hold_until());
  }
  out->set_suspended(status.suspended);
  out->set_cancelled(status.cancelled);
  out->set_forced(status.forced);
  out->set_rung(status.rung);
  for (const AvoidedNode& avoided : status.avoided) {
    pb::AvoidedNode& one = *out->add_avoided();
    one.set_node(avoided.node.value);
    SetTime(avoided.until, one.mutable_until());
  }
  out->set_message(status.message);
  out->set_evictions(status.evictions);
  if (!(status.eviction == Eviction{})) SetEviction(status.eviction, out->mutable_eviction());
  if (!(status.refusals == Refusals{})) SetRefusals(status.refusals, out->mutable_refusals());
  if (status.attained != absl::ZeroDuration()) {
    SetDuration(status.attained, out->mutable_attained());
  }
  out->set_line_from(status.line_from);
  out->set_epoch(status.epoch);
  if (status.incident != absl::InfinitePast()) SetTime(status.incident, out->mutable_incident());
  if (status.checkpoint_asked != absl::InfinitePast()) {
    SetTime(status.checkpoint_asked, out->mutable_checkpoint_asked());
  }
  if (status.places_until != absl::InfinitePast()) {
    SetTime(status.places_until, out->mutable_places_until());
  }
  if (!(status.checkpoint == Checkpoint{})) {
    SetCheckpoint(status.checkpoint, out->mutable_checkpoint());
  }
  if (!(status.hang == Hang{})) SetHang(status.hang, out->mutable_hang());
  if (status.first_start != absl::InfinitePast()) {
    SetTime(status.first_start, out->mutable_first_start());
  }
  if (status.series) SetSeriesStatus(*status.series, out->mutable_series());
  if (!(status.pause == Pause{})) SetPause(status.pause, out->mutable_pause());
  for (const DelayedAction& action : status.delayed) {
    pb::DelayedAction* message = out->add_delayed();
    message->set_action(static_cast<pb::PolicyAction>(action.action));
    message->set_task(action.task);
    message->set_attempt(action.attempt);
    if (action.due != absl::InfiniteFuture()) SetTime(action.due, message->mutable_due());
    message->set_message(action.message);
  }
}

JobStatus GetJobStatus(const pb::JobStatus& m, Reader& reader) {
  const Time never = absl::InfinitePast();
  JobStatus status;
  status.state = reader.Enum<JobState>(m.state(), pb::JobState_IsValid(m.state()), "job state");
  status.outcome =
      reader.Enum<JobState>(m.outcome(), pb::JobState_IsValid(m.outcome()), "job outcome");
  status.retries = reader.Count(m.retries(), "retries");
  status.starts = m.starts();
  status.bound = reader.GetTime(m.has_bound(), m.bound(), never, "bound");
  status.start = reader.GetTime(m.has_start(), m.start(), never, "start");
  status.end = reader.GetTime(m.has_end(), m.end(), never, "end");
  status.hold_until = reader.GetTime(m.has_hold_until(), m.hold_until(), never, "hold_until");
  status.suspended = m.suspended();
  status.cancelled = m.cancelled();
  status.forced = m.forced();
  status.rung = static_cast<uint8_t>(m.rung());
  status.avoided = GetAvoided(m, reader);
  status.message = m.message();
  status.evictions = m.evictions();
  if (m.has_eviction()) status.eviction = GetEviction(m.eviction(), reader);
  if (m.has_refusals()) status.refusals = GetRefusals(m.refusals(), reader);
  status.attained =
      reader.GetDuration(m.has_attained(), m.attained(), absl::ZeroDuration(), "attained");
  status.line_from = m.line_from();
  if (status.line_from < 0 || status.line_from > kMaxLine) reader.Refuse("line_from out of range");
  status.epoch = m.epoch();
  status.incident = reader.GetTime(m.has_incident(), m.incident(), never, "incident");
  status.checkpoint_asked =
      reader.GetTime(m.has_checkpoint_asked(), m.checkpoint_asked(), never, "checkpoint_asked");
  status.places_until =
      reader.GetTime(m.has_places_until(), m.places_until(), never, "places_until");
  if (m.has_checkpoint()) status.checkpoint = GetCheckpoint(m.checkpoint(), reader);
  if (m.has_hang()) status.hang = GetHang(m.hang(), reader);
  status.first_start = reader.GetTime(m.has_first_start(), m.first_start(), never, "first_start");
  if (m.has_series()) status.series = GetSeriesStatus(m.series(), reader);
  if (m.has_pause()) status.pause = GetPause(m.pause(), reader);
  if (status.attained < absl::ZeroDuration()) reader.Refuse("attained below 0");
  for (const pb::DelayedAction& action : m.delayed()) {
    status.delayed.push_back(
        {.action = GetAction(action.action(), reader),
         .task = action.task(),
         .attempt = action.attempt(),
         .due = reader.GetTime(action.has_due(), action.due(), absl::InfiniteFuture(), "due"),
         .message = action.message()});
  }
  return status;
}

void SetPlacements(const std::vector<Placement>& placements,
                   google::protobuf::RepeatedPtrField<pb::Placement>* out) {
  for (const Placement& placement : placements) {
    pb::Placement* message = out->Add();
    message->set_task(placement.task);
    message->set_node(placement.node.value);
    SetDevices(placement.devices, message->mutable_devices());
  }
}

std::vector<Placement> GetPlacements(
    const google::protobuf::RepeatedPtrField<pb::Placement>& messages, Reader& reader) {
  std::vector<Placement> placements;
  placements.reserve(static_cast<size_t>(messages.size()));
  for (const pb::Placement& message : messages) {
    placements.push_back({.task = message.task(),
                          .node = NodeId{message.node()},
                          .devices = reader.GetDevices(message.devices(), "devices")});
  }
  return placements;
}

void SetReservation(const Reservation& reservation, pb::Reservation* out) {
  const Time never = absl::InfiniteFuture();
  if (reservation.start != never) SetTime(reservation.start, out->mutable_start());
  if (reservation.end != never) SetTime(reservation.end, out->mutable_end());
  SetPlacements(reservation.places, out->mutable_places());
  if (reservation.firm_from != reservation.start) {
    SetTime(reservation.firm_from, out->mutable_firm_from());
  }
}

Reservation GetReservation(const pb::Reservation& m, Reader& reader) {
  const Time never = absl::InfiniteFuture();
  const Time start = reader.GetTime(m.has_start(), m.start(), never, "reservation start");
  return {.start = start,
          .end = reader.GetTime(m.has_end(), m.end(), never, "reservation end"),
          .places = GetPlacements(m.places(), reader),
          .firm_from =
              reader.GetTime(m.has_firm_from(), m.firm_from(), start, "reservation firm_from")};
}

}  // namespace codec

namespace pb = codec::pb;

std::string EncodeJobStatusRecord(const JobStatus& status, int32_t priority,
                                  const std::map<std::string, std::string>& labels,
                                  const Reservation& reservation, uint64_t revision,
                                  std::optional<Duration> walltime) {
  thread_local pb::JobStatusRecord message;
  message.Clear();
  codec::SetJobStatus(status, message.mutable_status());
  message.set_priority(priority);
  codec::SetLabels(labels, message.mutable_labels());
  message.set_revision(revision);
  if (!reservation.places.empty()) {
    codec::SetReservation(reservation, message.mutable_reservation());
  }
  if (walltime.has_value()) codec::SetDuration(*walltime, message.mutable_walltime());
  return message.SerializeAsString();
}

absl::StatusOr<StoredJobStatus> DecodeJobStatusRecord(absl::string_view key,
                                                      absl::string_view value,
                                                      std::string* unknown) {
  thread_local pb::JobStatusRecord message;
  absl::Status status = codec::ParseMessage(value, &message, unknown);
  absl::StatusOr<JobId> id = ParseJobKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kJobStatus, key);
  codec::Reader reader;
  StoredJobStatus stored{.id = *id,
                         .status = codec::GetJobStatus(message.status(), reader),
                         .priority = message.priority(),
                         .labels = codec::GetLabels(message.labels()),
                         .reservation = codec::GetReservation(message.reservation(), reader),
                         .revision = message.revision()};
  if (message.has_walltime()) {
    stored.walltime =
        reader.GetDuration(true, message.walltime(), absl::InfiniteDuration(), "walltime");
  }
  status = codec::Verdict(reader, RecordKind::kJobStatus, key);
  if (!status.ok()) return status;
  return stored;
}

std::string EncodeTaskRecord(const Task& task, absl::string_view text) {
  thread_local pb::TaskRecord message;
  message.Clear();
  message.set_state(static_cast<pb::TaskState>(task.state));
  message.set_before_lost(static_cast<pb::TaskState>(task.before_lost));
  message.set_end_cause(static_cast<pb::EndCause>(task.end_cause));
  message.set_exit_signal(task.exit_signal);
  message.set_requeue(task.requeue);
  message.set_own_fault(task.own_fault);
  message.set_nobodys_fault(task.nobodys_fault);
  message.set_claimed(task.claimed);
  message.set_exit_code(task.exit_code);
  message.set_attempt(task.attempt);
  message.set_node(task.node.value);
  message.set_port(task.port);
  message.set_rank(task.rank);
  codec::SetDevices(task.devices, message.mutable_devices());
  if (task.since != absl::InfinitePast()) codec::SetTime(task.since, message.mutable_since());
  if (task.start != absl::InfinitePast()) codec::SetTime(task.start, message.mutable_start());
  message.set_message(text.data(), text.size());
  if (task.moves) {
    message.mutable_next()->set_node(task.next_node.value);
    codec::SetDevices(task.next_devices, message.mutable_next()->mutable_devices());
  }
  const bool recorded = task.epoch != 0 || task.world != 0 ||
                        task.released != ReleaseReason::kCancelled || task.ready ||
                        task.saved != absl::InfinitePast();
  if (recorded) codec::SetLaunch(task, message.mutable_launch());
  message.set_pause(static_cast<pb::PauseState>(task.pause));
  message.set_devices_lent(task.devices_lent);
  return message.SerializeAsString();
}

absl::StatusOr<StoredTask> DecodeTaskRecord(absl::string_view key, absl::string_view value,
                                            std::string* unknown) {
  thread_local pb::TaskRecord m;
  absl::Status status = codec::ParseMessage(value, &m, unknown);
  absl::StatusOr<TaskKey> id = ParseTaskRecordKey(key);
  if (status.ok()) status = id.status();
  if (!status.ok()) return NameRecord(status, RecordKind::kTask, key);
  const Time never = absl::InfinitePast();
  codec::Reader reader;
  Task task;
  task.state = reader.Enum<TaskState>(m.state(), pb::TaskState_IsValid(m.state()), "task state");
  task.before_lost = reader.Enum<TaskState>(m.before_lost(), pb::TaskState_IsValid(m.before_lost()),
                                            "task state before loss");
  task.end_cause =
      reader.Enum<EndCause>(m.end_cause(), pb::EndCause_IsValid(m.end_cause()), "end cause");
  task.exit_signal = reader.Number<uint8_t>(m.exit_signal(), "exit signal");
  task.requeue = m.requeue();
  task.own_fault = m.own_fault();
  task.nobodys_fault = m.nobodys_fault();
  task.claimed = m.claimed();
  task.exit_code = m.exit_code();
  task.attempt = m.attempt();
  task.node = NodeId{m.node()};
  task.port = reader.Number<uint16_t>(m.port(), "port");
  task.rank = reader.Number<uint16_t>(m.rank(), "rank");
  task.devices = reader.GetDevices(m.devices(), "devices");
  task.since = reader.GetTime(m.has_since(), m.since(), never, "since");
  task.start = reader.GetTime(m.has_start(), m.start(), never, "start");
  task.moves = m.has_next();
  task.next_node = NodeId{m.next().node()};
  task.next_devices = reader.GetDevices(m.next().devices(), "next devices");
  if (m.has_launch()) codec::GetLaunch(m.launch(), reader, task);
  task.pause = reader.Enum<PauseState>(m.pause(), pb::PauseState_IsValid(m.pause()), "pause");
  task.devices_lent = m.devices_lent();
  status = codec::Verdict(reader, RecordKind::kTask, key);
  if (!status.ok()) return status;
  return StoredTask{.key = *id, .task = task, .message = m.message()};
}

}  // namespace berth
