// consolidate: would a gang fit if other jobs moved together? See core/engine/victims/mover.h. Only
// for preemptible gangs: a job that must never be stopped may not stop others either, unless its
// queue is entitled to the room (reclaim).
#include <memory>

#include "core/actions/eviction.h"
#include "core/engine/victims/mover.h"
#include "core/engine/victims/protections.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

// `protections` explains why no room was made; null if no explanation is needed.
RoomMade MoveOthers(Cycle& cycle, Mover& mover, const Job& job, const JobNeeds& needs,
                    Protections* protections) {
  if (!job.preemptible) return {.barred = "the job is not preemptible"};
  const VictimOutcome outcome = mover.MakeRoom(job, needs);
  if (outcome.decided || protections == nullptr) return ResultOf(cycle, outcome, "");
  return ResultOf(cycle, outcome, protections->OfAll(job, needs, outcome));
}

class ConsolidateAction final : public Action {
 public:
  absl::string_view name() const override { return "consolidate"; }
  ActionRole role() const override { return ActionRole::kMakesRoom; }
  void Run(Cycle& cycle) const override {
    Mover mover(cycle);
    Protections protections(cycle);
    ForEachMissed(cycle, name(), [&](const Job& job, const JobNeeds& needs) {
      return MoveOthers(cycle, mover, job, needs, &protections);
    });
  }
  bool MakeRoomFor(Cycle& cycle, const Job& job, const JobNeeds& needs) const override {
    Mover mover(cycle);
    return MoveOthers(cycle, mover, job, needs, nullptr).decided;
  }
};

}  // namespace

std::unique_ptr<Action> MakeConsolidate() { return std::make_unique<ConsolidateAction>(); }

}  // namespace berth
