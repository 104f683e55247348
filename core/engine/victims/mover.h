// Makes room for a gang by moving other jobs: the total that is free suffices, but is fragmented.
// Preemptible jobs of any queue are stopped and started elsewhere, each at a place that is free at
// once, or that the job gives up itself; least loss first. No job ends up pending, so the gang's
// queue may even borrow for it, as allocate would allow if the room were contiguous.
//
// Moves do not alternate: each plan starts a gang and evicts none, and moved jobs hold as much as
// before. So fewer tasks are pending after each plan.
//
//   n1: A - - -   n2: B - - -   gang of one task of 4: moves A to n2 (or B to n1)
#ifndef BERTH_CORE_ENGINE_VICTIMS_MOVER_H_
#define BERTH_CORE_ENGINE_VICTIMS_MOVER_H_

#include <cstddef>
#include <memory>

#include "core/engine/victims/victim_plan.h"

namespace berth {

// For all plans of one action's run. No other action decides in the meantime.
class Mover {
 public:
  explicit Mover(Cycle& cycle);
  ~Mover();

  // Decides nothing unless the needs are a gang's and fit in the total that is free.
  VictimOutcome MakeRoom(const Job& job, const JobNeeds& needs);

  // The first `count` of `first`, then what else is on their nodes, which must move
  // (VictimUnit::must_move). For one plan.
  std::unique_ptr<VictimSource> MovesAfter(std::unique_ptr<VictimSource> first, size_t count,
                                           const Job& job, UsefulJob useful);

 private:
  class Victims;
  class Besides;
  class AfterOthers;

  Cycle& cycle_;
  std::unique_ptr<Victims> victims_;  // created on first use
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_VICTIMS_MOVER_H_
