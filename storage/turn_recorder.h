// TurnRecorder: what one loop turn leaves for the disk. Events go through it into the state; Finish
// gives the batch with the turn's log record and every record that the events changed.
//
//   TurnRecorder recorder(state, &preserved);
//   recorder.Begin(sequence, now);
//   status = recorder.Apply({now, JobSubmitted{...}});
//   recorder.Put({RecordKind::kJobSpec, JobKey(id), cold});
//   std::optional<Batch> batch = recorder.Finish();
//
// Used from one thread, the one that owns the state. The loop's only way to change the state
// durably.
#ifndef BERTH_STORAGE_TURN_RECORDER_H_
#define BERTH_STORAGE_TURN_RECORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"
#include "storage/codec.h"
#include "storage/event_labels.h"
#include "storage/preserved.h"
#include "storage/store.h"

namespace berth {

class TurnRecorder {
 public:
  // The state must outlive the recorder; it is new or freshly loaded. `preserved` may be null
  // (nothing is preserved).
  explicit TurnRecorder(ClusterState& state, Preserved* preserved = nullptr);
  ~TurnRecorder();

  // Starts a turn. `sequence` is one more than that of the last batch.
  void Begin(uint64_t sequence, Time now);

  // berth::Apply, and on success the event is part of the turn. On an error nothing has changed.
  absl::Status Apply(const Event& event);

  // A record besides those that the events change. Of kind kJobSpec: `value` is the cold part of a
  // job that this turn has submitted, at most once per job; the hot part is written by itself.
  // kMeta and kLog are not allowed.
  void Put(Record record);

  // The turn's planning cycle: its budget and the counted work that it did. Before its decisions
  // are applied.
  void NoteCycle(uint64_t budget, uint64_t work);
  // The policies of all cycles from now on, as bytes for LogTurn.policies. Goes with the next turn
  // that is written; cycles in between had no decisions.
  void NotePolicies(std::string policies) { policies_ = std::move(policies); }

  // Ends the turn: stamps what changed with the turn's sequence as its revision. nullopt if there
  // is nothing to write; the sequence is then free for the next turn.
  std::optional<Batch> Finish();

 private:
  struct Scratch;  // messages that are used again

  // A job of this turn, as it was right after it was submitted: what has not changed since needs no
  // record.
  struct Submitted {
    JobId id;
    size_t spec_record;  // index in batch_.records
    JobStatus status;
    Task task;
    bool touched = false;  // by an event that may have changed more than status and tasks
  };

  void AppendEvent(const Event& event, const LabelsBefore& labels);
  void RecordSubmitted(const JobSubmitted& event);
  void NoteEffects(const EventBody& event);
  Submitted* FindSubmitted(JobId id);

  void PutChanged(const Dirty& dirty);
  void PutQueue(QueueId id);
  void PutNode(NodeId id);
  void PutJob(JobId id);
  void PutTask(TaskKey key);
  void PutNextIds();
  void DeleteJob(JobId id, size_t tasks);
  void PutValue(RecordKind kind, std::string key, std::string value);
  void PutDelete(RecordKind kind, std::string key);

  ClusterState& state_;
  Preserved* const preserved_;
  NextIds written_ids_;
  Time now_ = absl::InfinitePast();
  uint64_t cycle_budget_ = 0, cycle_work_ = 0;
  uint32_t events_ = 0, events_before_cycle_ = 0;
  std::string policies_;
  bool empty_ = true;
  Batch batch_;
  std::vector<Submitted> submitted_;  // by id
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_TURN_RECORDER_H_
