// A dry run: one planning cycle as if the job had just been submitted, undone afterwards. It runs
// the same actions on the same state, so its result is what a submit would get, if nothing else
// happens in between.
//
//   add the job (tentatively) -> nominate, reserve, the configured actions -> read the decisions
//   that are for the job's sake -> undo everything
//
// The lifecycle stage does not run: its decisions follow from facts, which a dry run does not
// change.
#ifndef BERTH_CORE_ENGINE_EXPLAIN_DRY_RUN_H_
#define BERTH_CORE_ENGINE_EXPLAIN_DRY_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/engine/plan.h"
#include "core/engine/policies.h"
#include "core/model/cluster_state.h"

namespace berth {

// The most that one question may cost, in units of PlanCounters::work: some tens of milliseconds.
inline constexpr uint64_t kQuestionBudget = 1'000'000;

struct DryRunResult {
  // Bound in that cycle: its whole minimum, or nothing; and growth beyond it, as much as fits.
  std::vector<Placement> placements;
  // Not bound: where it would wait for resources that are being released, for it or anyway.
  std::vector<Placement> nominated;
  // Tasks of other jobs that would be evicted or moved for it.
  std::vector<TasksReleased> evictions;
  // Tasks of other jobs that would be frozen for it.
  std::vector<TasksPaused> pauses;
  // The reservation that it would get.
  std::optional<Reservation> reservation;
  // Why it does not start at once; empty if it does.
  std::vector<WaitReason> blockers;
  bool exhausted = false;  // the budget ended before the job's turn
  uint64_t work = 0;       // spent
  bool StartsNow() const { return !placements.empty(); }
};

// Errors (INVALID_ARGUMENT and so on) are those with which Apply would refuse the submit.
// `instead_of`: as if this pending job were withdrawn for it; the new job may have its name. On
// return, the state and what planning remembers of earlier cycles are unchanged, so the next cycle
// is the same as without the call.
absl::StatusOr<DryRunResult> DryRun(ClusterState& state, const Policies& policies,
                                    const JobSpec& spec, Time now,
                                    std::optional<JobId> instead_of = std::nullopt,
                                    uint64_t budget = kQuestionBudget);

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_EXPLAIN_DRY_RUN_H_
