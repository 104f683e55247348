// ServiceOrder: which class of waiting jobs is served next.
//
// From the root down; among siblings the first difference wins, `job` being the one that would be
// served there:
//   1. below its fair share in all that the job asks for, or that another of its ready jobs asks
//      for; then at it; then over it in something
//   2. with the job, within deserved in all that it asks for
//   3. higher queue priority
//   4. smaller dominant share with the job: max over resources of
//      (allocated + job) / min(limit, max(deserved, fair share))
//   5. the same without the job
//   6. older queue
// In a leaf: job priority, deadline, users by dominant share (user_fairness drf), gangs below their
// minimum before growth, of growth who has grown least, older; or what configured job orders say,
// which come first. A queue with order fifo_strict offers nothing once its first gang is blocked,
// unless that can never fit.
//
// The choice is made anew after each decision. A decision changes what one leaf and its ancestors
// hold, so only those are placed anew among their siblings, in a heap: O(depth * log siblings).
// Shares are compared exactly.
//
//   root: {research, vision}     research: {llm, rl}
//   llm was served -> llm is placed anew in research, and research in root
#ifndef BERTH_CORE_ENGINE_SERVICE_ORDER_H_
#define BERTH_CORE_ENGINE_SERVICE_ORDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/engine/cycle.h"
#include "core/engine/fair_share.h"

namespace berth {

// For one action of one cycle; the state must only change through that cycle's transaction.
class ServiceOrder {
 public:
  enum class Offer : uint8_t {
    kReady,          // classes not known to be blocked
    kReadyAndShort,  // and gangs that are blocked for want of room: who is the first of these?
  };
  struct Head {
    ClassId id;
    JobId job;  // the first of the class
    QueueId queue;
    bool short_of_room = false;  // is blocked: only with kReadyAndShort
  };

  // With `around`, a queue that may be kept no more places offers none that is short of room, and
  // those that come after whoever is kept a place as BackfillParameters::order says. So these
  // others are tried when all kept places of the queue are those of now.
  ServiceOrder(Cycle& cycle, Offer offer, bool around = false);

  // As the state is now. The same head again until it was served, blocked or skipped. Whatever was
  // decided for the head since the last call is seen; tell Touch of anything else.
  std::optional<Head> Next();
  // The leaf, or what it or an ancestor holds, changed.
  void Touch(QueueId leaf) { Touch(EntryOf(leaf)); }
  // Leaves the class out from now on. Of a fifo_strict queue: all of the queue, if it is a gang.
  void Skip(const Head& head);

 private:
  // Where a queue stands among its siblings.
  struct Rank {
    int share = 0;  // 0: below its fair share, 1: at it, 2: over it
    bool beyond_deserved = false;
    int32_t priority = 0;
    Share with_job, without_job;
    QueueId queue;
    bool operator<(const Rank& other) const;
  };
  // A queue that offers something, or did, or has such queues below it. Does not move.
  struct Entry {
    Entry(const Queue& of, Entry* above, const Resources& entitlement)
        : queue(of), parent(above), entitled(entitlement) {}
    const Queue& queue;
    Entry* const parent;       // null: the root
    Resources entitled;        // what its use is measured by
    std::optional<Head> head;  // of a leaf
    Resources request;         // of the head
    // Of a leaf that is at or over its fair share with the head: what another of its ready classes
    // asks for, of which it is below. It keeps the leaf's turn before those that are at theirs.
    std::optional<Resources> other_request;
    bool touched = false;    // listed in touched_
    bool by_length = false;  // BackfillOrder::kShortestFirst holds
    Entry* first = nullptr;  // the leaf at or below it that goes first; null: nothing is offered
    // Among its siblings.
    size_t seat = kNoSeat;     // in the parent's heap
    Rank rank;                 // while it has a seat
    std::vector<Entry*> heap;  // of its children those that offer something, the first on top
  };
  static constexpr size_t kNoSeat = SIZE_MAX;
  static constexpr int kMaxLookedAt = 64;  // classes, for one below its fair share

  Entry& EntryOf(QueueId id);
  void Touch(Entry& leaf);
  void Place(Entry& leaf);
  static void Seat(std::vector<Entry*>& heap, Entry& child);
  static void Settle(std::vector<Entry*>& heap, Entry& child);
  std::optional<Head> LeafHead(const Entry& leaf) const;
  bool GoesAround(const Entry& leaf, const Head& head) const;
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
  const size_t kinds_;  // of resources that are known: others are asked for by nobody
  std::vector<JobCompare> orders_;
  absl::flat_hash_map<QueueId, std::unique_ptr<Entry>> entries_;  // looked up only
  Entry& root_;
  std::vector<Entry*> touched_;           // leaves, in no meaningful order
  absl::flat_hash_set<ClassId> skipped_;  // looked up only
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SERVICE_ORDER_H_
