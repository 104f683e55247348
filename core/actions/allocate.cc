// allocate: gives waiting jobs free places.
//
// Serves the first class of ServiceOrder, again and again. If its first job does not fit, none of
// the class does, and the whole class is set aside with the reason. A gang is placed whole or not
// at all; jobs that have their minimum then take one more task at a time.
//
//   A{j1 j4} B{j2} C{j3}     j1 fits -> A{j4} moves behind;  j2 does not -> B blocked;  j3 ...
//
// Where backfill is configured, allocate stops at the first gang for which there is no room, found
// now or in an earlier cycle, and at one that is found to be over a limit: who may go around these
// is for backfill to say.
//
// Cost: decisions + classes not known to be blocked, whatever the number of jobs that wait.
#include <optional>
#include <utility>

#include "core/engine/placer.h"
#include "core/engine/reserve.h"
#include "core/engine/service_order.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

class AllocateAction final : public Action {
 public:
  absl::string_view name() const override { return "allocate"; }
  void Run(Cycle& cycle) const override;
};

// Who is next, as long as no gang that is known to lack room would go first.
class NextToAllocate {
 public:
  NextToAllocate(Cycle& cycle, bool in_order) : ready_(cycle, ServiceOrder::Offer::kReady) {
    const bool any_short = !cycle.state().pending().short_of_room().empty();
    if (in_order && any_short) all_.emplace(cycle, ServiceOrder::Offer::kReadyAndShort);
  }
  // Compared with backfill's order, which leaves those gangs out: the job that is served next is
  // the same, whichever of the two serves it, and wherever the budget cuts.
  std::optional<ServiceOrder::Head> Next() {
    auto head = ready_.Next();
    if (!head.has_value() || !all_.has_value()) return head;
    return all_->Next()->job == head->job ? head : std::nullopt;
  }

 private:
  ServiceOrder ready_;
  std::optional<ServiceOrder> all_;
};

// At least one job is served, so that a cycle whose budget went to the lifecycle stage moves on.
void AllocateAction::Run(Cycle& cycle) const {
  if (cycle.state().pending().ready_count() == 0) return;
  const bool in_order = cycle.policies().HasAction("backfill");
  NextToAllocate next(cycle, in_order);
  Placer placer(cycle);
  bool served = false;
  for (auto head = next.Next(); head.has_value(); head = next.Next()) {
    if (served && cycle.SpentUp()) return cycle.Cut();
    served = true;
    ++cycle.counters().jobs_considered;
    cycle.CountWork(1);
    auto verdict = placer.Serve(cycle.state().jobs().At(head->job));
    if (!verdict.has_value()) continue;
    const bool gang = cycle.state().pending().Class(head->id).demand.gang;
    if (in_order && gang && WaitsForEnds(*verdict)) return;  // backfill serves it again
    cycle.transaction().editor().Block(head->id, *std::move(verdict));
  }
}

}  // namespace

std::unique_ptr<Action> MakeAllocate() { return std::make_unique<AllocateAction>(); }

}  // namespace berth
