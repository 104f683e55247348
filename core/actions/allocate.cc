// allocate: places pending jobs on free resources.
//
// Repeatedly serves the first class of ServiceOrder. If the first job of a class does not fit, no
// job of the class does, and the whole class is blocked with the reason. A gang is placed whole or
// not at all. Jobs that have their minimum then take one more task at a time.
//
//   A{j1 j4} B{j2} C{j3}     j1 fits -> A{j4} moves behind;  j2 does not -> B blocked;  j3 ...
//
// If backfill is configured, allocate stops at the first gang that lacks room, found now or in an
// earlier cycle, and at one that exceeds a limit. Backfill decides which jobs may overtake it.
//
// Cost: decisions + classes not known to be blocked, whatever the number of pending jobs.
#include <optional>
#include <utility>

#include "core/engine/order/service_order.h"
#include "core/engine/place/placer.h"
#include "core/engine/place/reserve.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

class AllocateAction final : public Action {
 public:
  absl::string_view name() const override { return "allocate"; }
  void Run(Cycle& cycle) const override;
};

// The next job, unless a gang that is known to lack room comes before it.
class NextToAllocate {
 public:
  NextToAllocate(Cycle& cycle, bool in_order) : ready_(cycle, ServiceOrder::Offer::kReady) {
    const bool any_short = !cycle.state().pending().short_of_room().empty();
    if (in_order && any_short) all_.emplace(cycle, ServiceOrder::Offer::kReadyAndShort);
  }
  // Compares with the order that includes the gangs short of room. So the job that is served next
  // is the same whether allocate or backfill serves it, and wherever the budget ends.
  std::optional<ServiceOrder::Head> Next() {
    auto head = ready_.Next();
    if (!head.has_value() || !all_.has_value()) return head;
    return all_->Next()->job == head->job ? head : std::nullopt;
  }

 private:
  ServiceOrder ready_;
  std::optional<ServiceOrder> all_;
};

// Serves at least one job, so that a cycle whose budget the lifecycle stage used up makes progress.
void AllocateAction::Run(Cycle& cycle) const {
  if (cycle.state().pending().ready_count() == 0) return;
  const bool in_order = cycle.policies().HasAction("backfill");
  NextToAllocate next(cycle, in_order);
  Placer placer(cycle);
  bool served = false;
  for (auto head = next.Next(); head.has_value(); head = next.Next()) {
    if (served && cycle.BudgetSpent()) return cycle.Cut();
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
