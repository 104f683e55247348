#include "core/engine/rank_stage.h"

#include <algorithm>
#include <vector>

#include "core/model/state_editor.h"

namespace berth {
namespace {

// An empty one: by age alone.
JobRank RankOf(const Policies& policies) {
  for (const auto& order : policies.job_orders()) {
    if (auto rank = order->PrepareRank(policies); rank.has_value()) return *std::move(rank);
  }
  return nullptr;
}

// It waits since it was submitted, or since it may start at all.
Time AgesAt(const Policies& policies, const Job& job) {
  const Duration age = policies.shortest_first().age;
  if (age <= absl::ZeroDuration()) return absl::InfiniteFuture();
  return std::max(job.submit, job.start_after) + age;
}

// The jobs that are due, and no more of those that will never be.
void TakeAged(StateEditor& editor, const ClusterState& state, Time now, std::vector<JobId>* aged) {
  while (!state.ageing().empty()) {
    const auto [at, id] = *state.ageing().begin();
    const Job* job = state.jobs().Find(id);
    const bool waits_no_more = job == nullptr || Ended(job->status.state);
    if (!waits_no_more && at > now) return;
    editor.NotAgain(id, at);
    if (!waits_no_more) aged->push_back(id);
  }
}

void RankByAge(StateEditor& editor, const ClusterState& state, const std::vector<JobId>& jobs) {
  if (!editor.ranked()) return;  // all have the rank that they came with
  for (JobId id : jobs) {
    if (state.jobs().Find(id) != nullptr) editor.SetRank(id, 0);
  }
  editor.ForgetRanked();
}

}  // namespace

void RankJobs(Cycle& cycle) {
  StateEditor& editor = cycle.transaction().editor();
  const ClusterState& state = cycle.state();
  std::vector<JobId> jobs = editor.TakeUnranked();
  const JobRank rank = RankOf(cycle.policies());
  if (rank == nullptr) return RankByAge(editor, state, jobs);
  TakeAged(editor, state, cycle.now(), &jobs);
  for (JobId id : jobs) {
    const Job* job = state.jobs().Find(id);
    if (job == nullptr || Ended(job->status.state)) continue;
    const Time ages = AgesAt(cycle.policies(), *job);
    const bool aged = ages <= cycle.now();
    editor.SetRank(id, aged ? kAgedRank : rank(*job));
    if (!aged && ages != absl::InfiniteFuture()) editor.RankAgain(id, ages);
  }
}

void RankJob(StateEditor& editor, const Policies& policies, const Job& job, Time now) {
  const JobRank rank = RankOf(policies);
  if (rank == nullptr) return;
  editor.SetRank(job.id, AgesAt(policies, job) <= now ? kAgedRank : rank(job));
}

Time NextAgeing(const ClusterState& state) {
  const bool waits = state.pending().job_count() > 0 && !state.ageing().empty();
  return waits ? state.ageing().begin()->first : absl::InfiniteFuture();
}

}  // namespace berth
