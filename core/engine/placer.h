// Placer: finds and takes places for one job's tasks in the cycle's transaction. All actions place
// through it, so that what a plan may do is said once.
//
//   auto verdict = placer.Gates(job, needs);              // may the queue have it at all?
//   const auto mark = transaction.mark();
//   if (placer.PlaceAll(job, needs) < count) transaction.RollbackTo(mark);
//   else placer.Bind(job);                                // or transaction.NominatePlaced(job.id)
#ifndef BERTH_CORE_ENGINE_PLACER_H_
#define BERTH_CORE_ENGINE_PLACER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "core/engine/cycle.h"
#include "core/engine/verdict.h"
#include "core/topology/region.h"

namespace berth {

class Placer {
 public:
  explicit Placer(Cycle& cycle);

  // Why the queues do not let the job have what it needs, wherever room is: closed, as many running
  // jobs as they may, limits, non-preemptible use beyond deserved, guarantees of other queues.
  // nullopt: they do. For a nomination, what is being released counts as gone.
  std::optional<BlockedVerdict> Gates(const Job& job, const JobNeeds& needs,
                                      Use use = Use::kNow) const;

  // Places what it can, group by group, and stops at the first group that lacks room. Returns how
  // many tasks have a place: all of `needs`, or the caller rolls back. For a start now, and for one
  // when `window` begins (what has gone by then has vanished).
  int32_t PlaceAll(const Job& job, const JobNeeds& needs);
  int32_t PlaceAll(const Job& job, const JobNeeds& needs, const Window& window,
                   bool heedless = false);
  // Takes places on these very nodes; false at the first that has no room, and the caller rolls
  // back.
  bool PlaceOn(const Job& job, const std::vector<Placement>& places, const Window& window);

  // From now on, soft topology constraints with patience are as hard ones.
  void Insist(bool insist) { insist_ = insist; }
  bool insists() const { return insist_; }
  // From now on, that job is placed in this domain alone.
  void Confine(JobId job, const TopologyTree& tree, DomainIndex domain) {
    confined_ = job;
    region_ = Region{}.With(tree, domain);
  }

  // Decides for what is placed: TasksBound, a gang start if the job was Pending.
  void Bind(const Job& job);

  // If it starts now, it is taken to be gone before its walltime is over (BackfillFit).
  bool Guesses(const Job& job) const;

  // Gates, places and binds; else says why not, with nothing changed. A gang is taken whole; of
  // other needs the first task that fits.
  std::optional<BlockedVerdict> Serve(const Job& job);

 private:
  std::optional<BlockedVerdict> ServeGang(const Job& job, const JobNeeds& needs);
  std::optional<BlockedVerdict> ServeOne(const Job& job, const JobNeeds& needs);
  int32_t PlaceTasks(Seeker seeker);
  int32_t PlaceGroups(const Job& job, const JobNeeds& needs, const Window& window, bool heedless);
  bool PlaceEach(const Job& job, const std::vector<Placement>& places, const Window& window);
  int32_t PlaceInDomains(const Job& job, const JobNeeds& needs, const Window& window,
                         bool heedless);
  BlockedVerdict Shortage(const Job& job, const JobNeeds& needs, int32_t placed);
  void NoteBackoffs(const JobNeeds& needs, const Job& job, BlockedVerdict* verdict);
  std::optional<BlockedVerdict> ReservedInQueue(const Job& job, const JobNeeds& needs) const;
  // It would fit if nothing were kept for others: `verdict` says so instead.
  // Says so if it is for what is kept for others, or for affinity alone, that it does not fit.
  void Blame(const Job& job, const JobNeeds& needs, bool by_affinity, BlockedVerdict* verdict);
  void BlameReservation(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict);
  void BlameAffinity(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict);
  bool StartAsReserved(const Job& job, const JobNeeds& needs);
  // How long it is taken to be there if it starts now (BackfillFit).
  Window WindowNow(const Job& job) const;

  Cycle& cycle_;
  const ClusterState& state_;
  Transaction& transaction_;
  // Growth comes back to the same group task by task: none before this one, in its group, waits.
  TaskKey first_waiting_;
  bool insist_ = false;
  JobId confined_;  // 0: none is
  Region region_;   // its
};

// It lacks room, and nothing else; or room is kept for others.
bool LacksRoom(const BlockedVerdict& verdict);

// It lacks what others give back when they end: room, the limit of a queue, or beside guarantees.
bool WaitsForEnds(const BlockedVerdict& verdict);

// How many tasks these needs are.
int32_t TasksIn(const JobNeeds& needs);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_PLACER_H_
