// A dry run: one cycle of planning as it would be had the job just been submitted, and nothing of
// it remains. The same actions on the same state, so what it says is what a submit would get, as
// long as nothing else happens.
//
//   add the job (tentatively) -> nominate, reserve, the configured actions -> read the decisions
//   that are for the job's sake -> undo all of it
//
// The lifecycle stage does not run: its decisions come from facts, which are what they are.
#ifndef BERTH_CORE_ENGINE_DRY_RUN_H_
#define BERTH_CORE_ENGINE_DRY_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

namespace berth {

// What one question may cost, in units of PlanCounters::work: some tens of milliseconds.
inline constexpr uint64_t kQuestionBudget = 1'000'000;

struct DryRunResult {
  // Bound in that cycle: its whole minimum, or nothing; growth beyond it as far as it came.
  std::vector<Placement> placements;
  // Not bound: where it would wait for what is being released, on its behalf or anyway.
  std::vector<Placement> nominated;
  // Tasks of others that would be stopped or moved for it.
  std::vector<TasksReleased> evictions;
  // Kept for it from then on.
  std::optional<Reservation> reservation;
  // Why it does not start at once; empty if it does.
  std::vector<WaitReason> blockers;
  bool exhausted = false;  // the budget ended before its turn had come
  uint64_t work = 0;       // spent
  bool StartsNow() const { return !placements.empty(); }
};

// INVALID_ARGUMENT and so on as Apply would refuse the submit. `instead_of`: as if this waiting job
// were withdrawn for it (it may then have its name). The state is as before on return, and
// so is what planning remembers of earlier cycles: the next one is what it would have been.
absl::StatusOr<DryRunResult> DryRun(ClusterState& state, const Policies& policies,
                                    const JobSpec& spec, Time now,
                                    std::optional<JobId> instead_of = std::nullopt,
                                    uint64_t budget = kQuestionBudget);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_DRY_RUN_H_
