// Queues as the scheduler stores them.
#ifndef BERTH_CORE_MODEL_QUEUE_H_
#define BERTH_CORE_MODEL_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/base/fields.h"
#include "core/model/ids.h"
#include "core/model/job.h"
#include "core/model/resources.h"

namespace berth {

inline constexpr int32_t kMaxQueueWeight = 65'535;
inline constexpr int64_t kUsageScale = 1024;  // Queue::usage is in 1/1024 of the unit

enum class QueueOrder : uint8_t {
  kFifoSkip,    // a job that does not fit lets later ones go first
  kFifoStrict,  // it does not, within its queue
};
enum class UserFairness : uint8_t { kNone, kDrf };

// Keeps a job's sum over all its tasks in int64 when defaults fill in unset values.
inline constexpr int64_t kMaxDefaultAmount = int64_t{1} << 46;

// Defaults for what a job leaves unset; applied at submission. Unset: inherited from the parent
// queue.
struct QueueDefaults {
  int64_t cpu_millis = 0;                        // of each task; 0 = unset
  int64_t memory_bytes = 0;                      // likewise
  Duration walltime = absl::InfiniteDuration();  // infinite = unset
  bool operator==(const QueueDefaults&) const = default;
};

struct QueueSpec {
  std::string name;
  QueueId parent = kRootQueue;
  // Amounts of limit, deserved and guarantee are sorted by name, with the same units.
  std::vector<NamedAmount> guarantee;  // absent = 0
  std::vector<NamedAmount> deserved;   // absent = 0, and no limit for non-preemptible jobs
  std::vector<NamedAmount>
      limit;           // sorted by name; "cpu" in milli-cores, "memory" in bytes; absent = no cap
  int32_t weight = 1;  // 0..65535, of the surplus; 0 = none of it
  int32_t priority = 0;
  bool reclaimable = true;  // what it borrowed may be reclaimed
  // Evictions for others take only surplus tasks of jobs in it and below it, never whole gangs.
  bool surplus_only = false;
  // Jobs of equal priority that can be paused take turns of this length (core/actions/turns.h).
  Duration slice = absl::ZeroDuration();  // 0 = no turns
  QueueOrder order = QueueOrder::kFifoSkip;
  UserFairness user_fairness = UserFairness::kNone;
  Strategy strategy = Strategy::kDefault;
  Strategy device_strategy = Strategy::kDefault;  // never kColocate
  int32_t max_jobs = 0;                           // that have not ended; 0 = no limit
  int32_t max_running_jobs = 0;                   // that hold resources; 0 = no limit
  int32_t max_tasks = 0;                          // of jobs that have not ended; 0 = no limit
  QueueDefaults defaults;
  std::map<std::string, std::string> labels;
  bool operator==(const QueueSpec&) const = default;
};

// Sums over the jobs of a queue and of all queues below it. In a queue, an Amount is a sum of
// resources; in an edit, how many times the edit adds its request (StateEditor::ChangeQueues).
//
// A new sum is a field and a line of ForEach: StateEditor then adds it up to the root,
// CheckConsistency compares it by name, and Fingerprint includes it.
template <class Amount>
struct QueueFigures {
  Amount allocated{};       // of tasks that occupy or are nominated
  Amount nonpreemptible{};  // likewise, of non-preemptible jobs
  Amount nominated{};       // part of allocated: of tasks that are nominated
  // Parts of allocated and nonpreemptible: of tasks that are being released without a place to move
  // to.
  Amount leaving{};
  Amount nonpreemptible_leaving{};
  Amount claimed{};          // part of allocated: of tasks that hold what was reclaimed for them
  Amount pending{};          // of pending tasks without nomination, in jobs that have not ended
  Amount wanted{};           // part of pending: of jobs that may be placed some time (Job::wanting)
  int64_t jobs = 0;          // including ended ones, until deleted
  int64_t active_jobs = 0;   // not ended
  int64_t active_tasks = 0;  // of those jobs, in any state
  int64_t running_jobs = 0;  // hold resources
  int64_t held_jobs = 0;     // Held or Suspended
  int64_t leaving_jobs = 0;  // hold nothing but what is leaving

  // Visits (name, the figure in each of `of`).
  template <class Visit, class... Figures>
  static void ForEach(Visit&& visit, Figures&... of);
};
using QueueSums = QueueFigures<Resources>;

template <class Amount>
template <class Visit, class... Figures>
void QueueFigures<Amount>::ForEach(Visit&& visit, Figures&... of) {
  static_assert(kFields<QueueFigures> == 14, "visit the new one");
  visit("allocated", of.allocated...);
  visit("nonpreemptible", of.nonpreemptible...);
  visit("nominated", of.nominated...);
  visit("leaving", of.leaving...);
  visit("nonpreemptible_leaving", of.nonpreemptible_leaving...);
  visit("claimed", of.claimed...);
  visit("pending", of.pending...);
  visit("wanted", of.wanted...);
  visit("jobs", of.jobs...);
  visit("active_jobs", of.active_jobs...);
  visit("active_tasks", of.active_tasks...);
  visit("running_jobs", of.running_jobs...);
  visit("held_jobs", of.held_jobs...);
  visit("leaving_jobs", of.leaving_jobs...);
}

struct Queue : QueueSums {
  QueueId id;
  QueueSpec spec;
  bool open = true;
  uint64_t revision = 0;
  // A fact, updated by UsageCharged: past allocation, in which the weight of a moment halves every
  // fair_share.half_life. By resource name, in 1/1024 of its unit; sorted; no zeros.
  std::vector<NamedAmount> usage;
  // Facts about its own jobs (core/model/line.h): the work of all that were ever submitted, and the
  // longest recent line.
  int64_t line = 0;
  int64_t longest_line = 0;
  // Derived, besides the sums.
  Resources limit;           // INT64_MAX where there is none
  Resources deserved;        // 0 where there is none
  Resources deserved_bound;  // INT64_MAX where there is none: for non-preemptible jobs
  Resources guarantee;       // 0 where there is none
  Resources kept;  // for queues below that do not use all of their guarantee: sum of KeptFor
  int64_t line_waits = 0;                    // part of line: of its own Pending jobs
  std::vector<QueueId> children;             // by id
  absl::btree_set<OrderKey> occupying_jobs;  // own jobs that hold resources (HolderKeyOf)
  absl::btree_set<OrderKey> graded_jobs;     // the HasGroupPriorities ones among these
  absl::btree_set<OrderKey> giving_jobs;     // the AnyPreemptible ones among these
  // For its own jobs, by user; kept while user_fairness needs it. No entry is zero.
  std::map<std::string, Resources> user_allocated;
  bool guarantees = false;     // some guarantee is not 0
  bool line_moved = false;     // listed in ClusterState::moved_lines_
  bool share_changed = false;  // listed in ClusterState::changed_queues_
};

// Its allocation after the release of what is being released.
inline Resources HeldAfterRelease(const Queue& queue) { return queue.allocated - queue.leaving; }

// What is set aside for this queue and those below it, and unavailable to others: the unused part
// of its own guarantee, or of theirs where that is more.
inline Resources KeptFor(const Queue& queue, const Resources& held, Resources kept_below) {
  for (size_t i = 0; queue.guarantees && i < kMaxResourceKinds; ++i) {
    kept_below.amount[i] =
        std::max(kept_below.amount[i], queue.guarantee.amount[i] - held.amount[i]);
  }
  return kept_below;
}
inline Resources KeptFor(const Queue& queue) { return KeptFor(queue, queue.allocated, queue.kept); }

}  // namespace berth

#endif  // BERTH_CORE_MODEL_QUEUE_H_
