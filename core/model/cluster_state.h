// ClusterState: jobs, nodes and queues, with the indexes that planning reads.
//
// Everything is either a fact (set by Apply or by loading) or derived from facts. All accounting of tasks goes through
// one function, SetTask: it takes the old value's contribution out and puts the new value's in, so that undoing is
// setting the old value again (engine/transaction.h), and a rebuild from facts equals the running sums (property test).
// No thread safety: the server guards it.
#ifndef BERTH_CORE_MODEL_CLUSTER_STATE_H_
#define BERTH_CORE_MODEL_CLUSTER_STATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/id_map.h"
#include "core/model/event.h"
#include "core/model/free_index.h"
#include "core/model/ids.h"
#include "core/model/interner.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/pending_index.h"
#include "core/model/queue.h"

namespace berth {

// What changed since the last TakeDirty: the records that the turn's batch must carry. Sorted, without repeats.
struct Dirty {
  std::vector<QueueId> queues;  // present = write, absent in the state = delete
  std::vector<NodeId> nodes;
  std::vector<JobId> jobs;      // status, priority or labels
  std::vector<TaskKey> tasks;
  std::vector<JobId> new_jobs;  // their immutable part as well
  bool empty() const {
    return queues.empty() && nodes.empty() && jobs.empty() && tasks.empty() && new_jobs.empty();
  }
};

class ClusterState {
 public:
  ClusterState();  // one queue: the root

  // Facts.
  const IdMap<JobId, Job>& jobs() const { return jobs_; }
  const IdMap<NodeId, Node>& nodes() const { return nodes_; }
  const IdMap<QueueId, Queue>& queues() const { return queues_; }
  const Job* FindJob(absl::string_view name) const;
  const Node* FindNode(absl::string_view name) const;
  const Queue* FindQueue(absl::string_view name) const;
  JobId next_job_id() const { return next_job_id_; }
  NodeId next_node_id() const { return next_node_id_; }
  QueueId next_queue_id() const { return next_queue_id_; }

  // Interned names, shapes and device models.
  const Interner& interner() const { return interner_; }

  // Derived indexes.
  const PendingIndex& pending() const { return pending_; }
  const FreeIndex& free() const { return free_; }
  // Jobs with something due at a known time (JobTimer), earliest first.
  const absl::btree_set<std::pair<Time, JobId>>& timers() const { return timers_; }
  // Jobs whose tasks or status changed since the lifecycle stage last looked. In id order.
  const absl::btree_set<JobId>& unsettled() const { return unsettled_; }
  // Jobs that wait for this one to end.
  std::vector<JobId> Dependents(JobId job) const;
  int64_t jobs_in(JobState state) const { return jobs_by_state_[static_cast<size_t>(state)]; }
  int64_t tasks_in(TaskState state) const { return tasks_by_state_[static_cast<size_t>(state)]; }
  // Room for `request` below the limits of the queue and its ancestors.
  bool WithinLimits(QueueId queue, const Resources& request) const;

  Dirty TakeDirty();
  // Stamps every object that is dirty now with this revision (the sequence of the batch that will carry it).
  void StampDirty(uint64_t revision);

 private:
  friend class StateEditor;  // core/model/state_editor.h: the only writer, used by Apply, loading and Transaction

  IdMap<JobId, Job> jobs_;
  IdMap<NodeId, Node> nodes_;
  IdMap<QueueId, Queue> queues_;
  absl::flat_hash_map<std::string, JobId> job_names_;
  absl::flat_hash_map<std::string, NodeId> node_names_;
  absl::flat_hash_map<std::string, QueueId> queue_names_;
  JobId next_job_id_{1};
  NodeId next_node_id_{1};
  QueueId next_queue_id_{1};

  Interner interner_;
  PendingIndex pending_;
  FreeIndex free_;
  absl::btree_set<std::pair<Time, JobId>> timers_;
  absl::btree_set<JobId> unsettled_;
  absl::flat_hash_map<JobId, std::vector<JobId>> dependents_;
  std::array<int64_t, 10> jobs_by_state_{};
  std::array<int64_t, 10> tasks_by_state_{};
  Dirty dirty_;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_CLUSTER_STATE_H_
