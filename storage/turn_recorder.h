// TurnRecorder: collects what one loop turn writes to disk. Events go through it into the state.
// Finish returns the batch with the turn's log record and every record that the events changed.
//
//   TurnRecorder recorder(state, &preserved);
//   recorder.Begin(sequence, now);
//   status = recorder.Apply({now, JobSubmitted{...}});
//   recorder.PutCold(id, cold);
//   std::optional<Batch> batch = recorder.Finish();
//
// Used only on the thread that owns the state. The only way for the loop to change the state
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

// The first format of a store whose log has actors.
inline constexpr uint32_t kFormatOfActors = 9;

class TurnRecorder {
 public:
  // The state must outlive the recorder, and must be new or freshly loaded. `preserved` may be null
  // (nothing is preserved).
  explicit TurnRecorder(ClusterState& state, Preserved* preserved = nullptr);
  ~TurnRecorder();

  // Starts a turn. `sequence` is one more than that of the last batch. `log_actors`: the store's
  // format has them.
  void Begin(uint64_t sequence, Time now, bool log_actors = true);

  // What is recorded from here on, until EndActor or the next By, is this actor's. An actor that
  // caused nothing is not logged.
  void By(Actor actor);
  void EndActor();
  // The actor's command is in the log, even if it changes nothing.
  void LogCommand();

  // Calls berth::Apply; on success the event becomes part of the turn. On an error nothing has
  // changed.
  absl::Status Apply(const Event& event);
  // The same for a bind that was already applied.
  void NoteApplied(const Event& event);

  // Removes the jobs submitted from `first` on, as if they never existed. Since then the turn must
  // have recorded only their events and cold parts.
  void UndoSubmits(JobId first);

  // The cold part of a job that this turn submitted; at most once per job. It completes the job's
  // record, whose hot part is recorded automatically.
  void PutCold(JobId id, absl::string_view cold);

  // Adds a record that no event changes: not of kinds kJobSpec and kLog, and for kMeta only
  // kLeaseKey.
  void Put(Record record);

  // Upgrades the store to the newest format with this turn's batch.
  void UseNewestFormat();

  // Records the turn's planning cycle: its budget and its counted work. Call it before the cycle's
  // decisions are applied.
  void NoteCycle(uint64_t budget, uint64_t work);
  // The policies of all cycles from now on, as bytes for LogTurn.policies. After the first cycle,
  // planning has forgotten its verdicts (StateEditor::ForgetVerdicts). Written with the next batch,
  // together with what planning remembers now.
  void NotePolicies(std::string policies);

  // Ends the turn and stamps what changed with the turn's sequence as its revision. nullopt if
  // there is nothing to write; the next turn then reuses the sequence. The cycle of such a turn is
  // logged with the next batch, after at most kMaxQuietCycles of them.
  std::optional<Batch> Finish();
  static constexpr size_t kMaxQuietCycles = 1000;

 private:
  struct Scratch;  // reused messages

  // A job of this turn. A job in its initial state needs no status record.
  struct Submitted {
    JobId id;
    JobId next_before;     // ClusterState::next_job_id before it
    size_t spec_record;    // index in batch_.records
    size_t log_bytes;      // size of batch_.log before its event
    bool first_in_turn;    // nothing was recorded before it
    bool suspended;        // from the beginning
    bool touched = false;  // by an event that may have changed more than status and tasks
  };

  void Append(const Event& event, const LabelsBefore& labels);
  void AppendEvent(const Event& event, const LabelsBefore& labels);
  void AppendActors();
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
  std::vector<ActorRange> actors_;  // of the turn
  bool log_actors_ = true;
  bool acting_ = false;   // the last of actors_ is not ended
  bool has_put_ = false;  // since it began, a record that no event changes
  // Written with the next batch.
  std::string policies_;
  std::vector<QuietCycle> quiet_cycles_;
  std::optional<Remembered> remembered_;
  bool loaded_ = true;      // nothing was written yet
  bool cycle_ran_ = false;  // in this process
  bool empty_ = true;
  Batch batch_;
  std::vector<Submitted> submitted_;  // by id, without gaps
  size_t cold_bytes_ = 0;             // size of the last cold part: the next is often similar
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_TURN_RECORDER_H_
