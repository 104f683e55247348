#include "storage/turn_recorder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/fields.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "storage/codec_common.h"
#include "storage/keys.h"
#include "support/version.h"

namespace berth {
namespace {

namespace pb = codec::pb;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kEventTag =
    pb::LogTurn::kEventsFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr size_t kMaxReserved = 4096;  // bytes for a cold part that is still missing

NextIds IdsOf(const ClusterState& state) {
  return {.job = state.next_job_id(),
          .node = state.next_node_id(),
          .queue = state.next_queue_id(),
          .hyper_node = state.next_hyper_node_id()};
}

// Tasks that have a record: no event returns a task to its initial state.
std::vector<uint32_t> RecordedTasks(const Job& job) {
  std::vector<uint32_t> recorded;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (!(job.tasks[i] == Task{})) recorded.push_back(i);
  }
  return recorded;
}

}  // namespace

struct TurnRecorder::Scratch {
  pb::LogEvent event;
  pb::LogEvent submitted;  // separate: in the oneof of `event` it would be freed repeatedly
};

TurnRecorder::TurnRecorder(ClusterState& state, Preserved* preserved)
    : state_(state),
      preserved_(preserved),
      written_ids_(IdsOf(state)),
      scratch_(std::make_unique<Scratch>()) {}

TurnRecorder::~TurnRecorder() = default;

void TurnRecorder::Begin(uint64_t sequence, Time now, bool log_actors) {
  BERTH_CHECK(empty_);
  batch_ = {.sequence = sequence, .records = {}, .log = {}};
  now_ = now;
  next_job_ = state_.next_job_id();
  cycle_budget_ = cycle_work_ = 0;
  events_ = events_before_cycle_ = 0;
  actors_.clear();
  log_actors_ = log_actors;
  pb::LogTurn head;
  head.set_sequence(sequence);
  codec::SetTime(now, head.mutable_time());
  head.SerializeToString(&batch_.log);
}

void TurnRecorder::By(Actor actor) {
  EndActor();
  actors_.push_back({Bounded(std::move(actor)), events_, events_});
  acting_ = true;
  has_put_ = false;
}

void TurnRecorder::LogCommand() {
  if (!log_actors_) return;
  empty_ = false;
  has_put_ = true;
}

void TurnRecorder::EndActor() {
  if (!std::exchange(acting_, false)) return;
  actors_.back().end = events_;
  if (actors_.back().first == events_ && !has_put_) actors_.pop_back();
}

absl::Status TurnRecorder::Apply(const Event& event) {
  const LabelsBefore labels = LookBefore(state_, event.body);
  const auto* deleted = std::get_if<JobDeleted>(&event.body);
  const Job* job = deleted == nullptr ? nullptr : state_.jobs().Find(deleted->id);
  const std::vector<uint32_t> recorded =
      job == nullptr ? std::vector<uint32_t>() : RecordedTasks(*job);

  if (absl::Status status = berth::Apply(state_, event); !status.ok()) return status;
  Append(event, labels);
  if (deleted != nullptr) DeleteJob(deleted->id, recorded);
  return absl::OkStatus();
}

void TurnRecorder::NoteApplied(const Event& event) {
  BERTH_CHECK(std::holds_alternative<TasksBound>(event.body));
  Append(event, LookBefore(state_, event.body));
}

void TurnRecorder::Append(const Event& event, const LabelsBefore& labels) {
  ++events_;
  AppendEvent(event, labels);
  empty_ = false;
  NoteEffects(event.body);
}

void TurnRecorder::AppendEvent(const Event& event, const LabelsBefore& labels) {
  const auto* submitted = std::get_if<JobSubmitted>(&event.body);
  pb::LogEvent& message = submitted != nullptr ? scratch_->submitted : scratch_->event;
  if (submitted != nullptr) {
    message.mutable_job_submitted()->Clear();  // keeps its memory, unlike clearing the oneof
    message.clear_time();
  } else {
    message.Clear();
  }
  EncodeEvent(event, now_, &message);
  LabelEvent(state_, event.body, labels, &message);

  const size_t size = message.ByteSizeLong();
  const size_t offset = batch_.log.size();
  batch_.log.resize(offset + codec::kMaxFieldHead + size);
  auto* begin = reinterpret_cast<uint8_t*>(batch_.log.data() + offset);
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kEventTag, begin);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end);
  end = message.SerializeWithCachedSizesToArray(end);
  batch_.log.resize(offset + static_cast<size_t>(end - begin));
  if (submitted != nullptr) RecordSubmitted(*submitted, offset);
}

// Reuses the message from which the log was written, so that a spec is converted once.
void TurnRecorder::RecordSubmitted(const JobSubmitted& event, size_t log_bytes) {
  BERTH_CHECK(submitted_.empty() || submitted_.back().id.value + 1 == event.id.value);
  const Job& job = state_.jobs().At(event.id);
  submitted_.push_back({.id = event.id,
                        .next_before = submitted_.empty() ? next_job_ : event.id,
                        .spec_record = batch_.records.size(),
                        .log_bytes = log_bytes,
                        .first_in_turn = empty_,
                        .suspended = event.spec.suspended});
  batch_.records.push_back(
      {RecordKind::kJobSpec, JobKey(event.id),
       EncodeJobSpecRecord(scratch_->submitted.job_submitted().spec(), job.submit, batch_.sequence,
                           job.prediction, job.line, cold_bytes_)});
}

void TurnRecorder::UndoSubmits(JobId first) {
  while (!submitted_.empty() && submitted_.back().id >= first) {
    const Submitted& last = submitted_.back();
    BERTH_CHECK(last.spec_record + 1 == batch_.records.size());
    StateEditor(state_).UndoAddJob(last.id, last.next_before);
    batch_.records.pop_back();
    batch_.log.resize(last.log_bytes);
    empty_ = last.first_in_turn;
    --events_;
    submitted_.pop_back();
  }
}

void TurnRecorder::NoteEffects(const EventBody& event) {
  const auto* updated = std::get_if<JobUpdated>(&event);
  if (updated == nullptr) return;
  if (Submitted* submitted = FindSubmitted(updated->id)) submitted->touched = true;
}

TurnRecorder::Submitted* TurnRecorder::FindSubmitted(JobId id) {
  if (submitted_.empty() || id < submitted_.front().id) return nullptr;
  const uint64_t index = id.value - submitted_.front().id.value;
  return index < submitted_.size() ? &submitted_[index] : nullptr;
}

JobStatus TurnRecorder::StatusOf(const Submitted& submitted) {
  JobStatus status;
  status.suspended = submitted.suspended;
  return status;
}

void TurnRecorder::PutCold(JobId id, absl::string_view cold) {
  const Submitted* submitted = FindSubmitted(id);
  BERTH_CHECK(submitted != nullptr);
  cold_bytes_ = std::min(cold.size(), kMaxReserved);
  AppendCold(cold, &*batch_.records[submitted->spec_record].value);
}

void TurnRecorder::Put(Record record) {
  const bool is_lease = record.kind == RecordKind::kMeta && record.key == kLeaseKey;
  BERTH_CHECK(is_lease || record.kind != RecordKind::kMeta);
  BERTH_CHECK(record.kind != RecordKind::kJobSpec && record.kind != RecordKind::kLog);
  empty_ = false;
  has_put_ = true;
  batch_.records.push_back(std::move(record));
}

void TurnRecorder::NotePolicies(std::string policies) {
  policies_ = std::move(policies);
  quiet_cycles_.clear();  // planning has forgotten what they found
  if (!cycle_ran_) return;
  remembered_ = Remembered{.passed_time = state_.passed_time(),
                           .unsettled = {state_.unsettled().begin(), state_.unsettled().end()}};
}

void TurnRecorder::NoteCycle(uint64_t budget, uint64_t work) {
  cycle_ran_ = true;
  cycle_budget_ = budget;
  cycle_work_ = work;
  events_before_cycle_ = events_;
}

// A batch that upgrades the store may have actors already: it is the first of the new format.
void TurnRecorder::AppendActors() {
  EndActor();
  if (actors_.empty() || !(log_actors_ || batch_.newest_format)) return;
  pb::LogTurn message;
  for (const ActorRange& range : actors_) {
    pb::TurnActor* out = message.add_actors();
    codec::SetActor(range.actor, out->mutable_actor());
    out->set_first(range.first);
    out->set_end(range.end);
  }
  message.AppendToString(&batch_.log);
}

// Fields of one message, after its events.
void TurnRecorder::AppendTail() {
  AppendActors();
  pb::LogTurn tail;
  tail.set_cycle_budget(cycle_budget_);
  tail.set_cycle_work(cycle_work_);
  tail.set_events_before_cycle(cycle_budget_ == 0 ? events_ : events_before_cycle_);
  tail.set_policies(std::exchange(policies_, {}));
  for (const QuietCycle& cycle : std::exchange(quiet_cycles_, {})) {
    pb::QuietCycle* message = tail.add_quiet_cycles();
    codec::SetTime(cycle.time, message->mutable_time());
    message->set_budget(cycle.budget);
  }
  if (std::exchange(loaded_, false)) {
    tail.set_loaded(true);
    tail.set_version(kBerthVersion);
  }
  if (const auto remembered = std::exchange(remembered_, std::nullopt); remembered.has_value()) {
    pb::Remembered* message = tail.mutable_remembered();
    if (remembered->passed_time != absl::InfinitePast()) {
      codec::SetTime(remembered->passed_time, message->mutable_passed_time());
    }
    for (JobId job : remembered->unsettled) message->add_unsettled(job.value);
  }
  tail.AppendToString(&batch_.log);
}

void TurnRecorder::UseNewestFormat() {
  batch_.newest_format = true;
  empty_ = false;
  has_put_ = true;
}

std::optional<Batch> TurnRecorder::Finish() {
  if (empty_ && quiet_cycles_.size() < kMaxQuietCycles) {
    if (cycle_budget_ > 0) quiet_cycles_.push_back({now_, cycle_budget_});
    return std::nullopt;
  }
  AppendTail();
  state_.StampDirty(batch_.sequence);
  PutChanged(state_.TakeDirty());
  PutNextIds();
  submitted_.clear();
  empty_ = true;
  return std::move(batch_);
}

void TurnRecorder::PutChanged(const Dirty& dirty) {
  static_assert(kFields<Dirty> == 11, "write the new records");
  std::vector<QueueId> queues;
  std::set_union(dirty.queues.begin(), dirty.queues.end(), dirty.usages.begin(), dirty.usages.end(),
                 std::back_inserter(queues));
  for (QueueId id : queues) PutQueue(id);
  if (dirty.request_mix) {
    PutValue(RecordKind::kMeta, std::string(kRequestMixKey),
             EncodeRequestMix(state_.request_mix()));
  }
  if (dirty.access) {
    PutValue(RecordKind::kMeta, std::string(kAccessKey),
             EncodeAccessRecord(state_.access().AsChange()));
  }
  if (dirty.priority_classes) {
    PutValue(RecordKind::kMeta, std::string(kPriorityClassesKey),
             EncodePriorityClasses(state_.priority_classes().AsChange()));
  }
  for (RunId id : dirty.runs) PutRun(id);
  for (NodeId id : dirty.nodes) PutNode(id);
  for (HyperNodeId id : dirty.hyper_nodes) PutHyperNode(id);
  std::vector<JobId> jobs;
  std::set_union(dirty.jobs.begin(), dirty.jobs.end(), dirty.new_jobs.begin(), dirty.new_jobs.end(),
                 std::back_inserter(jobs));
  for (JobId id : jobs) PutJob(id);
  for (TaskKey key : dirty.tasks) PutTask(key);
}

void TurnRecorder::PutQueue(QueueId id) {
  const Queue* queue = state_.queues().Find(id);
  if (queue == nullptr) return PutDelete(RecordKind::kQueue, QueueKey(id));
  PutValue(RecordKind::kQueue, QueueKey(id),
           EncodeQueueRecord(
               {.id = id,
                .spec = queue->spec,
                .open = queue->open,
                .usage = queue->usage,
                .usage_charged = id == kRootQueue ? state_.usage_charged() : absl::InfinitePast(),
                .revision = queue->revision,
                .line = queue->line,
                .longest_line = queue->longest_line}));
}

void TurnRecorder::PutRun(RunId id) {
  const FinishedRun* run = state_.run_history().Find(id);
  if (run == nullptr) return PutDelete(RecordKind::kMeta, RunKey(id));
  PutValue(RecordKind::kMeta, RunKey(id), EncodeRunRecord(*run));
}

void TurnRecorder::PutNode(NodeId id) {
  const Node* node = state_.nodes().Find(id);
  if (node == nullptr) return PutDelete(RecordKind::kNode, NodeKey(id));
  PutValue(RecordKind::kNode, NodeKey(id),
           EncodeNodeRecord(node->spec, node->status, node->domains, node->images, node->revision));
}

void TurnRecorder::PutHyperNode(HyperNodeId id) {
  const HyperNode* domain = state_.hyper_nodes().Find(id);
  if (domain == nullptr) return PutDelete(RecordKind::kHyperNode, HyperNodeKey(id));
  PutValue(RecordKind::kHyperNode, HyperNodeKey(id),
           EncodeHyperNodeRecord(domain->spec, domain->revision));
}

// If the job is gone, its deletion was recorded with the event.
void TurnRecorder::PutJob(JobId id) {
  const Job* job = state_.jobs().Find(id);
  if (job == nullptr) return;
  const Submitted* submitted = FindSubmitted(id);
  const auto reserved = state_.reservations().find(id);
  const bool has_place = reserved != state_.reservations().end();
  if (submitted != nullptr && !submitted->touched && !has_place &&
      job->status == StatusOf(*submitted)) {
    return;
  }
  static const Reservation kNone;
  std::optional<Duration> walltime;
  if (job->walltime_updated) walltime = job->walltime;
  PutValue(RecordKind::kJobStatus, JobKey(id),
           EncodeJobStatusRecord(job->status, job->priority, job->labels,
                                 has_place ? reserved->second : kNone, job->revision, walltime));
}

void TurnRecorder::PutTask(TaskKey key) {
  const Job* job = state_.jobs().Find(key.job);
  if (job == nullptr) return;
  const Task& task = job->tasks[key.task];
  if (FindSubmitted(key.job) != nullptr && task == Task{}) return;
  PutValue(RecordKind::kTask, TaskRecordKey(key), EncodeTaskRecord(task, state_.TaskMessage(key)));
}

void TurnRecorder::PutNextIds() {
  const NextIds ids = IdsOf(state_);
  if (ids == written_ids_) return;
  PutValue(RecordKind::kMeta, std::string(kNextIdsKey), EncodeNextIds(ids));
  written_ids_ = ids;
}

void TurnRecorder::DeleteJob(JobId id, const std::vector<uint32_t>& recorded) {
  PutDelete(RecordKind::kJobSpec, JobKey(id));
  PutDelete(RecordKind::kJobStatus, JobKey(id));
  for (uint32_t task : recorded) {
    PutDelete(RecordKind::kTask, TaskRecordKey({.job = id, .task = task}));
  }
}

void TurnRecorder::PutValue(RecordKind kind, std::string key, std::string value) {
  if (preserved_ != nullptr) {
    const absl::string_view unknown = preserved_->Find(kind, key);
    value.append(unknown.data(), unknown.size());
  }
  batch_.records.push_back({kind, std::move(key), std::move(value)});
}

void TurnRecorder::PutDelete(RecordKind kind, std::string key) {
  if (preserved_ != nullptr) preserved_->Forget(kind, key);
  batch_.records.push_back({kind, std::move(key), std::nullopt});
}

}  // namespace berth
