// ServiceOrder: which class of pending jobs is served next.
//
// From the root down. Among siblings the first difference decides; `job` is the one that would be
// served there:
//   1. below its fair share in all that the job requests, or that another of its ready jobs
//      requests; then at it; then over it in something
//   2. with the job, within deserved in all that it requests
//   3. higher queue priority
//   4. smaller dominant share with the job: max over resources of
//      (allocated + job) / min(limit, max(deserved, fair share))
//   5. the same without the job
//   6. older queue
// In a leaf: job priority, deadline, users by dominant share (user_fairness drf), gangs below their
// minimum before growth, the least growth first, older. Configured job orders come before these. A
// queue with order fifo_strict offers nothing once its first gang is blocked, unless that gang can
// never fit.
//
// Each decision updates the choice. A decision changes what one leaf and its ancestors hold, so
// only those move among their siblings, in a heap: O(depth * log siblings). Shares are compared
// exactly.
//
//   root: {research, vision}     research: {llm, rl}
//   llm was served -> llm moves within research, and research within root
#ifndef BERTH_CORE_ENGINE_ORDER_SERVICE_ORDER_H_
#define BERTH_CORE_ENGINE_ORDER_SERVICE_ORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/engine/cycle.h"
#include "core/engine/shares/fair_share.h"

namespace berth {

// For one action of one cycle; only that cycle's transaction may change the state.
class ServiceOrder {
 public:
  enum class Offer : uint8_t {
    kReady,          // classes not known to be blocked
    kReadyAndShort,  // also gangs blocked for lack of room: which is the first?
  };
  struct Head {
    ClassId id;
    JobId job;  // the first of the class
    QueueId queue;
    bool short_of_room = false;  // is blocked: only with kReadyAndShort
  };

  // With `around`, a queue at its maximum of reservations offers no gang that is short of room. It
  // offers the jobs behind the reserved ones in BackfillParameters::order, so these are tried when
  // all reservations of the queue are up to date.
  ServiceOrder(Cycle& cycle, Offer offer, bool around = false);

  // For the current state. Returns the same head until it was served, blocked or skipped. Notices
  // all decisions for that head since the last call; call Touch for other changes.
  std::optional<Head> Next();
  // The leaf changed, or what it or an ancestor holds.
  void Touch(QueueId leaf) { Touch(EntryOf(leaf)); }
  // Leaves the class out from now on. In a fifo_strict queue a gang takes the whole queue with it.
  void Skip(const Head& head);

 private:
  // The rank of a queue among its siblings.
  struct Rank {
    int share = 0;  // 0: below its fair share, 1: at it, 2: over it
    bool beyond_deserved = false;
    int32_t priority = 0;
    Share with_job, without_job;
    QueueId queue;
    bool operator<(const Rank& other) const;
  };
  // A queue that has or had something to offer, or has such queues below it. Has a stable address.
  struct Entry {
    Entry(const Queue& of, Entry* above, const Resources& entitlement)
        : queue(of), parent(above), entitled(entitlement) {}
    const Queue& queue;
    Entry* const parent;       // null: the root
    Resources entitled;        // the denominator of its use
    std::optional<Head> head;  // for a leaf
    Resources request;         // of the head
    // For a leaf that is at or over its fair share with the head: the request of another of its
    // ready classes for which it is below. This keeps the leaf before those that are at their
    // share.
    std::optional<Resources> other_request;
    // With this request, in this version of the state (Transaction::version), the ranks of the leaf
    // and of its ancestors were computed. A later head that requests no more goes first as well.
    std::optional<Resources> ranked = {};
    uint64_t ranked_in = 0;
    bool touched = false;    // listed in touched_
    bool by_length = false;  // BackfillOrder::kShortestFirst applies
    Entry* first = nullptr;  // the next leaf at or below it; null: nothing is offered
    // Its position among its siblings.
    size_t seat = kNoSeat;     // in the parent's heap
    Rank rank;                 // while it has a seat
    std::vector<Entry*> heap;  // children that offer something, the first on top
  };
  static constexpr size_t kNoSeat = SIZE_MAX;
  static constexpr int kMaxLookedAt = 64;  // classes, to find one below its fair share

  Entry& EntryOf(QueueId id);
  void Touch(Entry& leaf);
  void Place(Entry& leaf);
  bool StaysFirst(const Entry& leaf) const;
  static void Seat(std::vector<Entry*>& heap, Entry& child);
  static void Settle(std::vector<Entry*>& heap, Entry& child);
  std::optional<Head> LeafHead(const Entry& leaf) const;
  bool GoesAround(const Entry& leaf, const Head& head) const;
  void PrefetchNext(const PendingIndex::Classes& classes,
                    PendingIndex::Classes::const_iterator from) const;
  std::optional<Head> BestOf(const Entry& leaf, const PendingIndex::ByQueue& list,
                             bool gangs_only) const;
  bool Before(const Entry& leaf, const Head& a, const Head& b) const;  // both of the leaf
  Share UserShare(const Entry& leaf, const std::string& user) const;
  Rank RankOf(const Entry& entry) const;
  int StandingOf(const Entry& entry, const Resources& request) const;
  std::optional<Resources> OtherRequest(const Entry& leaf) const;
  Resources RequestOf(ClassId id) const;

  Cycle& cycle_;
  const ClusterState& state_;
  const FairShares& shares_;
  const Offer offer_;
  const bool around_, shortest_around_;
  const size_t kinds_;  // known resources; no job requests others
  std::vector<JobCompare> orders_;
  absl::flat_hash_map<QueueId, std::unique_ptr<Entry>> entries_;  // looked up only
  Entry& root_;
  std::vector<Entry*> touched_;           // leaves, in arbitrary order
  absl::flat_hash_set<ClassId> skipped_;  // looked up only
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_ORDER_SERVICE_ORDER_H_
