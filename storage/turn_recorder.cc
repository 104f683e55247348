#include "storage/turn_recorder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/model/apply.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace {

namespace pb = codec::pb;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kEventTag =
    pb::LogTurn::kEventsFieldNumber << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
constexpr size_t kMaxFieldHead = 6;  // tag below 16 and a 32-bit length

NextIds IdsOf(const ClusterState& state) {
  return {.job = state.next_job_id(), .node = state.next_node_id(), .queue = state.next_queue_id()};
}

}  // namespace

struct TurnRecorder::Scratch {
  pb::LogEvent event;
  pb::LogEvent submitted;  // of its own: in the oneof of `event` it would be freed again and again
};

TurnRecorder::TurnRecorder(ClusterState& state, Preserved* preserved)
    : state_(state),
      preserved_(preserved),
      written_ids_(IdsOf(state)),
      scratch_(std::make_unique<Scratch>()) {}

TurnRecorder::~TurnRecorder() = default;

void TurnRecorder::Begin(uint64_t sequence, Time now) {
  BERTH_CHECK(empty_);
  batch_ = {.sequence = sequence, .records = {}, .log = {}};
  now_ = now;
  cycle_budget_ = cycle_work_ = 0;
  events_ = events_before_cycle_ = 0;
  pb::LogTurn head;
  head.set_sequence(sequence);
  codec::SetTime(now, head.mutable_time());
  head.SerializeToString(&batch_.log);
}

absl::Status TurnRecorder::Apply(const Event& event) {
  const LabelsBefore labels = LookBefore(state_, event.body);
  const auto* deleted = std::get_if<JobDeleted>(&event.body);
  const Job* job = deleted == nullptr ? nullptr : state_.jobs().Find(deleted->id);
  const size_t tasks = job == nullptr ? 0 : job->tasks.size();

  if (absl::Status status = berth::Apply(state_, event); !status.ok()) return status;
  empty_ = false;
  ++events_;
  AppendEvent(event, labels);
  NoteEffects(event.body);
  if (deleted != nullptr) DeleteJob(deleted->id, tasks);
  return absl::OkStatus();
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
  batch_.log.resize(offset + kMaxFieldHead + size);
  auto* begin = reinterpret_cast<uint8_t*>(batch_.log.data() + offset);
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kEventTag, begin);
  end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end);
  end = message.SerializeWithCachedSizesToArray(end);
  batch_.log.resize(offset + static_cast<size_t>(end - begin));
  if (submitted != nullptr) RecordSubmitted(*submitted);
}

// Uses the message that the log was written from: a spec is converted once.
void TurnRecorder::RecordSubmitted(const JobSubmitted& event) {
  BERTH_CHECK(submitted_.empty() || submitted_.back().id < event.id);
  const Job& job = state_.jobs().At(event.id);
  submitted_.push_back({.id = event.id,
                        .spec_record = batch_.records.size(),
                        .status = job.status,
                        .task = job.tasks.empty() ? Task{} : job.tasks.front()});
  batch_.records.push_back({RecordKind::kJobSpec, JobKey(event.id),
                            EncodeJobSpecRecord(scratch_->submitted.job_submitted().spec(),
                                                job.submit, batch_.sequence, 0)});
}

void TurnRecorder::NoteEffects(const EventBody& event) {
  const auto* updated = std::get_if<JobUpdated>(&event);
  if (updated == nullptr) return;
  if (Submitted* submitted = FindSubmitted(updated->id)) submitted->touched = true;
}

TurnRecorder::Submitted* TurnRecorder::FindSubmitted(JobId id) {
  auto found = std::lower_bound(submitted_.begin(), submitted_.end(), id,
                                [](const Submitted& a, JobId b) { return a.id < b; });
  return found == submitted_.end() || found->id != id ? nullptr : &*found;
}

void TurnRecorder::Put(Record record) {
  BERTH_CHECK(record.kind != RecordKind::kMeta && record.kind != RecordKind::kLog);
  empty_ = false;
  if (record.kind != RecordKind::kJobSpec) {
    batch_.records.push_back(std::move(record));
    return;
  }
  const absl::StatusOr<JobId> id = ParseJobKey(record.key);
  BERTH_CHECK(id.ok() && record.value.has_value());
  const Submitted* submitted = FindSubmitted(*id);
  BERTH_CHECK(submitted != nullptr);
  AppendCold(*record.value, &*batch_.records[submitted->spec_record].value);
}

void TurnRecorder::NoteCycle(uint64_t budget, uint64_t work) {
  cycle_budget_ = budget;
  cycle_work_ = work;
  events_before_cycle_ = events_;
}

std::optional<Batch> TurnRecorder::Finish() {
  if (empty_) return std::nullopt;
  pb::LogTurn tail;  // fields of one message, after its events
  tail.set_cycle_budget(cycle_budget_);
  tail.set_cycle_work(cycle_work_);
  tail.set_events_before_cycle(cycle_budget_ == 0 ? events_ : events_before_cycle_);
  tail.set_policies(std::exchange(policies_, {}));
  tail.AppendToString(&batch_.log);
  state_.StampDirty(batch_.sequence);
  PutChanged(state_.TakeDirty());
  PutNextIds();
  submitted_.clear();
  empty_ = true;
  return std::move(batch_);
}

void TurnRecorder::PutChanged(const Dirty& dirty) {
  std::vector<QueueId> queues;
  std::set_union(dirty.queues.begin(), dirty.queues.end(), dirty.usages.begin(), dirty.usages.end(),
                 std::back_inserter(queues));
  for (QueueId id : queues) PutQueue(id);
  for (NodeId id : dirty.nodes) PutNode(id);
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
           EncodeQueueRecord(queue->spec, queue->open, queue->usage,
                             id == kRootQueue ? state_.usage_charged() : absl::InfinitePast(),
                             queue->revision));
}

void TurnRecorder::PutNode(NodeId id) {
  const Node* node = state_.nodes().Find(id);
  if (node == nullptr) return PutDelete(RecordKind::kNode, NodeKey(id));
  PutValue(RecordKind::kNode, NodeKey(id),
           EncodeNodeRecord(node->spec, node->status, node->revision));
}

// Its deletion, if it is gone, was recorded with the event.
void TurnRecorder::PutJob(JobId id) {
  const Job* job = state_.jobs().Find(id);
  if (job == nullptr) return;
  const Submitted* submitted = FindSubmitted(id);
  const auto reserved = state_.reservations().find(id);
  const bool has_place = reserved != state_.reservations().end();
  if (submitted != nullptr && !submitted->touched && !has_place &&
      job->status == submitted->status) {
    return;
  }
  static const Reservation kNone;
  PutValue(RecordKind::kJobStatus, JobKey(id),
           EncodeJobStatusRecord(job->status, job->priority, job->labels,
                                 has_place ? reserved->second : kNone, job->revision));
}

void TurnRecorder::PutTask(TaskKey key) {
  const Job* job = state_.jobs().Find(key.job);
  if (job == nullptr) return;
  const Task& task = job->tasks[key.task];
  const Submitted* submitted = FindSubmitted(key.job);
  if (submitted != nullptr && task == submitted->task) return;
  PutValue(RecordKind::kTask, TaskRecordKey(key), EncodeTaskRecord(task, state_.TaskMessage(key)));
}

void TurnRecorder::PutNextIds() {
  const NextIds ids = IdsOf(state_);
  if (ids == written_ids_) return;
  PutValue(RecordKind::kMeta, std::string(kNextIdsKey), EncodeNextIds(ids));
  written_ids_ = ids;
}

void TurnRecorder::DeleteJob(JobId id, size_t tasks) {
  PutDelete(RecordKind::kJobSpec, JobKey(id));
  PutDelete(RecordKind::kJobStatus, JobKey(id));
  for (uint32_t task = 0; task < tasks; ++task) {
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
