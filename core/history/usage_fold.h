// UsageFold: folds the event log into resources times time: who held, reserved and waited for how
// much, what was lost, how capacity was divided, and which jobs ended (docs/developers/history.md).
// It has a reduced state of its own (usage_state.h). The rules are the model's: tasks change by
// core/model/transitions.h, and what they take of a node is HeldBy.
//
//   t=0    TasksBound: 8 GPUs      the job's rows have a rate of 8 GPUs
//   t=90s  TaskReported: exited    minute 0 closed with 8 * 60 s; minute 1 has 8 * 30 s so far
//
// Events come in the order of the log; a time that goes back counts as no time. An error means that
// the events do not fit the state: then the fold is of no use any more. Not thread-safe.
#ifndef BERTH_CORE_HISTORY_USAGE_FOLD_H_
#define BERTH_CORE_HISTORY_USAGE_FOLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/id_map.h"
#include "core/history/usage_facts.h"
#include "core/history/usage_state.h"
#include "core/model/event.h"
#include "core/model/interner.h"

namespace berth {

struct UsageOptions {
  // The account of a job with these labels; null: none has one.
  std::function<std::string(const std::map<std::string, std::string>&)> account_of;
  size_t keys = 10'000;  // combinations of queue, user, account and class at a time
  // Minutes that end earlier before the time that passes are not yielded.
  Duration minutes = absl::Hours(24 * 30);
};

class UsageFold {
 public:
  explicit UsageFold(UsageOptions options);

  // ---- Loading: of the store's records, or of this state's own; before Begin. DATA_LOSS: a record
  // does not fit the others. Queues are loaded before jobs, nodes and jobs before tasks, tasks of
  // this state before its JobUsage.
  absl::Status LoadQueue(QueueId id, const QueueSpec& spec);
  absl::Status LoadNode(NodeId id, const NodeSpec& spec, const NodeStatus& status);
  absl::Status LoadJob(JobId id, const JobSpec& spec, Time submit);
  // Of the store: its tasks are pending; LoadTask changes that. An ended job is forgotten.
  absl::Status LoadJobStatus(JobId id, const JobStatus& status,
                             const std::map<std::string, std::string>& labels);
  absl::Status LoadTask(TaskKey key, const Task& task);
  // Of this state. `labels` null: those of its specification.
  struct StoredJobUsage {
    JobState state = JobState::kPending;
    bool forced = false;
    Loss broken_by = Loss::kNone;
    JobLife life;
    std::vector<int32_t> pending;
    std::vector<NamedMeter<UsageMeter>> meters;
  };
  absl::Status LoadJobUsage(JobId id, const StoredJobUsage& stored,
                            const std::map<std::string, std::string>* labels);
  absl::Status LoadPlacedTask(TaskKey key, const PlacedTask& placed);
  // All is loaded as of that time.
  void Begin(Time now);
  // After Begin: all open rows of this state. DATA_LOSS if their rates are not those of the state.
  absl::Status LoadRow(const UsageRow& row);
  absl::Status LoadRow(const CapacityRow& row);
  absl::Status FinishRows();

  // ---- Folding. Both close periods that are over.
  absl::Status Apply(const Event& event);
  // Nothing happens before `now` any more. Stops once there are `most` changes: false, then call
  // again after TakeChanges.
  bool PassTime(Time now, size_t most);
  // Closed rows, and the open rows and parts of the state that changed since the last call.
  HistoryChanges TakeChanges();
  size_t changes() const;
  // Has the next TakeChanges yield all open rows.
  void TouchRows();

  // ---- The state, to be stored and compared.
  Time now() const { return TimeOfMs(now_ms_); }
  const QueueUsage* FindQueue(QueueId id) const { return queues_.Find(id); }
  const NodeUsage* FindNode(NodeId id) const { return nodes_.Find(id); }
  const JobUsage* FindJob(JobId id) const { return jobs_.Find(id); }
  const PlacedTask* FindTask(TaskKey key) const;
  StoredJobUsage StoredOf(const JobUsage& job) const;
  const IdMap<NodeId, NodeUsage>& nodes() const { return nodes_; }
  const IdMap<JobId, JobUsage>& jobs() const { return jobs_; }
  const Interner& interner() const { return interner_; }
  const UsageKeys& keys() const { return keys_; }
  size_t rows() const { return minutes_.rows().size() + hours_.rows().size(); }

 private:
  using UsageRowId = std::pair<KeyId, ModelId>;
  using UsagePeriod = PeriodRows<UsageRowId, UsageMeter>;
  using CapacityPeriod = PeriodRows<ModelId, CapacityMeter>;

  // One overload for each event that matters; the others are empty (usage_fold.cc).
  absl::Status On(const QueueCreated& event);
  absl::Status On(const QueueDeleted& event);
  absl::Status On(const NodeRegistered& event);
  absl::Status On(const NodeSilenced& event);
  absl::Status On(const NodeFenced& event);
  absl::Status On(const NodeSteered& event);
  absl::Status On(const NodeDeleted& event);
  absl::Status On(const JobSubmitted& event);
  absl::Status On(const JobUpdated& event);
  absl::Status On(const JobCancelled& event);
  absl::Status On(const JobDeleted& event);
  absl::Status On(const JobStatusChanged& event);
  absl::Status On(const TaskReported& event);
  absl::Status On(const TasksBound& event);
  absl::Status On(const TasksStarted& event);
  absl::Status On(const TasksReleased& event);
  absl::Status On(const TasksRequeued& event);
  absl::Status On(const TasksNominated& event);
  absl::Status On(const TasksUnnominated& event);
  absl::Status On(const TasksPaused& event);
  absl::Status On(const TasksResumed& event);
  absl::Status On(const CheckpointRecorded& event);
  template <class Other>
  absl::Status On(const Other&) {
    return absl::OkStatus();
  }

  // Tasks (usage_fold_task.cc).
  absl::Status SetTask(TaskKey key, const Task& after, Loss loss = Loss::kNone);
  absl::Status ChangeTasks(JobId job, absl::Span<const uint32_t> tasks,
                           absl::FunctionRef<Task(const Task&)> change);
  PlacedTask* MutableTask(TaskKey key);
  void Place(TaskKey key, JobUsage& job, const Task& task, int sign);
  void PlaceOnNode(TaskKey key, const JobUsage& job, const Task& task, int sign);
  void CountTask(JobUsage& job, uint32_t index, const Task& task, int sign);
  PlacedTask NextPlaced(const PlacedTask* before, const Task& after) const;
  void CountLoss(JobUsage& job, uint32_t index, const PlacedTask& placed, Loss loss);
  void CountPending(JobUsage& job, size_t group, int32_t more);
  void CountLent(NodeUsage& node);
  static Loss LossAtEnd(const PlacedTask& before, const Task& after);
  const ShapeEntry& ShapeOf(const JobUsage& job, uint32_t index) const;

  // Jobs (usage_fold_job.cc).
  absl::Status AddJob(JobId id, const JobSpec& spec, Time submit);
  void EndJob(JobId id, JobUsage& job, const JobStatus& status);
  void ForgetJob(JobId id, JobUsage& job);
  void SetAccount(JobUsage& job, const std::map<std::string, std::string>& labels);
  void CountJob(JobUsage& job, int sign);
  void CountWaiting(JobUsage& job, int sign);
  std::string AccountOf(const std::map<std::string, std::string>& labels) const;
  std::string PathOf(const QueueSpec& spec) const;
  void SetState(JobUsage& job, JobState state);
  void BeginJobs();

  // Nodes (usage_fold_node.cc).
  absl::Status SetNodeSpec(NodeUsage& node, NodeSpec spec);
  absl::Status DeriveNode(NodeUsage& node);
  void ChangeNode(NodeId id) { changed_nodes_.push_back(id); }
  void CountSplits();
  void CountSplit(const CapacitySplit& before, const CapacitySplit& after);
  absl::Status EndLostTasks(JobId id, const JobUsage& job);

  // Rows (usage_fold_rows.cc).
  void Count(JobUsage& job, DeviceKey of, Measure measure, int64_t more);
  void CountWaitingAmounts(JobUsage& job, const Resources& request, int64_t times);
  UsageMeter& RowMeter(UsagePeriod& rows, UsageRowId id, ResourceKind kind);
  void AddLoss(JobUsage& job, DeviceKey of, Measure measure, AmountTime more);
  void CloseMinute(int64_t next_ms, bool yield);
  void CloseHour();
  template <class M>
  std::vector<NamedMeter<M>> Named(const MeterRow<M>& row) const;
  UsageRow RowOf(HistoryPeriod period, const UsagePeriod& rows, UsageRowId id,
                 const MeterRow<UsageMeter>& row) const;
  CapacityRow RowOf(HistoryPeriod period, const CapacityPeriod& rows, ModelId id,
                    const MeterRow<CapacityMeter>& row) const;
  template <class Row>
  static void Yield(std::vector<Row>& rows, Row row, int64_t begin_ms);

  // Loading (usage_fold_load.cc).
  absl::Status PlaceLoaded(TaskKey key, const PlacedTask& placed, bool was_pending);
  template <class M>
  absl::Status LoadMeters(const std::vector<NamedMeter<M>>& stored, MeterRow<M>& row);

  const UsageOptions options_;
  int64_t now_ms_ = 0;
  bool begun_ = false;
  Interner interner_;
  UsageKeys keys_;
  ModelNames models_;
  IdMap<QueueId, QueueUsage> queues_;
  IdMap<NodeId, NodeUsage> nodes_;
  IdMap<JobId, JobUsage> jobs_;
  UsagePeriod minutes_{kMsPerMinute}, hours_{kMsPerHour};
  CapacityPeriod capacity_minutes_{kMsPerMinute}, capacity_hours_{kMsPerHour};
  std::vector<NodeId> changed_nodes_;  // whose capacity may be divided differently now; may repeat
  HistoryChanges changes_;
  // While loading.
  absl::flat_hash_map<JobId, Time> checkpoints_;  // of gangs
  absl::flat_hash_set<JobId> ended_;
  size_t loaded_rows_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_HISTORY_USAGE_FOLD_H_
