// Room for a gang by moving others: what is free suffices in sum, but lies in pieces. Preemptible
// jobs of any queue are stopped and started elsewhere, each at a place that is free at once, or
// that its own job gives up; least loss first. Nobody loses its job for it, so the gang may be one
// that its queue borrows for, as allocate would let it in one piece.
//
// It does not take turns with anybody: each plan starts a gang and stops none, and moved jobs hold
// as much as before. So fewer tasks wait after each.
//
//   n1: A - - -   n2: B - - -   gang of one task of 4: moves A to n2 (or B to n1)
#ifndef BERTH_CORE_ENGINE_MOVER_H_
#define BERTH_CORE_ENGINE_MOVER_H_

#include <cstddef>
#include <memory>

#include "core/engine/victim_plan.h"

namespace berth {

// For all plans of one action's run, which is the only one to decide meanwhile.
class Mover {
 public:
  explicit Mover(Cycle& cycle);
  ~Mover();

  // Nothing is decided unless the needs are a gang's, and fit in what is free in sum.
  VictimOutcome MakeRoom(const Job& job, const JobNeeds& needs);

  // The first `count` of `first`, and then what else is on their nodes, which must move
  // (VictimUnit::must_move). For one plan.
  std::unique_ptr<VictimSource> MovesAfter(std::unique_ptr<VictimSource> first, size_t count,
                                           const Job& job, UsefulJob useful);

 private:
  class Victims;
  class Besides;
  class AfterOthers;

  Cycle& cycle_;
  std::unique_ptr<Victims> victims_;  // null: not yet asked for
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_MOVER_H_
