// When will a pending job start? The jobs before it in service order get their earliest possible
// places, one after the other, each respecting those before it (conservative backfilling); then the
// job does. That is exact if all jobs use their whole walltimes and nothing else is submitted. The
// order is that of the current shares; for a job that a bound of its queue blocks, the order of its
// queue.
//
// Jobs seldom use their whole walltime. Where run times are predicted, the computation is repeated
// with each job's predicted run time. Elsewhere the wait is scaled by the share of their walltimes
// that ended jobs used.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/cycle.h"
#include "core/engine/explain/explain.h"
#include "core/engine/order/service_order.h"
#include "core/engine/place/earliest_start.h"
#include "core/engine/place/placer.h"
#include "core/engine/place/predicted_times.h"

namespace berth {
namespace {

constexpr int64_t kMaxJobsBefore = 200;
constexpr uint64_t kNewestJobs = 10'000;  // that count as history
constexpr int64_t kThousandths = 1000;

class Estimator {
 public:
  Estimator(ClusterState& state, const Policies& policies, JobId id, Time now,
            PredictedTimes& times)
      : state_(state),
        times_(times),
        cycle_(state, policies, now, kQuestionBudget),
        placer_(cycle_),
        id_(id) {}

  StartEstimate Run();

 private:
  // Places the jobs before it; false if the start is unknown (`unknown` says why).
  bool ServeThoseBefore(StartEstimate* estimate);
  bool ServeInOrder(StartEstimate* estimate);
  bool ServeOfQueue(const Job& job, StartEstimate* estimate);
  bool ServeFirst(JobId id, StartEstimate* estimate);
  std::string WhyNoStart(const Job& job) const;

  const ClusterState& state_;
  PredictedTimes& times_;
  Cycle cycle_;
  Placer placer_;
  const JobId id_;
};

bool Estimator::ServeThoseBefore(StartEstimate* estimate) {
  const Job& job = state_.jobs().At(id_);
  const PendingClass& of = state_.pending().Class(job.pending_class);
  const bool offered = of.blocked == nullptr || of.blocked->wake == WakeOn::kRoom;
  return offered ? ServeInOrder(estimate) : ServeOfQueue(job, estimate);
}

bool Estimator::ServeInOrder(StartEstimate* estimate) {
  ServiceOrder order(cycle_, ServiceOrder::Offer::kReadyAndShort);
  for (auto head = order.Next(); head.has_value(); head = order.Next()) {
    if (head->job == id_) return true;
    if (!state_.pending().Class(head->id).demand.gang) {
      order.Skip(*head);  // growth needs free room, and holds nothing for later
      continue;
    }
    if (!ServeFirst(head->job, estimate)) return false;
    order.Touch(head->queue);
  }
  return true;
}

// The job waits for a bound of its queue: jobs before it in that queue come first, if they fit.
bool Estimator::ServeOfQueue(const Job& job, StartEstimate* estimate) {
  std::vector<OrderKey> before;
  state_.pending().classes().ForEach([&](ClassId, const PendingClass& c) {
    if (c.demand.queue != job.queue || !c.demand.gang) return;
    for (const OrderKey& key : c.jobs) {
      if (!(key < KeyOf(job)) || before.size() > 2 * kMaxJobsBefore) break;
      before.push_back(key);
    }
  });
  std::sort(before.begin(), before.end());
  return std::all_of(before.begin(), before.end(),
                     [&](const OrderKey& key) { return ServeFirst(key.job, estimate); });
}

bool Estimator::ServeFirst(JobId id, StartEstimate* estimate) {
  if (estimate->jobs_before == kMaxJobsBefore || cycle_.BudgetSpent()) {
    estimate->unknown = absl::StrCat("more than ", estimate->jobs_before, " jobs are ahead of it");
    return false;
  }
  const Job& job = state_.jobs().At(id);
  times_.Take(id);
  auto reservation = EarliestStart(cycle_, placer_, job);
  if (!reservation.has_value()) {
    estimate->unknown = absl::StrCat("job ", job.name, " is ahead of it, and ", WhyNoStart(job));
    return false;
  }
  Transaction& transaction = cycle_.transaction();
  transaction.Decide(JobReserved{.job = job.id, .reservation = *std::move(reservation)});
  JobStatus status = job.status;
  status.suspended = true;  // it requests no more places
  transaction.Decide(JobStatusChanged{.job = job.id, .status = std::move(status)});
  transaction.Sync();
  ++estimate->jobs_before;
  return true;
}

std::string Estimator::WhyNoStart(const Job& job) const {
  const bool some_end = !state_.planned_ends().empty() || !state_.releasing().empty();
  return absl::StrCat(
      some_end ? "too few running jobs have a walltime" : "no running job has a walltime",
      job.id == id_ ? "" : ", so that the start of that job is unknown");
}

StartEstimate Estimator::Run() {
  StartEstimate estimate;
  if (!ServeThoseBefore(&estimate)) return estimate;
  const Job& job = state_.jobs().At(id_);
  const auto start = EarliestStart(cycle_, placer_, job);
  if (!start.has_value()) {
    estimate.unknown = WhyNoStart(job);
  } else {
    estimate.latest = start->start;
  }
  return estimate;
}

// Thousandths of their walltimes that ended jobs used; sorted. The newest jobs only.
std::vector<int64_t> UsedOfWalltime(const ClusterState& state) {
  std::vector<int64_t> used;
  const uint64_t next = state.next_job_id().value;
  JobId from{next > kNewestJobs ? next - kNewestJobs : 0};
  for (auto id = state.jobs().NextFrom(from); id.has_value();
       id = state.jobs().NextFrom(JobId{id->value + 1})) {
    const Job& job = state.jobs().At(*id);
    const JobStatus& status = job.status;
    const bool ran = status.start != absl::InfinitePast() && status.end > status.start;
    if (!Ended(status.state) || !ran || job.walltime == absl::InfiniteDuration()) continue;
    const int64_t part = absl::ToInt64Milliseconds(status.end - status.start) * kThousandths /
                         std::max<int64_t>(absl::ToInt64Milliseconds(job.walltime), 1);
    used.push_back(std::min(part, kThousandths));
  }
  std::sort(used.begin(), used.end());
  return used;
}

StartEstimate EstimateAt(ClusterState& state, const Policies& policies, JobId id, Time now,
                         RunLevel level) {
  PredictedTimes times(state, level, now);
  return Estimator(state, policies, id, now, times).Run();
}

bool RunsArePredicted(ClusterState& state, Time now) {
  return PredictedTimes(state, RunLevel::kLow, now).any();
}

// Requires `estimate.latest`. Shorter runs may by accident give a later start, because places are
// given out one after the other.
void EstimateByPredictions(ClusterState& state, const Policies& policies, JobId id, Time now,
                           StartEstimate* estimate) {
  const Time expected = EstimateAt(state, policies, id, now, RunLevel::kExpected).latest;
  const Time low = EstimateAt(state, policies, id, now, RunLevel::kLow).latest;
  estimate->predicted = true;
  estimate->history_jobs = static_cast<int64_t>(state.run_history().size());
  estimate->likely = std::min(expected, estimate->latest);
  estimate->earliest = std::min(low, estimate->likely);
}

}  // namespace

StartEstimate EstimateStart(ClusterState& state, const Policies& policies, JobId id, Time now) {
  StartEstimate estimate;
  const Job& waits = state.jobs().At(id);
  if (waits.pending_class == ClassId{} || !NeedsOf(waits).gang) {
    estimate.unknown = "the job is not waiting for a start";
    return estimate;
  }
  estimate = EstimateAt(state, policies, id, now, RunLevel::kWalltime);
  if (estimate.latest == absl::InfiniteFuture()) return estimate;
  if (RunsArePredicted(state, now)) {
    EstimateByPredictions(state, policies, id, now, &estimate);
    return estimate;
  }
  const std::vector<int64_t> used = UsedOfWalltime(state);
  estimate.history_jobs = static_cast<int64_t>(used.size());
  estimate.likely = estimate.earliest = estimate.latest;
  if (used.empty()) return estimate;
  const Duration wait = estimate.latest - now;
  estimate.likely = now + wait * used[used.size() / 2] / kThousandths;
  estimate.earliest = now + wait * used[used.size() / 10] / kThousandths;
  return estimate;
}

}  // namespace berth
