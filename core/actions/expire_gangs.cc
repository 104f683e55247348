// expire_gangs: a job that has run below its minimum for longer than gang_grace makes no progress
// and blocks resources. It gives up its remaining tasks and waits for its whole gang again. This
// uses no retry. ShortSince computes how long it has been short.
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/engine/cycle.h"
#include "core/engine/lifecycle/steps.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

void Expire(Cycle& cycle, JobId id) {
  const Job& job = cycle.state().jobs().At(id);
  const Look look{cycle.state(), job, cycle.now(), cycle.policies().lifecycle()};
  const std::string message =
      absl::StrCat("below its minimum for longer than ",
                   absl::FormatDuration(cycle.policies().eviction().gang_grace));
  Step step = RestartJob(look, ReleaseReason::kGangExpired, message, absl::InfinitePast(),
                         job.status.retries, /*rerun_all=*/false);
  NoteEviction(look, /*whole=*/true, &step);
  for (EventBody& decision : step) cycle.transaction().Decide(std::move(decision));
  cycle.transaction().Sync();
}

class ExpireGangsAction final : public Action {
 public:
  absl::string_view name() const override { return "expire_gangs"; }
  ActionRole role() const override { return ActionRole::kOther; }
  void Run(Cycle& cycle) const override {
    const Duration grace = cycle.policies().eviction().gang_grace;
    bool served = false;
    for (const auto& [since, id] : cycle.state().short_jobs()) {
      if (since + grace > cycle.now()) return cycle.WakeBy(since + grace);
      if (served && cycle.BudgetSpent()) return cycle.Cut();
      served = true;
      cycle.CountWork(1);
      // According to the facts. This cycle may have helped it, or restarted it for another reason.
      if (ShortSince(cycle.state().jobs().At(id)) + grace <= cycle.now()) Expire(cycle, id);
    }
  }
};

}  // namespace

std::unique_ptr<Action> MakeExpireGangs() { return std::make_unique<ExpireGangsAction>(); }

}  // namespace berth
