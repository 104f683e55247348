// TurnRecorder: what one loop turn leaves for the disk. Events go through it into the state; Finish
// gives the batch with the turn's log record and every record that the events changed.
//
//   TurnRecorder recorder(state, &preserved);
//   recorder.Begin(sequence, now);
//   status = recorder.Apply({now, JobSubmitted{...}});
//   recorder.PutCold(id, cold);
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
  // The same of a bind that is a fact already.
  void NoteApplied(const Event& event);

  // The jobs submitted from `first` on never were. Since then the turn has recorded nothing but
  // their events and cold parts.
  void TakeBackJobs(JobId first);

  // The cold part of a job that this turn has submitted; at most once per job. It ends the job's
  // record, whose hot part is written by itself.
  void PutCold(JobId id, absl::string_view cold);

  // A record besides those that the events change: not of kinds kJobSpec and kLog, of kMeta
  // only kLeaseKey.
  void Put(Record record);

  // The store goes to the newest format with this turn's batch.
  void UseNewestFormat();

  // The turn's planning cycle: its budget and the counted work that it did. Before its decisions
  // are applied.
  void NoteCycle(uint64_t budget, uint64_t work);
  // The policies of all cycles from now on, as bytes for LogTurn.policies. After the first cycle,
  // planning has forgotten its verdicts (StateEditor::ForgetVerdicts). Goes with the next turn that
  // is written, and with it what planning still knows now.
  void NotePolicies(std::string policies);

  // Ends the turn: stamps what changed with the turn's sequence as its revision. nullopt if there
  // is nothing to write; the sequence is then free for the next turn. A cycle of such a turn is
  // told with the next that is written, at the latest after kMaxQuietCycles of them.
  std::optional<Batch> Finish();
  static constexpr size_t kMaxQuietCycles = 1000;

 private:
  struct Scratch;  // messages that are used again

  // A job of this turn. What is still as submitting makes it needs no record.
  struct Submitted {
    JobId id;
    JobId next_before;     // ClusterState::next_job_id before it
    size_t spec_record;    // index in batch_.records
    size_t log_bytes;      // of batch_.log before its event
    bool first_in_turn;    // nothing was recorded before it
    bool suspended;        // from the start
    bool touched = false;  // by an event that may have changed more than status and tasks
  };

  void Append(const Event& event, const LabelsBefore& labels);
  void AppendEvent(const Event& event, const LabelsBefore& labels);
  void AppendTail();
  void RecordSubmitted(const JobSubmitted& event, size_t log_bytes);
  void NoteEffects(const EventBody& event);
  Submitted* FindSubmitted(JobId id);
  static JobStatus StatusOf(const Submitted& submitted);

  void PutChanged(const Dirty& dirty);
  void PutQueue(QueueId id);
  void PutRun(RunId id);
  void PutNode(NodeId id);
  void PutHyperNode(HyperNodeId id);
  void PutJob(JobId id);
  void PutTask(TaskKey key);
  void PutNextIds();
  void DeleteJob(JobId id, const std::vector<uint32_t>& recorded);
  void PutValue(RecordKind kind, std::string key, std::string value);
  void PutDelete(RecordKind kind, std::string key);

  ClusterState& state_;
  Preserved* const preserved_;
  NextIds written_ids_;
  JobId next_job_;  // ClusterState::next_job_id when the turn began
  Time now_ = absl::InfinitePast();
  uint64_t cycle_budget_ = 0, cycle_work_ = 0;
  uint32_t events_ = 0, events_before_cycle_ = 0;
  // For the next turn that is written.
  std::string policies_;
  std::vector<QuietCycle> quiet_cycles_;
  std::optional<Remembered> remembered_;
  bool loaded_ = true;      // none was written yet
  bool cycle_ran_ = false;  // ever
  bool empty_ = true;
  Batch batch_;
  std::vector<Submitted> submitted_;  // by id, without a gap
  size_t cold_bytes_ = 0;             // of the last cold part: the next is often alike
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_TURN_RECORDER_H_
