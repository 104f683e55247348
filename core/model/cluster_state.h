// ClusterState: jobs, nodes and queues, with the indexes that planning reads.
//
// Everything is either a fact (set by Apply or by loading) or derived from facts. All accounting of
// tasks goes through one function, StateEditor::SetTask: it removes the old value's contribution
// and adds the new value's. Undo therefore means setting the old value again
// (engine/transaction.h), and a rebuild from facts equals the running sums (property test). Not
// thread-safe: the server guards it.
#ifndef BERTH_CORE_MODEL_CLUSTER_STATE_H_
#define BERTH_CORE_MODEL_CLUSTER_STATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/access/access.h"
#include "core/base/id_map.h"
#include "core/model/affinity_index.h"
#include "core/model/event.h"
#include "core/model/free_index.h"
#include "core/model/hyper_node.h"
#include "core/model/ids.h"
#include "core/model/interner.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/pending_index.h"
#include "core/model/queue.h"
#include "core/prediction/run_history.h"

namespace berth {

// Changes since the last TakeDirty: the records that the turn's batch must contain. Sorted, unique.
struct Dirty {
  std::vector<QueueId> queues;  // in the state = write, else delete
  std::vector<QueueId> usages;  // queues to write too; their revision stays
  std::vector<HyperNodeId> hyper_nodes;
  std::vector<NodeId> nodes;
  std::vector<JobId>
      jobs;  // status, priority or labels; not in the state = delete, with all its tasks
  std::vector<TaskKey> tasks;
  std::vector<JobId> new_jobs;  // write their immutable part as well
  std::vector<RunId> runs;      // kept = write, else delete
  bool request_mix = false;
  bool access = false;  // the access rules
  bool priority_classes = false;
  bool operator==(const Dirty&) const = default;
  bool empty() const { return *this == Dirty{}; }
};

// What planning keeps across cycles besides facts. Without it, decisions would be the same, but
// slower. Opaque here; owned by the state from which it was made.
class PlanningCache {
 public:
  virtual ~PlanningCache() = default;
};

class ClusterState {
 public:
  ClusterState();  // with one queue: the root
  // Defined in the .cc file, as they are large.
  ClusterState(ClusterState&&) noexcept;
  ClusterState& operator=(ClusterState&&) noexcept;
  ~ClusterState();

  // Facts.
  const IdMap<JobId, Job>& jobs() const { return jobs_; }
  const IdMap<NodeId, Node>& nodes() const { return nodes_; }
  const IdMap<QueueId, Queue>& queues() const { return queues_; }
  const IdMap<HyperNodeId, HyperNode>& hyper_nodes() const { return hyper_nodes_; }
  const Job* FindJob(absl::string_view name) const;
  const Node* FindNode(absl::string_view name) const;
  const Queue* FindQueue(absl::string_view name) const;
  const HyperNode* FindHyperNode(absl::string_view name) const;
  JobId next_job_id() const { return next_job_id_; }
  NodeId next_node_id() const { return next_node_id_; }
  QueueId next_queue_id() const { return next_queue_id_; }
  HyperNodeId next_hyper_node_id() const { return next_hyper_node_id_; }

  // Interned names, shapes and device models.
  const Interner& interner() const { return interner_; }

  // Fact: when usage was last charged (UsageCharged); InfinitePast if never.
  Time usage_charged() const { return usage_charged_; }

  // Fact: the demand for devices and the value of its requests. The version increases with each
  // change.
  const RequestMix& request_mix() const { return request_mix_; }
  uint64_t request_mix_version() const { return request_mix_version_; }

  // Facts: who may do what. Planning does not read them. The version increases with each change.
  const AccessRules& access() const { return access_; }
  uint64_t access_version() const { return access_version_; }

  // Facts: priorities by name. Planning does not read them.
  const PriorityClasses& priority_classes() const { return priority_classes_; }

  // Facts: the finished runs on which predictions rest (JobRunRecorded).
  const RunHistory& run_history() const { return run_history_; }

  // Facts: the reservations of blocked jobs.
  const absl::btree_map<JobId, Reservation>& reservations() const { return reservations_; }

  // The HyperNode that names this one as a member; 0 if none does. It need not exist yet.
  HyperNodeId ClaimantOf(absl::string_view hyper_node) const;
  // How many HyperNodes of the kind have that tier name, and their tier (0 if none).
  struct TierUse {
    int32_t tier = 0;
    int64_t hyper_nodes = 0;
  };
  TierUse TierNamed(absl::string_view kind, absl::string_view tier_name) const;
  // The HyperNode of that kind among the node's domains; null if only the root contains it.
  const HyperNode* DomainOf(const Node& node, absl::string_view kind) const;
  // Increases with every change of a HyperNode or of its nodes.
  uint64_t topology_version() const { return topology_version_; }
  // Increases when HyperNodes are added, removed or get other members, which changes their claims.
  uint64_t members_version() const { return members_version_; }

  // Derived indexes.
  const PendingIndex& pending() const { return pending_; }
  // Sum over the ready nodes, including cordoned ones: what the queues divide.
  const Resources& capacity() const { return capacity_; }
  const FreeIndex& free() const { return free_; }
  const AffinityIndex& affinity() const { return affinity_; }
  // Nodes with a device that tasks may share (Node::shareable).
  int64_t shareable_nodes() const { return shareable_nodes_; }
  // Nodes that have failed (NodeStatus::faults), however long ago.
  int64_t faulty_nodes() const { return faulty_nodes_; }
  // Nodes that hold the image (Node::images); null: none.
  const absl::btree_set<NodeId>* FindHolders(ImageId image) const {
    const auto found = image_holders_.find(image);
    return found == image_holders_.end() ? nullptr : &found->second;
  }
  // How many.
  int64_t HoldersOf(ImageId image) const {
    const absl::btree_set<NodeId>* holders = FindHolders(image);
    return holders == nullptr ? 0 : static_cast<int64_t>(holders->size());
  }
  // Different images that nodes hold.
  size_t held_images() const { return image_holders_.size(); }
  // The next due time of each job that has one (NextDue), earliest first; all later than
  // passed_time().
  const absl::btree_set<std::pair<Time, JobId>>& timers() const { return timers_; }
  // Jobs that occupy and have a walltime, by PlannedEnd.
  const absl::btree_set<std::pair<Time, JobId>>& planned_ends() const { return planned_ends_; }
  // Jobs with nominated tasks; tasks that are being released (except on silent nodes).
  const absl::btree_set<JobId>& nominated_jobs() const { return nominated_jobs_; }
  const absl::btree_set<TaskKey>& releasing() const { return releasing_; }
  // Frozen tasks that wait for their CPU; jobs that are paused and have not ended.
  const absl::btree_set<TaskKey>& resuming() const { return resuming_; }
  const absl::btree_set<JobId>& paused_jobs() const { return paused_jobs_; }
  // Running jobs below their minimum, by ShortSince.
  const absl::btree_set<std::pair<Time, JobId>>& short_jobs() const { return short_jobs_; }
  // Nodes in back-off, by its end.
  const absl::btree_set<std::pair<Time, NodeId>>& backoffs() const { return backoffs_; }
  // Nodes from which tasks must leave at a time (DrainDeadline), by that time.
  const absl::btree_set<std::pair<Time, NodeId>>& drain_ends() const { return drain_ends_; }
  // Nodes that their tasks may have to leave (MayExpel).
  const absl::btree_set<NodeId>& expelling_nodes() const { return expelling_nodes_; }
  bool Expels(NodeId node) const {
    return !expelling_nodes_.empty() && expelling_nodes_.contains(node);
  }
  // Nodes at their limit of tasks (NodeSpec::max_tasks), which are not in free().
  const absl::btree_set<NodeId>& full_nodes() const { return full_nodes_; }
  // When planning will recompute the ranks of pending jobs because of ageing, earliest first
  // (StateEditor::RankAgain). May contain jobs that have ended.
  const absl::btree_set<std::pair<Time, JobId>>& ageing() const { return ageing_; }
  // The time that planning last processed (StateEditor::PassTime).
  Time passed_time() const { return passed_time_; }
  // Jobs that the lifecycle stage must process: a fact changed, something is due, a dependency
  // ended, or they must leave a node that is draining. In id order.
  const absl::btree_set<JobId>& unsettled() const { return unsettled_; }
  // Jobs that depend on this one and have neither started nor ended, in id order. While there are
  // any, it cannot be deleted. So a dependency on a job that no longer exists was satisfied.
  std::vector<JobId> Dependents(JobId job) const;
  // Jobs that a series made and that exist, in id order: at most `most`.
  std::vector<JobId> MembersOf(JobId series, size_t most = SIZE_MAX) const;
  // The next of them at or above this id, and at or below it.
  std::optional<JobId> NextMember(JobId series, JobId from) const;
  std::optional<JobId> NextMemberBack(JobId series, JobId from) const;
  // The series of a job that one made; null: it is none, or the series is gone.
  const Job* SeriesOf(const Job& job) const {
    return job.member ? jobs_.Find(job.member->series) : nullptr;
  }
  // The message of the task's latest ended attempt; may be empty.
  absl::string_view TaskMessage(TaskKey task) const;
  int64_t jobs_in(JobState state) const { return jobs_by_state_[static_cast<size_t>(state)]; }
  // Excludes pending tasks of jobs that have ended.
  int64_t tasks_in(TaskState state) const { return tasks_by_state_[static_cast<size_t>(state)]; }
  // True if `request` fits below the limits of the queue and its ancestors.
  bool WithinLimits(QueueId queue, const Resources& request) const;
  // True if the queue and all its ancestors are open.
  bool Open(QueueId queue) const;

  Dirty TakeDirty();
  // Sets the revision of every dirty object to this one (the sequence of the batch that will
  // contain it).
  void StampDirty(uint64_t revision);

 private:
  friend class StateEditor;  // core/model/state_editor.h: the only writer, used by Apply, loading
                             // and Transaction

  IdMap<JobId, Job> jobs_;
  IdMap<NodeId, Node> nodes_;
  IdMap<QueueId, Queue> queues_;
  IdMap<HyperNodeId, HyperNode> hyper_nodes_;
  // Keys point into the objects, which do not move.
  absl::flat_hash_map<absl::string_view, JobId> job_names_;
  absl::flat_hash_map<absl::string_view, NodeId> node_names_;
  absl::flat_hash_map<absl::string_view, QueueId> queue_names_;
  absl::flat_hash_map<absl::string_view, HyperNodeId> hyper_node_names_;
  absl::flat_hash_map<TaskKey, std::string> task_messages_;
  JobId next_job_id_{1};
  NodeId next_node_id_{1};
  QueueId next_queue_id_{1};
  HyperNodeId next_hyper_node_id_{1};
  absl::flat_hash_map<std::string, HyperNodeId> claimants_;                       // by claimed name
  absl::flat_hash_map<std::pair<std::string, std::string>, TierUse> tier_names_;  // (kind, name)
  uint64_t topology_version_ = 0;
  uint64_t members_version_ = 0;

  Time usage_charged_ = absl::InfinitePast();
  RequestMix request_mix_;
  uint64_t request_mix_version_ = 0;
  AccessRules access_;
  uint64_t access_version_ = 0;
  PriorityClasses priority_classes_;
  RunHistory run_history_;

  Interner interner_;
  PendingIndex pending_;
  Resources capacity_;
  int64_t shareable_nodes_ = 0;
  int64_t faulty_nodes_ = 0;
  absl::flat_hash_map<ImageId, absl::btree_set<NodeId>> image_holders_;  // never iterated
  std::vector<QueueId> changed_queues_;
  std::unique_ptr<PlanningCache> planning_cache_;
  FreeIndex free_;
  AffinityIndex affinity_;
  absl::btree_set<std::pair<Time, JobId>> timers_;
  absl::flat_hash_map<JobId, Time> timer_of_;  // of jobs with Job::has_timer
  absl::btree_set<std::pair<Time, NodeId>> backoffs_;
  absl::btree_set<std::pair<Time, NodeId>> drain_ends_;
  absl::btree_set<NodeId> expelling_nodes_;
  absl::btree_set<NodeId> full_nodes_;
  Time passed_time_ = absl::InfinitePast();
  absl::btree_set<JobId> unsettled_;
  std::vector<JobId> unranked_;       // StateEditor::TakeUnranked
  std::vector<QueueId> moved_lines_;  // StateEditor::TakeMovedLines; unique
  bool ranked_ = false;               // true if some job may have a rank
  absl::btree_set<std::pair<Time, JobId>> ageing_;
  absl::btree_map<JobId, Reservation> reservations_;
  absl::btree_set<std::pair<Time, JobId>> planned_ends_;
  absl::btree_set<JobId> nominated_jobs_, paused_jobs_;
  absl::btree_set<TaskKey> releasing_, resuming_;
  absl::btree_set<std::pair<Time, JobId>> short_jobs_;
  absl::flat_hash_map<JobId, Time> short_since_;  // for the jobs in it
  std::vector<NodeId> new_nodes_;                 // StateEditor::TakeNewNodes
  std::vector<NodeId> freed_nodes_;  // may have more free since the last WakeForRoom; may repeat
  absl::btree_set<std::pair<JobId, JobId>> dependents_;  // (dependency, dependent)
  absl::btree_set<std::pair<JobId, JobId>> members_;     // (series, job that it made)
  std::array<int64_t, kJobStates> jobs_by_state_{};
  std::array<int64_t, kTaskStates> tasks_by_state_{};
  Dirty dirty_;
};

// What was submitted, with the current priority and labels.
JobSpec SpecOf(const ClusterState& state, const Job& job);

}  // namespace berth

#endif  // BERTH_CORE_MODEL_CLUSTER_STATE_H_
