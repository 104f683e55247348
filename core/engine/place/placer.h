// Placer: finds and takes places for one job's tasks in the cycle's transaction. All actions use
// it, so the rules of a plan are in one place.
//
//   auto verdict = placer.Gates(job, needs);              // may the queue have it at all?
//   const auto mark = transaction.mark();
//   if (placer.PlaceAll(job, needs) < count) transaction.RollbackTo(mark);
//   else placer.Bind(job);                                // or transaction.NominatePlaced(job.id)
#ifndef BERTH_CORE_ENGINE_PLACE_PLACER_H_
#define BERTH_CORE_ENGINE_PLACE_PLACER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/search/verdict.h"
#include "core/topology/region.h"

namespace berth {

class Placer {
 public:
  explicit Placer(Cycle& cycle);

  // Why the queues do not allow the job's needs, wherever there is room: closed, maximum of running
  // jobs, limits, non-preemptible use beyond deserved, guarantees of other queues. nullopt:
  // allowed. For a nomination, what is being released counts as gone.
  std::optional<BlockedVerdict> Gates(const Job& job, const JobNeeds& needs,
                                      Use use = Use::kNow) const;

  // Places as much as it can, group by group, and stops at the first group that lacks room. Returns
  // how many tasks have a place; if not all of `needs` have, the caller rolls back. For a start
  // now, or when `window` begins (what ends before that is gone).
  int32_t PlaceAll(const Job& job, const JobNeeds& needs);
  int32_t PlaceAll(const Job& job, const JobNeeds& needs, const Window& window,
                   bool ignore_reservations = false);
  // Takes exactly these places. False at the first node without room; then the caller rolls back.
  bool PlaceOn(const Job& job, const std::vector<Placement>& places, const Window& window);

  // For needs of one task of a job without topology constraints: whether some node can hold it now.
  // Changes nothing.
  bool HasPlace(const Job& job, const JobNeeds& needs, bool ignore_reservations);
  // Whether that depends only on the fixed part of nodes, on amounts and on time.
  bool OnlyAmountsMatter(const Job& job, const JobNeeds& needs);

  // From now on, treats soft topology constraints with patience as hard ones.
  void Harden(bool harden) { harden_ = harden; }
  bool hardens() const { return harden_; }
  // From now on, places that job in this domain only.
  void Confine(JobId job, const TopologyTree& tree, DomainIndex domain) {
    confined_ = job;
    region_ = Region{}.With(tree, domain);
  }

  // Decides for the placed tasks: TasksBound, and a gang start if the job was Pending.
  void Bind(const Job& job);

  // If it starts now, it is assumed to end before its walltime (BackfillFit).
  bool Guesses(const Job& job) const;

  // Runs Gates, places and binds; otherwise returns the reason, with nothing changed. A gang is
  // placed whole; of other needs only the first task that fits.
  std::optional<BlockedVerdict> Serve(const Job& job);

 private:
  std::optional<BlockedVerdict> ServeGang(const Job& job, const JobNeeds& needs);
  std::optional<BlockedVerdict> ServeOne(const Job& job, const JobNeeds& needs);
  Seeker FirstOf(const Job& job, const JobNeeds& needs, bool ignore_reservations) const;
  int32_t PlaceTasks(Seeker seeker);
  int32_t PlaceGroups(const Job& job, const JobNeeds& needs, const Window& window,
                      bool ignore_reservations);
  bool PlaceEach(const Job& job, const std::vector<Placement>& places, const Window& window);
  int32_t PlaceInDomains(const Job& job, const JobNeeds& needs, const Window& window,
                         bool ignore_reservations);
  BlockedVerdict Shortage(const Job& job, const JobNeeds& needs, int32_t placed);
  void NoteBackoffs(const JobNeeds& needs, const Job& job, BlockedVerdict* verdict);
  std::optional<BlockedVerdict> ReservedInQueue(const Job& job, const JobNeeds& needs) const;
  // If only reservations of others, or only affinity, block the job, `verdict` becomes that reason.
  void Blame(const Job& job, const JobNeeds& needs, bool by_affinity, BlockedVerdict* verdict);
  bool FitsUnreserved(const Job& job, const JobNeeds& needs);
  void BlameReservation(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict);
  void BlameAffinity(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict);
  bool StartAsReserved(const Job& job, const JobNeeds& needs);
  bool StartElsewhere(const Job& job);
  bool JoinKeptPlaces(const Job& job);
  // How long it is assumed to run if it starts now (BackfillFit).
  Window WindowNow(const Job& job) const;

  Cycle& cycle_;
  const ClusterState& state_;
  Transaction& transaction_;
  // Growth continues in the same group task by task: no earlier task of the group is pending.
  TaskKey first_waiting_;
  bool harden_ = false;
  JobId confined_;  // 0: none
  Region region_;   // the confined job's region
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACE_PLACER_H_
