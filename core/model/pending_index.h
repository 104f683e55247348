// PendingIndex: what waits, as classes of jobs that ask for the same. If the first job of a class
// does not fit, none of the class does; a class found blocked stays aside until something happened
// that could help. So a cycle costs O(classes that are not known to be blocked + decisions), and a
// million equal blocked jobs cost nothing.
//
//   needs of a job (NeedsOf) --same queue, gang, shapes and counts--> PendingClass {jobs by
//   priority, deadline, rank, age}
//   ready():          classes to be tried, by queue, ordered by the key of their first job
//   short_of_room():  blocked classes, likewise, whose verdict waits for room
//   held_back():      blocked for any other reason
//
// Blocked classes return to ready() when something happens that could help them (WakeOn).
//
// Kept by StateEditor: it lags behind edits until StateEditor::Sync(). No thread safety.
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

// How many more tasks a group is to be given now.
struct GroupNeed {
  uint32_t group = 0;
  int32_t count = 0;
  bool operator==(const GroupNeed&) const = default;
};

// What a job asks for now. With `gang`, all of it at once or nothing: what is missing to its
// minimum. Without, any one of it: of the first group that fits one task, or what is missing to one
// partition (growth, or a replacement above the minimum).
struct JobNeeds {
  bool gang = false;
  // Empty = nothing to place. In group order; without `gang` by PriorityOf first.
  absl::InlinedVector<GroupNeed, 2> groups;
  bool empty() const { return groups.empty(); }
};

// Pure, from the job's status and tallies. Empty unless the job may be given places: Pending,
// Binding or Running, and neither suspended nor cancelled. A group whose depends_on is not met asks
// for nothing. A job that is Pending asks only once all members that its minimum needs wait (none
// of them is still being stopped).
JobNeeds NeedsOf(const Job& job);

// The ways in which what is missing to the minimum may be divided over the groups: NeedsOf first,
// then those with less of the first groups and more of later ones. Several only where the job's
// minimum asks for more than the groups' minimums do, and some groups have more tasks that wait:
// "any 3 of a's 2 and b's 4" is a:2 b:1, a:1 b:2, b:3. At most kMostDivisions of them; where there
// are more, these are spread evenly over all.
inline constexpr size_t kMostDivisions = 64;
std::vector<JobNeeds> DivisionsOf(const Job& job);
// At most kFewDivisions of these, for questions that cost much: whom to stop for it, and when it
// could start.
inline constexpr size_t kFewDivisions = 4;
std::vector<JobNeeds> FewDivisionsOf(const Job& job);

// Tasks for which others may be stopped in turn: all of these needs are of such groups.
bool Preemptible(const Job& job, const JobNeeds& needs);
// The job's for a gang; else of the groups the greatest.
int32_t PriorityOf(const Job& job, const JobNeeds& needs);

// The same of a job that would be submitted so.
std::vector<JobNeeds> FirstDivisionsOf(const JobSpec& spec);

// The group's depends_on is met.
bool GroupOpen(const Job& job, uint32_t group);

// Since when a running job has had fewer members than its minimums ask for, because tasks wait or
// are being stopped; InfiniteFuture if it has enough. Groups that have not begun are not counted.
Time ShortSince(const Job& job);

struct DemandItem {
  ShapeId shape;
  int32_t count = 0;
  int32_t partition_size = 0;
  Strategy strategy = Strategy::kDefault;
  int32_t communication = 0;  // where topology counts
  bool preemptible = false;
  std::optional<int32_t> priority = {};  // of its group, where it says one
  bool operator==(const DemandItem&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const DemandItem& v) {
    return H::combine(std::move(h), v.shape, v.count, v.partition_size, v.strategy, v.communication,
                      v.preemptible, v.priority);
  }
};

// All that decides whether and where a job can be placed, beside its turn.
struct Demand {
  QueueId queue;
  bool gang = false;
  bool preempts = true;
  int32_t surplus = 0;  // of growth: members that it has beyond its groups' minimums
  JobId only;  // 0, or the one job of the class: where it fits depends on its own present tasks
  Duration walltime = absl::InfiniteDuration();
  int32_t expected_s = 0;                    // RunPrediction: what backfilling may go by
  std::string user;                          // where the queue is fair between users
  absl::InlinedVector<DemandItem, 1> items;  // in the order of the needs
  // Empty, or the job's constraint, and each item's group's and its partitions'.
  std::vector<TopologyConstraint> topology;
  std::vector<AffinityTerm> affinity;
  std::vector<LabelPair> labels;  // that are followed (AffinityIndex)
  bool operator==(const Demand&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Demand& v) {
    return H::combine(std::move(h), v.queue, v.gang, v.preempts, v.surplus, v.only, v.walltime,
                      v.expected_s, v.user, v.items, v.topology, v.affinity, v.labels);
  }
};
Demand DemandOf(const Queue& queue, const Job& job, const JobNeeds& needs,
                const AffinityIndex& affinity);

// What must happen before a blocked class is worth another try.
enum class WakeOn : uint8_t {
  kChange,  // nodes or queues themselves change; also ends every other wait
  kQueue,   // something of the queue `queue` of the verdict, or below it, ends
  kRoom,    // a node has more free, and one task of the class fits there
};

// An action that may make room for a class was asked for it, and decided nothing.
struct RoomAsked {
  std::string action;  // "reclaim"
  std::string barred;  // why, for people: "no queue holds more than its fair share"
  bool operator==(const RoomAsked&) const = default;
};

// Why a class waits. Opaque to the model but for `wake` and `queue`: written and read by the engine
// (WaitReason, core/engine/plan.h).
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
  int32_t backing_off = 0;  // nodes that could hold a task of it, but back off; the first of them
  NodeId backs_off;         // does so until then
  Time backs_off_until = absl::InfinitePast();
  Time found = absl::InfinitePast();  // when (StateEditor::Block sets it)
  // Worth another try then, though nothing has happened (StateEditor::Revisit).
  Time revisit = absl::InfiniteFuture();
  std::vector<RoomAsked> asked;  // since it was found; in the order of actions
};

struct PendingClass {
  Demand demand;
  absl::btree_set<OrderKey> jobs;
  std::unique_ptr<BlockedVerdict> blocked;  // null while it is in ready()
  // By the last verdict that SettleNever has seen nothing but other nodes or domains can help. It
  // stays until then, also while the class is looked at again: shares do not follow each look.
  bool never = false;
};

// Where a class stands in its queue: as its first job does, but of equal priority and deadline
// gangs go before growth, and of growth first who has grown least, so that it goes round; where the
// queue is fair between users, each user's classes stand together.
struct ClassKey {
  int32_t priority = 0;
  Time deadline = absl::InfiniteFuture();
  absl::string_view user;  // Demand::user: of the class
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
  // blocked otherwise. No entry is empty. Change with every Sync, Block and reopening: take begin()
  // anew after each.
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
  // Classes that Block was told of since the last StateEditor::ForgetMissed, in that order: those
  // for whose sake others may have to go. May repeat, and hold classes that are no longer there or
  // blocked.
  const std::vector<ClassId>& missed() const { return missed_; }
  // When a blocked class is to be tried again at the latest, earliest first. May hold times of
  // classes that are no longer blocked.
  const absl::btree_set<std::pair<Time, ClassId>>& revisits() const { return revisits_; }
  size_t job_count() const { return job_count_; }

 private:
  friend class StateEditor;

  // `fact`: not a trial, nor its undoing.
  ClassId Add(const Demand& demand, OrderKey key, bool fact);
  // The same jobs and demand as a class that has just come, of which nothing is known.
  ClassId Renew(ClassId id);
  // A job of the class that was only taken out for a while.
  void Return(ClassId id, OrderKey key);
  void Remove(ClassId id, OrderKey key);
  void Block(ClassId id, BlockedVerdict verdict);
  void ReopenAll();
  void ReopenQueue(QueueId id);  // blocked by this very queue
  void ReopenShape(ShapeId id);  // blocked for want of room for this shape
  void ReopenForNeighbours();    // whose affinity, or labels, may have barred them
  bool in_trial() const { return trial_ != nullptr; }
  void Reopen(std::vector<ClassId>& list);
  void Reopen(ClassId id);
  // Between these two everything that is found out about classes is written down, and then taken
  // back, to the last list: so what is looked at next, and in which order, is as if the trial had
  // never been. Facts stay as they are meanwhile. Returns the classes whose `never` it took back.
  void BeginTrial();
  std::vector<ClassId> EndTrial();
  void Revisit(ClassId id, Time at);
  void RevisitWith(ClassId id, QueueId queue);
  void TellAsked(ClassId id, RoomAsked asked);
  void ReopenDue(Time now);
  void DropEmpty();  // classes without jobs
  // The blocked class is to be called so, or not: SettleNever has not done it yet.
  bool NeverDiffers(const PendingClass& c) const {
    return c.blocked != nullptr && (c.blocked->wake == WakeOn::kChange) != c.never;
  }
  enum List : size_t { kReady, kShort, kHeldBack };
  static List ListOf(const PendingClass& c);
  // Its list holds it by `before`; make that hold its present first key.
  void Relist(ClassId id, const OrderKey* before);
  void Enlist(ClassId id, const PendingClass& c);
  void Unlist(const PendingClass& c, const OrderKey& key);

  // What BeginTrial and the changes since it wrote down.
  struct Trial {
    struct Before {
      std::unique_ptr<BlockedVerdict> blocked;
      bool never = false;
    };
    std::map<ClassId, Before> classes;                  // those that changed, as they were
    size_t blocked = 0, missed = 0, by_neighbours = 0;  // lengths of lists
    std::vector<ClassId> judged, never;
    std::vector<QueueId> by_queue;  // lists to which one was added, in that order
    std::vector<ShapeId> by_room;
    std::vector<std::pair<Time, ClassId>> revisits;  // added
  };
  void Remember(ClassId id, const PendingClass& c);  // before it changes
  void ListForQueue(QueueId queue, ClassId id);
  void ListForShape(ShapeId shape, ClassId id);
  void ListRevisit(Time at, ClassId id);

  IdMap<ClassId, PendingClass> classes_;
  absl::flat_hash_map<Demand, ClassId> by_demand_;
  std::array<ByQueue, 3> lists_;  // by List
  size_t ready_count_ = 0;
  // Lists of blocked classes may repeat, and hold classes that are no longer there or blocked.
  std::vector<ClassId> blocked_;  // all
  absl::btree_map<QueueId, std::vector<ClassId>> blocked_by_queue_;
  absl::btree_map<ShapeId, std::vector<ClassId>> blocked_by_room_;
  std::vector<ClassId> blocked_by_neighbours_;  // or maybe
  absl::btree_set<std::pair<Time, ClassId>> revisits_;
  std::vector<ClassId> missed_;
  std::vector<ClassId> emptied_;  // may repeat, and hold classes filled again since
  std::vector<ClassId> judged_;   // NeverDiffers, maybe
  std::vector<ClassId> never_;    // likewise: `never`, maybe
  ClassId next_class_{1};         // 0 = no class
  std::unique_ptr<Trial> trial_;  // null: there is none
  size_t job_count_ = 0;
};

}  // namespace berth

#endif  // BERTH_CORE_MODEL_PENDING_INDEX_H_
