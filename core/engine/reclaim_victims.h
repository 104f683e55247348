// Who owes what to a queue that is entitled to more than it holds: the units of other queues, in
// the order in which they may be taken.
//
// Reclaimer and victim are compared where their ancestors first differ: siblings, `own` and `side`.
// A unit may be taken if
//   1. side holds, of something that the job asks for and the unit gives, more than its fair share;
//      or more than it deserves, while own stays within what it deserves with the job;
//   2. afterwards side stands no worse than own does with the job: its dominant share of what it is
//      entitled to (fair_share.h), among what the job asks for, is at least as large. Not asked
//      where own stays within deserved: that is owed, however large the pieces;
//   3. no queue from the victim's up to side has reclaimable = false.
// What is being released is no longer held. Units taken before count as gone.
//
// So what was reclaimed cannot be reclaimed back while shares stay as they are: own then holds no
// more than its fair share (1 denies it), and what it deserves is part of that.
//
// Order: from the root down to the least entitled sibling, that with the largest dominant share of
// what is left to it; then lower queue priority; then younger. Inside a leaf as QueueVictims.
//
//   a: share 4, waits for 4     b: share 4, holds 6 in pieces of 2     c: share 2, holds 4 of 1
//   c 4/2 gives 1 (3/2), b 6/4 = 3/2 gives 2 (4/4), c gives 1 (2/2): 4 in all, and none is below 1
#ifndef BERTH_CORE_ENGINE_RECLAIM_VICTIMS_H_
#define BERTH_CORE_ENGINE_RECLAIM_VICTIMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/cycle.h"
#include "core/engine/fair_share.h"
#include "core/engine/victim_units.h"

namespace berth {

// The job's leaf queue may reclaim for it: with it, it stays within its fair share, and, if the job
// is not preemptible, within what it deserves, in all that the job asks for.
bool MayReclaim(const Queue& queue, const FairShares::OfQueue& share, const Resources& held,
                const Resources& request, bool preemptible);

// For one plan. O(queues) to make; O(depth * log siblings) for each unit.
class ReclaimVictims final : public VictimSource {
 public:
  ReclaimVictims(Cycle& cycle, UnitPool& pool, const Job& job, const Resources& request,
                 UsefulJob useful = nullptr);

  std::optional<VictimUnit> Next() override;
  bool CouldGive(const Job& job) const override;
  Time protected_until() const override;

 private:
  struct Standing {
    Resources held;
    Resources fair_share;
    Resources deserved;
    Resources bound;     // as deserved, INT64_MAX where the queue says nothing
    Resources entitled;  // max(deserved, fair share), within the limit
  };
  struct Entry {
    QueueId id;
    Entry* parent = nullptr;
    int32_t priority = 0;
    bool own = false;  // the job's queue, or above it
    Standing standing;
    std::vector<Entry*> heap;  // children that may still give; the first to give on top
    std::unique_ptr<QueueVictims> victims;  // of a leaf that may give
  };

  Entry* Build(const Queue& queue, Entry* parent);
  bool GivesLater(const Entry* a, const Entry* b) const;
  Entry* NextLeaf() const;
  // The two that the job's queue and the leaf are compared by.
  const Entry* SideOf(const Entry* leaf) const;
  const Entry* OwnBeside(const Entry* side) const;
  bool OwesFairShare(const Entry* side, const Resources& given) const;
  bool OwesDeserved(const Entry* side, const Resources& given) const;
  bool StandsNoWorse(const Entry* side, const Resources& given) const;
  bool Owes(const Entry* leaf) const;
  bool MayTake(const Entry* leaf, const VictimUnit& unit, const Resources& given) const;
  void Take(Entry* leaf, const Resources& given);
  void Drop(Entry* entry);
  Share ShareOf(const Resources& held, const Standing& standing) const;

  Cycle& cycle_;
  const ClusterState& state_;
  UnitPool& pool_;
  const FairShares& shares_;
  const Job& job_;
  const Resources request_;
  const UsefulJob useful_;
  absl::InlinedVector<size_t, 4> asked_;  // the resources of the request
  std::vector<QueueId> own_path_;         // the job's queue and those above it
  std::vector<std::unique_ptr<Entry>> entries_;
  absl::flat_hash_map<QueueId, Entry*> own_below_;     // of those above: the next one down
  absl::flat_hash_map<QueueId, const Entry*> leaves_;  // that may give; looked up only
  Entry* root_ = nullptr;
  absl::flat_hash_map<JobId, std::vector<uint32_t>> passed_over_;  // surplus tasks
  Time protected_until_ = absl::InfiniteFuture();  // by leaves that have nothing more to give
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_RECLAIM_VICTIMS_H_
