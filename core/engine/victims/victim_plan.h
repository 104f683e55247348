// VictimPlan: the victims that make room for a pending job, as one whole plan or none. Used by
// reclaim, preempt and consolidate, which differ in the permitted victims and their order
// (VictimSource).
//
//   1. Count:  takes units in order until the counts grant the gang (FitCount); then, from the
//              last one taken backwards, drops every unit that the counts can do without.
//   2. Try:    removes the rest in the transaction, together with what is being released where
//              there would be room, and really places the gang.
//   3. Gallop: if it did not fit (topology, affinity, reservations), tries with all that is being
//              released, then with 1, 2, 4, ... more units, then halves back to the fewest that
//              suffice.
//   4. Trim:   units whose places the gang left free stay where they are, last taken first; plans
//              that are small enough are also tried without each remaining unit.
//   5. Compare: if several units go, a single other one that would do alone, or the largest of one
//              node, go instead if that costs less: fewer jobs are stopped for no more loss (of
//              kMaxCompared units; few_units.h).
//   6. Move:   a victim that fits elsewhere at once, or on what its own job gives up, gets that
//              place; of an elastic job at least its minimum. Where all must move, a job that
//              cannot is left out, and the plan is made again without it (kMaxReplans times). Units
//              that must move (VictimUnit::must_move) are placed with the gang, after all units of
//              the plan are gone; so others may go to make a place for them.
//   7. Pause:  a job that goes as a whole and has the mode PAUSE is frozen instead, if the gang has
//              places beside what it still holds then: all such jobs, or as many as possible, last
//              taken first (PauseSome, in victim_plan_release.cc). Who goes does not depend on it.
//   8. Decide: TasksNominated for the gang; TasksPaused or TasksReleased for each victim. The gang
//              is bound at once if there are no victims and nothing is being released.
//
//   n1: A A A A   n2: B B - -   gang of 4, candidates A1 A2 A3 A4 B1 B2 of one GPU
//   count: A1..A4 free n1 -> enough;  backwards: none can stay;  places n1;  moves A1 A2 to n2
//
// Bounds. Every victim is needed: without any one of them the gang would not fit (exact for gangs
// of one shape without topology or affinity; for others in plans of at most kMaxRetries victims and
// kMaxRetriedTasks tasks). No plan avoids all units from the last one taken onward, in the source's
// order. So if that order is by loss, the plan's loss is at most the number of its victims times
// that of the best plan.
//
// A plan is decided only if it takes no queue of the job further above its fair share than it is
// already (core/engine/shares/queue_bounds.h), starts the job earlier than its reservation by more
// than min_gain, and takes at most max_victims tasks. If it stops jobs that hold what was reclaimed
// for the queue, the new job must be allowed to claim it. Lives within one run of an action. Not
// thread-safe.
#ifndef BERTH_CORE_ENGINE_VICTIMS_VICTIM_PLAN_H_
#define BERTH_CORE_ENGINE_VICTIMS_VICTIM_PLAN_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "core/engine/place/fit_count.h"
#include "core/engine/place/placer.h"
#include "core/engine/shares/queue_bounds.h"
#include "core/engine/victims/victim_units.h"

namespace berth {

// What a plan is made for.
struct VictimPlanGoal {
  const Job& job;
  JobNeeds needs;
  ReleaseReason reason = ReleaseReason::kReclaimed;
  bool must_move = false;    // no victim without another place at once
  bool pauses = false;       // victims whose jobs ask for it are frozen, where that suffices
  bool only_pauses = false;  // likewise, and no victim is stopped
  Borrowing borrowing = Borrowing::kNothing;
  // The queue is entitled to the room: other queues do not reclaim it back (Task::claimed).
  bool claims = false;
  // If victims of the job's own queue hold claimed room, the claim passes to the job: at most this
  // much more than they give up may then be claimed.
  std::optional<Resources> claim_room = std::nullopt;
  // Why this victim may be evicted, for people: "queue b is above its fair share". `priority`: of
  // the evicted part.
  std::function<std::string(const Job& victim, int32_t priority)> why;
};

// The cost of a plan, for the victims of the highest priority first, and so on down. Less is
// better: no job is evicted, however little it loses, if lower priorities make room as well.
struct VictimCost {
  struct Of {
    int32_t priority = 0;
    int64_t loss = 0;   // VictimUnit::loss
    int64_t jobs = 0;   // that stop as a whole
    int64_t tasks = 0;  // that go
    auto operator<=>(const Of&) const = default;
  };
  std::vector<Of> by_priority;  // highest first
  auto operator<=>(const VictimCost&) const = default;
};

struct VictimOutcome;
// A source of units of the useful jobs, from the beginning.
using MakeVictims = std::function<std::unique_ptr<VictimSource>(UsefulJob useful)>;

class VictimPlan {
 public:
  static constexpr size_t kMaxRetries = 32;
  static constexpr int64_t kMaxRetriedTasks = 2048;
  static constexpr int kMaxCompared = 256;
  static constexpr size_t kMaxComparedTries = 8;
  static constexpr int kMaxReplans = 8;
  static constexpr int kMaxMoveReplans = 3;  // if all must move

  // Why nothing was found, for people.
  static constexpr char kTooLittleRoom[] = "the eligible victims do not free enough room";
  static constexpr char kNoPlaceForEach[] =
      "the eligible victims do not free a place for each task";
  static constexpr char kBeyondShare[] =
      "a queue would exceed its fair share, for which no job is evicted";

  // `only`: the domain in which this whole scope of the job must be placed.
  VictimPlan(Cycle& cycle, VictimPlanGoal goal, VictimSource& source,
             const WholeScope* scope = nullptr, std::optional<DomainIndex> only = std::nullopt);

  // For step 5: another source of the same victims, from the beginning. Without it, the next
  // victims are compared. Outlives the plan's search.
  void CompareWith(const MakeVictims& others) { others_ = others; }

  // Finds a plan if there is one, then decides it. The job must be pending, and must not fit now.
  // In two steps, so that plans can be compared. Find changes nothing; the state must be the same
  // when its result is decided.
  bool Find();
  bool DecideFound();
  // True if the plan found should wait for its victims' next checkpoint: they go on until then, so
  // only the start of the job is late. Notes in the outcome when to plan again.
  bool Waits(VictimOutcome* outcome) const;
  // Of the plan found. If victims only move, their priorities count as equal.
  VictimCost CostFound() const { return CostOf(*found_); }
  // The counts granted the gang, so it was really placed, successfully or not.
  bool tried() const { return tried_; }
  // All victims together would suffice, but queues of the job would exceed their shares
  // (FitCount::OnlySharesShort).
  bool short_of_share() const { return short_of_share_; }
  // Why nothing was found, for people.
  void DescribeFailure(VictimOutcome* outcome) const;

 private:
  using Moves = std::map<JobId, std::vector<Placement>>;
  struct Attempt {
    std::vector<Placement> places;
    std::vector<size_t> kept;     // units that must go: ascending indexes in units_
    Moves moves = {};             // for units that must move
    std::set<JobId> paused = {};  // whose units are frozen, and not stopped
  };
  using Indexes = std::vector<size_t>;  // in units_, ascending

  std::optional<Attempt> FindOnce();
  bool Bars(const char* why, bool for_lack_of_room = false);
  void TakeOthers(const Attempt& found);
  std::optional<Attempt> FewerFor(const Attempt& found);
  void TakeAllAgain();
  void LeaveOut(JobId job);
  bool LeftOut(const VictimUnit& unit);
  bool FitsSomewhere(ShapeId shape);
  Indexes Usable(size_t count) const;
  bool TakeUntilEnough();
  bool TakeMore(size_t count);
  Indexes DropUnneeded();
  std::optional<Attempt> Gallop();
  std::optional<Attempt> Try(const Indexes& units);
  void VanishAll(const Indexes& units, const std::set<JobId>& paused = {});
  Attempt Trimmed(const Indexes& units) const;
  void Retry(Attempt* attempt);
  bool MayStay(const Indexes& gone, size_t unit) const;
  bool AnyMoves(const Indexes& units) const;
  int64_t JobsIn(const Indexes& units) const;
  std::optional<Attempt> WithMoves(const Attempt& found);
  std::optional<Moves> PlaceMovers(const Indexes& units);
  VictimCost CostOf(const Attempt& attempt) const;
  bool EarlyEnough(const Attempt& attempt, Time from) const;
  bool AllMove(const Attempt& attempt);
  Resources ClaimsOf(const Attempt& attempt) const;
  bool KeepsClaims(const Attempt& attempt) const;
  bool Decide(const Attempt& attempt);
  bool BindNow();
  struct Going {
    std::vector<uint32_t> tasks;
    bool whole = false;
  };
  // victim_plan_release.cc
  std::vector<JobId> CanPause(const Attempt& attempt) const;
  std::vector<Placement> PlacesBeside(const Attempt& attempt, const std::set<JobId>& paused);
  void PauseSome(Attempt* attempt);
  bool AllPause(const Attempt& attempt) const;
  void PauseVictim(const Job& victim, const Going& going);
  bool Release(const Job& victim, const Going& going, QueueRoom* room);
  void Stop(const Job& victim, const Going& going, const std::vector<Placement>& moves,
            ReleaseReason reason, const std::string& why);
  std::vector<Placement> MovesOf(const Job& victim, const std::vector<uint32_t>& tasks, bool whole,
                                 QueueRoom* room);
  std::vector<Placement> PlacesElsewhere(const Job& job, const std::vector<uint32_t>& tasks,
                                         const std::vector<uint32_t>& gone);

  Cycle& cycle_;
  const ClusterState& state_;
  Transaction& transaction_;
  Placer placer_;
  const VictimPlanGoal goal_;
  VictimSource& source_;
  MakeVictims others_;
  const QueueBounds bounds_;  // before any victim goes
  FitCount count_;
  std::vector<VictimUnit> units_;                      // taken so far, in order
  std::vector<bool> counted_;                          // parallel: count_ counts it as gone
  absl::flat_hash_set<JobId> left_out_;                // looked up only: jobs that cannot move
  absl::flat_hash_map<ShapeId, bool> fits_somewhere_;  // likewise: a task fits now
  JobId could_not_move_;                               // must move, and made the last attempt fail
  JobId in_the_way_;                                   // a job that was left out for it
  int64_t tasks_ = 0;                                  // in units_
  bool tried_ = false;
  bool short_of_share_ = false;
  const char* barred_ = nullptr;
  bool for_lack_of_room_ = false;
  std::optional<Attempt> found_;
};

struct VictimOutcome {
  bool decided = false;
  // If not decided: when the age protection of a victim ends.
  Time protected_until = absl::InfiniteFuture();
  // If not decided: there is a plan, and until then its victims are expected to make a checkpoint.
  Time waits_until = absl::InfiniteFuture();
  // If not decided: some plan failed only because of a queue's fair share (queue_bounds.h).
  bool short_of_share = false;
  // If not decided: why the last plan, if any, failed (VictimPlan::DescribeFailure).
  const char* barred = nullptr;
  bool for_lack_of_room = false;  // and only more units would help
  bool some_may_go = false;       // there were victims
  JobId in_the_way = {};          // one that fits nowhere else
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_VICTIM_PLAN_H_
