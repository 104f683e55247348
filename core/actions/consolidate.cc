// consolidate: would a gang fit if others moved together? How: core/engine/mover.h. Only for
// preemptible gangs: those that must never be stopped themselves may not stop others either, unless
// their queue is entitled to the room (reclaim).
#include <memory>

#include "core/actions/eviction.h"
#include "core/engine/mover.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

RoomMade MoveOthers(Cycle& cycle, Mover& mover, const Job& job, const JobNeeds& needs) {
  if (!job.preemptible) return {.barred = "the job is not preemptible"};
  return CameOf(cycle, mover.MakeRoom(job, needs));
}

class ConsolidateAction final : public Action {
 public:
  absl::string_view name() const override { return "consolidate"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Mover mover(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return MoveOthers(cycle, mover, job, needs);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    Mover mover(cycle);
    return MoveOthers(cycle, mover, job, needs).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeConsolidate() { return std::make_unique<ConsolidateAction>(); }

}  // namespace berth
