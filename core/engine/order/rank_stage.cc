#include "core/engine/order/rank_stage.h"

#include <algorithm>
#include <vector>

#include "core/engine/engine_cache.h"
#include "core/model/state_editor.h"

namespace berth {
namespace {

// Ranks of the first configured order that has any.
class Ranking {
 public:
  Ranking(const Policies& policies, const ClusterState& state) : policies_(policies) {
    for (const auto& order : policies.job_orders()) {
      auto rank = order->PrepareRank(policies, state);
      if (!rank.has_value()) continue;
      rank_ = *std::move(rank);
      order_ = order.get();
      return;
    }
  }

  // False: by age alone.
  bool any() const { return rank_ != nullptr; }
  // Thousandths of the longest line for each level; 0 if there are no levels.
  int32_t overtaking() const {
    return any() && order_->Ages() ? policies_.shortest_first().overtaking : 0;
  }
  int64_t RankOf(const Job& job, int level, Time now) const {
    if (level >= kLineLevels || AgesAt(job) <= now) return kAgedRank;
    return rank_(job, now) - level * kRankOctave;
  }
  // When time alone changes it.
  Time Again(const Job& job, Time now) const {
    const Time ages = AgesAt(job);
    return ages <= now ? absl::InfiniteFuture()
                       : std::min(ages, order_->RanksAgain(policies_, job, now));
  }

 private:
  // A job waits since its submit, or since it may start.
  Time AgesAt(const Job& job) const {
    const Duration age = policies_.shortest_first().age;
    if (!order_->Ages() || age <= absl::ZeroDuration()) return absl::InfiniteFuture();
    return std::max(job.submit, job.start_after) + age;
  }

  const Policies& policies_;
  JobRank rank_;
  const JobOrder* order_ = nullptr;
};

// Takes the jobs that are due, and drops those that never will be.
void TakeDue(StateEditor& editor, const ClusterState& state, Time now, std::vector<JobId>* due) {
  while (!state.ageing().empty()) {
    const auto [at, id] = *state.ageing().begin();
    const Job* job = state.jobs().Find(id);
    const bool waits_no_more = job == nullptr || Ended(job->status.state);
    if (!waits_no_more && at > now) return;
    editor.NotAgain(id, at);
    if (!waits_no_more) due->push_back(id);
  }
}

// Not between the parts of a pass that the budget cuts, so that together they serve like one cycle;
// but every kFollow in a long pass.
void TakeOvertaken(StateEditor& editor, const ClusterState& state, int32_t overtaking, Time now,
                   std::vector<JobId>* jobs) {
  constexpr Duration kFollow = absl::Seconds(10);
  EngineCache& cache = CacheOf(editor);
  if (cache.cut && now < cache.overtaken_at + kFollow) return;
  cache.overtaken_at = now;
  const std::vector<QueueId> moved = editor.TakeMovedLines();
  if (overtaking == 0) return;
  for (QueueId id : moved) cache.lines.Move(state, state.queues().At(id), overtaking, jobs);
}

void RankByAge(StateEditor& editor, const ClusterState& state, const std::vector<JobId>& jobs) {
  if (!editor.ranked()) return;  // all have the rank that they arrived with
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
  const Ranking ranking(cycle.policies(), state);
  const int32_t overtaking = ranking.overtaking();
  TakeOvertaken(editor, state, overtaking, cycle.now(), &jobs);
  if (!ranking.any()) return RankByAge(editor, state, jobs);
  TakeDue(editor, state, cycle.now(), &jobs);
  for (JobId id : jobs) {
    const Job* job = state.jobs().Find(id);
    if (job == nullptr || Ended(job->status.state)) continue;
    const Queue& queue = state.queues().At(job->queue);
    int level = 0;
    if (overtaking > 0) level = CacheOf(editor).lines.Follow(queue, *job, overtaking);
    editor.SetRank(id, ranking.RankOf(*job, level, cycle.now()));
    const Time again = ranking.Again(*job, cycle.now());
    if (again != absl::InfiniteFuture()) editor.RankAgain(id, again);
  }
}

void RankJob(StateEditor& editor, const ClusterState& state, const Policies& policies,
             const Job& job, Time now) {
  const Ranking ranking(policies, state);
  if (ranking.any()) editor.SetRank(job.id, ranking.RankOf(job, 0, now));
}

Time NextRankChange(const ClusterState& state) {
  const bool waits = state.pending().job_count() > 0 && !state.ageing().empty();
  return waits ? state.ageing().begin()->first : absl::InfiniteFuture();
}

}  // namespace berth
