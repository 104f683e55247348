// Loop: following the server that leads.
#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/model/state_editor.h"
#include "server/loop/loop.h"
#include "storage/codec.h"
#include "storage/keys.h"

namespace berth {
namespace {

// Records that no event changes: what the leader remembers besides the state.
bool IsOfServer(const Record& record) {
  return record.kind == RecordKind::kRequest ||
         (record.kind == RecordKind::kMeta && record.key == kLeaseKey);
}

using RecordRefs = std::vector<const Record*>;

RecordRefs StateRecords(const std::vector<Record>& records) {
  RecordRefs found;
  for (const Record& record : records) {
    if (!IsOfServer(record)) found.push_back(&record);
  }
  std::sort(found.begin(), found.end(), [](const Record* a, const Record* b) {
    return std::pair(a->kind, absl::string_view(a->key)) <
           std::pair(b->kind, absl::string_view(b->key));
  });
  return found;
}

std::string RecordName(const Record& record) {
  return absl::StrCat(RecordKindName(record.kind), " ", PrintableKey(record.kind, record.key));
}

// Where the records first differ; empty: nowhere.
std::string Difference(const RecordRefs& ours, const RecordRefs& theirs) {
  for (size_t i = 0; i < ours.size() && i < theirs.size(); ++i) {
    if (ours[i]->kind != theirs[i]->kind || ours[i]->key != theirs[i]->key) {
      return absl::StrCat(RecordName(*ours[i]), " here, ", RecordName(*theirs[i]), " there");
    }
    if (ours[i]->value != theirs[i]->value) return RecordName(*ours[i]);
  }
  if (ours.size() == theirs.size()) return "";
  const bool more = ours.size() > theirs.size();
  const Record& first = more ? *ours[theirs.size()] : *theirs[ours.size()];
  return absl::StrCat(RecordName(first), more ? " only here" : " only there");
}

// Cold parts of the jobs that the batch submitted.
absl::StatusOr<ColdParts> ColdPartsOf(const Batch& batch) {
  ColdParts parts;
  for (const Record& record : batch.records) {
    if (record.kind != RecordKind::kJobSpec || !record.value.has_value()) continue;
    const absl::StatusOr<JobId> id = ParseJobKey(record.key);
    if (!id.ok()) return id.status();
    absl::StatusOr<std::string> cold = DecodeCold(record.key, *record.value);
    if (!cold.ok()) return cold.status();
    parts.emplace_back(*id, std::make_shared<const std::string>(*std::move(cold)));
  }
  std::sort(parts.begin(), parts.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return parts;
}

}  // namespace

Loop::Followed Loop::Follow(const Batch& batch) {
  absl::StatusOr<LoggedTurn> turn = DecodeTurn(batch.log);
  if (!turn.ok()) return {turn.status()};
  absl::StatusOr<ColdParts> cold = ColdPartsOf(batch);
  if (!cold.ok()) return {cold.status()};
  Followed followed;
  TurnOutput output{.events = std::move(turn->events), .cold = *std::move(cold)};
  {
    absl::MutexLock lock(&state_mutex_);
    now_ = std::max(now_, turn->time);
    recorder_->Begin(sequence_ + 1, turn->time, LogsActors());
    for (const Event& event : output.events) {
      if (absl::Status status = recorder_->Apply(event); !status.ok()) {
        return {absl::DataLossError(
            absl::StrCat("batch ", batch.sequence, " does not fit: ", status.message()))};
      }
    }
    RecordCold(output);
    const std::optional<Batch> derived = recorder_->Finish();
    followed.difference =
        Difference(derived.has_value() ? StateRecords(derived->records) : RecordRefs(),
                   StateRecords(batch.records));
    followed.same = followed.difference.empty();
    revision_ = sequence_ = batch.sequence;
    Observe(output);
  }
  counters_.events += output.events.size();
  outbox_.Add({.revision = sequence_,
               .effects = std::move(output.effects),
               .events = std::make_shared<const std::vector<Event>>(std::move(output.events)),
               .turn = std::make_shared<const std::string>(batch.log)});
  handed_over_ = sequence_;
  outbox_.NoteDurable(sequence_);
  return followed;
}

// Only of jobs that the events submitted; others would show as a difference.
void Loop::RecordCold(const TurnOutput& output) {
  for (const Event& event : output.events) {
    const auto* submitted = std::get_if<JobSubmitted>(&event.body);
    if (submitted == nullptr) continue;
    const auto found = std::lower_bound(
        output.cold.begin(), output.cold.end(), submitted->id,
        [](const auto& part, JobId id) { return part.first < id; });  // they are sorted
    if (found != output.cold.end() && found->first == submitted->id) {
      recorder_->PutCold(found->first, *found->second);
    }
  }
}

void Loop::AcceptCommands() {
  Begin();
  absl::MutexLock lock(&state_mutex_);
  ForgetVerdicts();
  plan_again_ = true;
  accepts_ = true;
}

void Loop::Lead() {
  leads_ = true;
  Wake();
}

}  // namespace berth
