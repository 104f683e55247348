// PendingIndex: pending jobs, in classes of jobs with equal requests. If the first job of a class
// does not fit, none of the class does. A blocked class is set aside until something happens that
// could help. So a cycle costs O(classes not known to be blocked + decisions), and a million equal
// blocked jobs cost nothing.
//
//   needs of a job (NeedsOf) --same queue, gang, shapes and counts--> PendingClass {jobs by
//   priority, deadline, rank, age}
//   ready():          classes to be tried, by queue, ordered by the key of their first job
//   short_of_room():  blocked classes, likewise, whose verdict waits for room
//   held_back():      blocked for any other reason
//
// Blocked classes return to ready() when something happens that could help them (WakeOn).
//
// Kept by StateEditor: it lags behind edits until StateEditor::Sync(). Not thread-safe.
#ifndef BERTH_CORE_MODEL_PENDING_INDEX_H_
#define BERTH_CORE_MODEL_PENDING_INDEX_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "core/base/id_map.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/queue.h"

namespace berth {

class AffinityIndex;  // core/model/affinity_index.h

// How many more tasks a group needs now.
struct GroupNeed {
  uint32_t group = 0;
  int32_t count = 0;
  bool operator==(const GroupNeed&) const = default;
};

// What a job requests now. With `gang`: all of it at once or nothing, namely what its minimum
// lacks. Without: one unit of it, namely one task of the first group that fits, or the rest of one
// partition (growth, or a replacement above the minimum).
struct JobNeeds {
  bool gang = false;
  // Empty = nothing to place. In group order; without `gang` sorted by PriorityOf.
  absl::InlinedVector<GroupNeed, 2> groups;
  bool empty() const { return groups.empty(); }
};

// Pure: depends on the job's status and tallies. Empty unless the job can be placed: Pending,
// Binding or Running, and neither suspended nor cancelled. A group with an unmet depends_on
// requests nothing. A Pending job requests places only once all members that its minimum needs are
// pending (none of them is still being stopped).
JobNeeds NeedsOf(const Job& job);

// The ways to divide what the minimum lacks over the groups: NeedsOf first, then those with less of
// the first groups and more of later ones. There are several only if the job's minimum exceeds the
// sum of the groups' minimums, and some groups have more pending tasks: "any 3 of a's 2 and b's 4"
// is a:2 b:1, a:1 b:2, b:3. At most kMostDivisions; if there are more, these are spread evenly over
// all.
inline constexpr size_t kMostDivisions = 64;
std::vector<JobNeeds> DivisionsOf(const Job& job);
// At most kFewDivisions of these, for expensive questions: which victims to evict for it, and when
// it could start.
inline constexpr size_t kFewDivisions = 4;
std::vector<JobNeeds> FewDivisionsOf(const Job& job);

// True if these tasks could in turn be evicted for others: all groups of the needs are preemptible.
bool Preemptible(const Job& job, const JobNeeds& needs);
// The job's for a gang; else the highest of the groups.
int32_t PriorityOf(const Job& job, const JobNeeds& needs);

// The same for a job that would be submitted like this.
std::vector<JobNeeds> FirstDivisionsOf(const JobSpec& spec);

// True if the group's depends_on is met.
bool GroupOpen(const Job& job, uint32_t group);
// It has members, or is open. The minimum of a closed group does not apply before the group begins.
bool GroupBegun(const Job& job, uint32_t group);

// Since when a running job has had fewer members than its minimums require, because tasks are
// pending or being stopped; InfiniteFuture if it has enough. Groups that have not begun do not
// count.
Time ShortSince(const Job& job);

struct DemandItem {
  ShapeId shape;
  int32_t count = 0;
  int32_t partition_size = 0;
  Strategy strategy = Strategy::kDefault;
  int32_t communication = 0;  // if a topology constraint applies
  bool preemptible = false;
  std::optional<int32_t> priority = {};  // of its group, if set
  bool operator==(const DemandItem&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DemandItem& v) {
    return H::combine(std::move(h), v.shape, v.count, v.partition_size, v.strategy, v.communication,
                      v.preemptible, v.priority);
  }
};

// Everything that decides whether and where a job can be placed, except its turn.
struct Demand {
  QueueId queue;
  bool gang = false;
  bool preempts = true;
  int32_t surplus = 0;  // for growth: its members beyond the groups' minimums
  JobId only;           // 0, or the only job of the class: its present tasks affect where it fits
  Duration walltime = absl::InfiniteDuration();
  int32_t expected_s = 0;                    // RunPrediction: may be used by backfilling
  std::string user;                          // if the queue is fair between users
  absl::InlinedVector<DemandItem, 1> items;  // in the order of the needs
  // Empty, or the constraints of the job, of each item's group, and of its partitions.
  std::vector<TopologyConstraint> topology;
  std::vector<AffinityTerm> affinity;
  std::vector<LabelPair> labels;  // followed ones (AffinityIndex)
  bool operator==(const Demand&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Demand& v) {
    return H::combine(std::move(h), v.queue, v.gang, v.preempts, v.surplus, v.only, v.walltime,
                      v.expected_s, v.user, v.items, v.topology, v.affinity, v.labels);
  }
};
Demand DemandOf(const Queue& queue, const Job& job, const JobNeeds& needs,
                const AffinityIndex& affinity);

// The event that makes a blocked class worth another try.
enum class WakeOn : uint8_t {
  kChange,  // nodes or queues change; also ends every other wait
  kQueue,   // something in the verdict's `queue`, or below it, ends
  kRoom,    // a node has more free, and one task of the class fits there
};

// An action that was asked to make room for a class, and decided nothing.
struct RoomAsked {
  std::string action;  // such as "reclaim"
  std::string barred;  // the reason, for people: "no queue holds more than its fair share"
  bool operator==(const RoomAsked&) const = default;
};

// Why a class is blocked. Opaque to the model except for `wake` and `queue`: written and read by
// the engine (WaitReason, core/engine/plan.h).
struct BlockedVerdict {
  uint8_t code = 0;  // WaitCode
  WakeOn wake = WakeOn::kChange;
  std::string resource;
  int64_t needed = 0;
  int64_t free = 0;
  int64_t limit = 0;
  QueueId queue;
  JobId job;
  std::string detail;
  int32_t backing_off = 0;  // nodes in back-off that could hold a task of it
  NodeId backs_off;         // the first of these, until backs_off_until
  Time backs_off_until = absl::InfinitePast();
  Time found = absl::InfinitePast();  // when it was found (set by StateEditor::Block)
  // Try again then even if nothing has happened (StateEditor::Revisit).
  Time revisit = absl::InfiniteFuture();
  std::vector<RoomAsked> asked;  // since then; in the order of actions
};

struct PendingClass {
  Demand demand;
  absl::btree_set<OrderKey> jobs;
  std::unique_ptr<BlockedVerdict> blocked;  // null while in ready()
  // According to the last verdict that SettleNever processed, only other nodes or domains can help.
  // Kept until the next SettleNever, also while the class is tried again, so that shares do not
  // change with each try.
  bool never = false;
};

// The position of a class in its queue: that of its first job. But at equal priority and deadline,
// gangs precede growth, and jobs that have grown least grow first, so that they take turns. In a
// queue that is fair between users, the classes of each user are adjacent.
struct ClassKey {
  int32_t priority = 0;
  Time deadline = absl::InfiniteFuture();
  absl::string_view user;  // Demand::user of the class
  int32_t growth = 0;      // 0: a gang; else 1 + Demand::surplus
  int64_t rank = 0;
  JobId job;
  bool operator==(const ClassKey&) const = default;
  friend bool operator<(const ClassKey& a, const ClassKey& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.deadline != b.deadline) return a.deadline < b.deadline;
    if (const int order = a.user.compare(b.user); order != 0) return order < 0;
    if (a.growth != b.growth) return a.growth < b.growth;
    return a.rank != b.rank ? a.rank < b.rank : a.job < b.job;
  }
};
// Valid as long as the demand.
inline ClassKey ClassKeyOf(const Demand& demand, const OrderKey& first) {
  const int32_t growth = demand.gang ? 0 : 1 + demand.surplus;
  return {first.priority, first.deadline, demand.user, growth, first.rank, first.job};
}

class PendingIndex {
 public:
  using Classes = absl::btree_map<ClassKey, ClassId>;
  using ByQueue = absl::btree_map<QueueId, Classes>;
  // Classes with jobs: those not known to be blocked, those blocked until there is room, and those
  // blocked otherwise. No entry is empty. Sync, Block and reopening invalidate iterators.
  const ByQueue& ready() const { return lists_[kReady]; }
  const ByQueue& short_of_room() const { return lists_[kShort]; }
  const ByQueue& held_back() const { return lists_[kHeldBack]; }
  size_t ready_count() const { return ready_count_; }
  // The class of a job is Job::pending_class. Valid until a Sync of facts drops a class without
  // jobs.
  const PendingClass& Class(ClassId id) const { return classes_.At(id); }
  const PendingClass* FindClass(ClassId id) const { return classes_.Find(id); }
  ClassId next_class() const { return next_class_; }
  const IdMap<ClassId, PendingClass>& classes() const { return classes_; }
  // Classes passed to Block since the last StateEditor::ForgetMissed, in order: those for which
  // tasks may have to be evicted. May repeat, and contain classes that no longer exist or are not
  // blocked.
  const std::vector<ClassId>& missed() const { return missed_; }
  // When a blocked class is to be tried again at the latest, earliest first. May contain times of
  // classes that are no longer blocked.
  const absl::btree_set<std::pair<Time, ClassId>>& revisits() const { return revisits_; }
  size_t job_count() const { return job_count_; }

 private:
  friend class StateEditor;

  // `fact`: neither a trial nor the undo of one.
  ClassId Add(const Demand& demand, OrderKey key, bool fact);
  // A new class with the same jobs and demand, about which nothing is known.
  ClassId Renew(ClassId id);
  // Adds a job back that was removed only temporarily.
  void Return(ClassId id, OrderKey key);
  void Remove(ClassId id, OrderKey key);
  void Block(ClassId id, BlockedVerdict verdict);
  void ReopenAll();
  void ReopenQueue(QueueId id);  // classes blocked by this queue
  void ReopenShape(ShapeId id);  // classes blocked for lack of room for this shape
  void ReopenForAffinity();      // classes blocked possibly by affinity or labels
  bool in_trial() const { return trial_ != nullptr; }
  void Reopen(std::vector<ClassId>& list);
  void Reopen(ClassId id);
  // Everything found out about classes between these two is recorded and then undone, including all
  // lists, so that later steps proceed in the same order as if the trial had never been. Facts must
  // not change in between. Returns the classes whose `never` was undone.
  void BeginTrial();
  std::vector<ClassId> EndTrial();
  void Revisit(ClassId id, Time at);
  void RevisitWith(ClassId id, QueueId queue);
  void NoteAsked(ClassId id, RoomAsked asked);
  void ReopenDue(Time now);
  void DropEmpty();  // classes without jobs
  // True if SettleNever must still update `never` of the class.
  bool NeverChanged(const PendingClass& c) const {
    return c.blocked != nullptr && (c.blocked->wake == WakeOn::kChange) != c.never;
  }
  enum List : size_t { kReady, kShort, kHeldBack };
  static List ListOf(const PendingClass& c);
  // Its list has it under `before`; re-inserts it under its present first key.
  void Relist(ClassId id, const OrderKey* before);
  void Enlist(ClassId id, const PendingClass& c);
  void Unlist(const PendingClass& c, const OrderKey& key);

  // What has been recorded since BeginTrial.
  struct Trial {
    struct Before {
      std::unique_ptr<BlockedVerdict> blocked;
      bool never = false;
    };
    std::map<ClassId, Before> classes;                  // previous values of changed classes
    size_t blocked = 0, missed = 0, by_neighbours = 0;  // lengths of lists
    std::vector<ClassId> judged, never;
    std::vector<QueueId> by_queue;  // lists that grew, in order
    std::vector<ShapeId> by_room;
    std::vector<std::pair<Time, ClassId>> revisits;  // added
  };
  void Remember(ClassId id, const PendingClass& c);  // call before a change
  void ListForQueue(QueueId queue, ClassId id);
  void ListForShape(ShapeId shape, ClassId id);
  void ListRevisit(Time at, ClassId id);

  IdMap<ClassId, PendingClass> classes_;
  absl::flat_hash_map<Demand, ClassId> by_demand_;
  std::array<ByQueue, 3> lists_;  // indexed by List
  size_t ready_count_ = 0;
  // Lists of blocked classes may repeat, and contain classes that no longer exist or are not
  // blocked.
  std::vector<ClassId> blocked_;  // all
  absl::btree_map<QueueId, std::vector<ClassId>> blocked_by_queue_;
  absl::btree_map<ShapeId, std::vector<ClassId>> blocked_by_room_;
  std::vector<ClassId> blocked_by_neighbours_;  // or possibly
  absl::btree_set<std::pair<Time, ClassId>> revisits_;
  std::vector<ClassId> missed_;
  std::vector<ClassId> emptied_;  // may repeat, and contain classes that were refilled
  std::vector<ClassId> judged_;   // possibly NeverChanged
  std::vector<ClassId> never_;    // likewise: possibly `never`
  ClassId next_class_{1};         // 0 = no class
  std::unique_ptr<Trial> trial_;  // null: no trial
  size_t job_count_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_PENDING_INDEX_H_
