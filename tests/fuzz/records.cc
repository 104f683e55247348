// Records and log entries of a store as an open store returns them: loaded completely, or refused.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "berth/store/v1/store.pb.h"
#include "core/base/check.h"
#include "core/model/apply.h"
#include "core/model/state_editor.h"
#include "storage/keys.h"
#include "storage/load.h"
#include "storage/memory/memory_store.h"
#include "tests/fuzz/message.h"
#include "tests/fuzz/steps.h"
#include "tests/fuzz/target.h"

namespace berth::fuzz {
namespace {

void Must(const absl::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  std::abort();
}

template <class Message>
std::string Value(const Step& step) {
  Message message;
  ReadMessage(step.body, &message);
  return message.SerializeAsString();
}

// "@job_status 2" is a record of job 2. Returns nullopt for a log entry, which is not a record.
std::optional<Record> ReadRecord(const Step& step) {
  static constexpr absl::string_view kNames[] = {
      "log",  "queue",       "node",    "hyper_node", "job_spec", "job_status",
      "task", "second_task", "request", "next_ids",   "job_bytes"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), step.name);
  const size_t kind = found != std::end(kNames) ? static_cast<size_t>(found - std::begin(kNames))
                                                : KindOf(step.name, std::size(kNames));
  const JobId job{step.slot};
  switch (kind) {
    case 0:
      return std::nullopt;
    case 1:
      return Record{RecordKind::kQueue, QueueKey(QueueId{step.slot}),
                    Value<store::v1::QueueRecord>(step)};
    case 2:
      return Record{RecordKind::kNode, NodeKey(NodeId{step.slot}),
                    Value<store::v1::NodeRecord>(step)};
    case 3:
      return Record{RecordKind::kHyperNode, HyperNodeKey(HyperNodeId{step.slot}),
                    Value<store::v1::HyperNodeRecord>(step)};
    case 4:
      return Record{RecordKind::kJobSpec, JobKey(job), Value<store::v1::JobSpecRecord>(step)};
    case 5:
      return Record{RecordKind::kJobStatus, JobKey(job), Value<store::v1::JobStatusRecord>(step)};
    case 6:
      return Record{RecordKind::kTask, TaskRecordKey({job, 0}), Value<store::v1::TaskRecord>(step)};
    case 7:
      return Record{RecordKind::kTask, TaskRecordKey({job, 1}), Value<store::v1::TaskRecord>(step)};
    case 8:
      return Record{RecordKind::kRequest, "id-1", Value<store::v1::RequestRecord>(step)};
    case 9:
      return Record{RecordKind::kMeta, std::string(kNextIdsKey), Value<store::v1::NextIds>(step)};
    default:  // bytes that are no valid message
      return Record{RecordKind::kJobSpec, JobKey(job), std::string(step.body)};
  }
}

void Fold(ClusterState& state, const std::string& turn) {
  const auto logged = DecodeTurn(turn);
  if (!logged.ok()) return;
  for (const Event& event : logged->events) {
    if (!Apply(state, event).ok()) break;
    Must(CheckConsistency(state), "after an event");
  }
}

}  // namespace

void FuzzOne(absl::string_view input) {
  MemoryStore store;
  Batch batch{.sequence = 1};
  std::vector<std::string> turns;
  for (const Step& step : ReadSteps(input)) {
    auto record = ReadRecord(step);
    if (record.has_value()) batch.records.push_back(*std::move(record));
    if (!record.has_value()) turns.push_back(Value<store::v1::LogTurn>(step));
  }
  Must(store.Append({&batch}), "append");
  ClusterState state;
  Preserved preserved;
  if (!LoadState(
           store, state, [](StoredRequest) {}, &preserved)
           .ok()) {
    return;
  }
  Must(CheckConsistency(state), "loaded");
  for (const std::string& turn : turns) Fold(state, turn);
}

}  // namespace berth::fuzz
