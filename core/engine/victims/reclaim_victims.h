// Which units of other queues are owed to a queue that is entitled to more than it holds, in the
// order in which they may be taken.
//
// Reclaimer and victim are compared where their ancestors first differ: siblings, `own` and `side`.
// A unit may be taken if it gives something that the job's queue claims (queue_claim.h), of which
//   1. side holds more than its fair share; or more than it deserves, while own, with the job,
//      stays within everything that own's `deserved` names, including this resource;
// and nothing protects the unit:
//   2. side's `deserved` does not name it, the unit has something that is named there, and side
//      holds no more than it deserves of anything named: CPU and memory come along with deserved
//      GPUs, and no other queue claims them;
//   3. side's `deserved` names it but was scaled down, because siblings deserve more than there is:
//      side holds no more than it was promised, and without the unit would hold less than its part;
//   4. the unit was reclaimed for its own queue, and that claim is valid (StandingClaims);
//   5. a queue from the victim's up to side has reclaimable = false.
// What is being released no longer counts as held. Units taken before count as gone.
//
// A unit is taken whole, even if side then holds less than its fair share. Otherwise one large
// borrower could keep others from their share until it ends by itself. What was reclaimed cannot be
// reclaimed back while shares stay the same (4). docs/developers/engine.md explains why reclaiming
// ends.
//
// Order: from the root down to the least entitled sibling, which has the largest dominant share
// relative to its entitlement; then lower queue priority; then younger. Inside a leaf like
// QueueVictims.
//
//   a: share 4, waits for 4     b: share 4, holds 6 in pieces of 2     c: share 2, holds 4 of 1
//   c 4/2 gives 1 (3/2), b 6/4 = 3/2 gives 2 (4/4), c gives 1 (2/2): 4 in all, and none is below 1
#ifndef BERTH_CORE_ENGINE_VICTIMS_RECLAIM_VICTIMS_H_
#define BERTH_CORE_ENGINE_VICTIMS_RECLAIM_VICTIMS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/engine/cycle.h"
#include "core/engine/shares/fair_share.h"
#include "core/engine/shares/queue_claim.h"
#include "core/engine/victims/victim_units.h"

namespace berth {

// Some queue owes the job's queue something of what it claims, and has jobs that may give it: if
// not, ReclaimVictims hands out nothing. O(siblings of the job's queue and of its ancestors).
bool AnyOwes(Cycle& cycle, const Job& job, const Resources& request, KindSet claimed);

// For one plan. O(queues) to construct; O(depth * log siblings) for each unit.
class ReclaimVictims final : public VictimSource {
 public:
  // `claimed`: by the job's queue, of what the job requests. `spared` outlives this object. If
  // empty, it receives why the first unit that could have helped was spared, for people.
  ReclaimVictims(Cycle& cycle, UnitPool& pool, const Job& job, const Resources& request,
                 KindSet claimed, std::string* spared, UsefulJob useful = nullptr);

  std::optional<VictimUnit> Next() override;
  bool CouldGive(const Job& job) const override;
  Time protected_until() const override;

 private:
  struct Standing {
    Resources held;
    Resources entitled;  // max(deserved, fair share), within the limit
  };
  struct Entry {
    Entry(const Queue& of, const FairShares::OfQueue& shares) : queue(of), share(shares) {}
    const Queue& queue;
    const FairShares::OfQueue& share;
    Entry* parent = nullptr;
    bool own = false;  // the job's queue, or an ancestor
    Standing standing;
    std::vector<Entry*> heap;               // children that may still give; the next to give on top
    std::unique_ptr<QueueVictims> victims;  // of a leaf that may give
  };

  Entry* Build(const Queue& queue, Entry* parent);
  bool GivesLater(const Entry* a, const Entry* b) const;
  Entry* NextLeaf() const;
  // The two queues by which the job's queue and the leaf are compared.
  const Entry* SideOf(const Entry* leaf) const;
  const Entry* OwnBeside(const Entry* side) const;
  KindSet OwedBy(const Entry* side) const;
  void Spare(absl::string_view queue, absl::string_view why);
  bool Protects(const Entry* side, size_t kind, const Resources& given) const;
  bool MayTake(const Entry* leaf, const VictimUnit& unit, const Resources& given);
  void Take(Entry* leaf, const Resources& given);
  void Drop(Entry* entry);
  Share ShareOf(const Resources& held, const Standing& standing) const;

  Cycle& cycle_;
  const ClusterState& state_;
  UnitPool& pool_;
  const FairShares& shares_;
  const Job& job_;
  const Resources request_;
  const KindSet claimed_;
  const UsefulJob useful_;
  StandingClaims claims_;
  absl::InlinedVector<size_t, 4> asked_;  // the resources of the request
  std::vector<QueueId> own_path_;         // the job's queue and its ancestors
  std::vector<std::unique_ptr<Entry>> entries_;
  absl::flat_hash_map<QueueId, Entry*> own_below_;     // of the ancestors: the next one down
  absl::flat_hash_map<QueueId, const Entry*> leaves_;  // that may give; looked up only
  Entry* root_ = nullptr;
  absl::flat_hash_map<JobId, std::vector<uint32_t>> passed_over_;  // surplus tasks
  std::string* const spared_;
  Time protected_until_ = absl::InfiniteFuture();  // over leaves that are exhausted
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_RECLAIM_VICTIMS_H_
