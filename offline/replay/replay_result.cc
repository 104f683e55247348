#include "offline/replay/replay_result.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/replay/csv_rows.h"

namespace berth::replay {
namespace {

double Seconds(Duration duration) { return absl::ToDoubleSeconds(duration); }

bool Started(const Outcome& outcome) { return outcome.first_start != absl::InfiniteDuration(); }
bool Finished(const Outcome& outcome) { return outcome.end != absl::InfiniteDuration(); }

// The amount in the usual unit of the resource.
double InUnits(size_t kind, double amount) {
  return amount / static_cast<double>(UnitOf(ResourceKind{static_cast<uint8_t>(kind)}));
}

// The first submit of these jobs, and the time from there to their last end.
struct Span {
  Duration begin = absl::InfiniteDuration();
  Duration end = absl::ZeroDuration();
  bool any = false;
  double seconds() const { return any ? Seconds(end - begin) : 0; }
};
Span SpanOf(const Workload& workload, const ReplayRun& run, const std::vector<size_t>& jobs) {
  Span span;
  for (const size_t i : jobs) {
    span.begin = std::min(span.begin, workload.jobs[i].submit);
    if (!Finished(run.outcomes[i])) continue;
    span.end = span.any ? std::max(span.end, run.outcomes[i].end) : run.outcomes[i].end;
    span.any = true;
  }
  return span;
}

// The figures that both kinds of results have, of all jobs or of one owner.
template <class Result>
class Filler {
 public:
  Filler(const Workload& workload, const ReplayRun& run, const OwnerSum& sum, Result* result)
      : workload_(workload), run_(run), sum_(sum), result_(*result) {}

  // `seconds`: the time by which amounts are divided.
  void Fill(double seconds) {
    Jobs();
    Resources_(seconds);
    Tiers();
  }

 private:
  void Jobs() {
    std::vector<double> waits, completions, slowdowns;
    for (const size_t i : sum_.jobs) {
      const TraceJob& job = workload_.jobs[i];
      const Outcome& outcome = run_.outcomes[i];
      result_.set_evictions(result_.evictions() + outcome.evicted_tasks);
      result_.set_preemptions(result_.preemptions() + outcome.preemptions);
      result_.set_failures(result_.failures() + outcome.failures);
      if (!Started(outcome)) result_.set_never(result_.never() + 1);
      if (!Started(outcome) || !Finished(outcome)) continue;
      result_.set_finished(result_.finished() + 1);
      waits.push_back(Seconds(outcome.first_start - job.submit));
      completions.push_back(Seconds(outcome.end - job.submit));
      slowdowns.push_back(SlowdownOf(job, outcome));
    }
    *result_.mutable_wait() = DistributionOf(std::move(waits));
    *result_.mutable_completion() = DistributionOf(std::move(completions));
    *result_.mutable_bounded_slowdown() = DistributionOf(std::move(slowdowns));
    result_.set_makespan(SpanOf(workload_, run_, sum_.jobs).seconds());
  }

  void Resources_(double seconds) {
    for (size_t kind = 0; kind < run_.resources.size(); ++kind) {
      const std::string& name = run_.resources[kind];
      const double held = sum_.share.held.amount[kind];
      const double lost = sum_.lost.amount[kind], failed = sum_.lost_to_failures.amount[kind];
      const double whole = static_cast<double>(run_.capacity.amount[kind]) * seconds;
      if (whole > 0 && held > 0) {
        (*result_.mutable_utilisation())[name] = held / whole;
        (*result_.mutable_goodput())[name] = (held - lost - failed) / whole;
      }
      if (lost > 0) (*result_.mutable_lost())[name] = InUnits(kind, lost);
      if (failed > 0) (*result_.mutable_lost_to_failures())[name] = InUnits(kind, failed);
    }
  }

  void Tiers() {
    std::map<int32_t, sim::v1::Tier> tiers;
    for (const size_t i : sum_.jobs) {
      const Outcome& outcome = run_.outcomes[i];
      if (outcome.tier == kNoTier) continue;
      sim::v1::Tier& tier = tiers[outcome.tier];
      tier.set_tier(outcome.tier);
      tier.set_name(run_.tiers.at(outcome.tier));
      tier.set_jobs(tier.jobs() + 1);
      tier.set_gpu_seconds(tier.gpu_seconds() +
                           GpusOf(workload_.jobs[i]) * Seconds(workload_.jobs[i].run));
    }
    for (auto& [number, tier] : tiers) *result_.add_tiers() = std::move(tier);
  }

  const Workload& workload_;
  const ReplayRun& run_;
  const OwnerSum& sum_;
  Result& result_;
};

sim::v1::OwnerResult FiguresOf(const Workload& workload, const ReplayRun& run, const OwnerSum& sum,
                               double seconds) {
  sim::v1::OwnerResult result;
  result.set_name(sum.name);
  result.set_jobs(static_cast<int64_t>(sum.jobs.size()));
  Filler(workload, run, sum, &result).Fill(seconds);
  if (seconds > 0) result.set_share(sum.share.share_seconds / seconds);
  result.set_max_share(sum.share.max);
  return result;
}

}  // namespace

double SlowdownOf(const TraceJob& job, const Outcome& outcome) {
  const double bound = std::max(Seconds(job.run), Seconds(kSlowdownBound));
  return std::max(1.0, Seconds(outcome.end - job.submit) / bound);
}

sim::v1::Distribution DistributionOf(std::vector<double> values) {
  sim::v1::Distribution result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
    return values[std::max<size_t>(rank, 1) - 1];
  };
  double sum = 0;
  for (double value : values) sum += value;
  result.set_mean(sum / static_cast<double>(values.size()));
  result.set_median(at(0.5));
  result.set_p95(at(0.95));
  result.set_p99(at(0.99));
  result.set_max(values.back());
  return result;
}

sim::v1::PolicyResult Figures(const Workload& workload, const ReplayRun& run,
                              const std::string& name) {
  sim::v1::PolicyResult result;
  result.set_name(name);
  const double seconds = SpanOf(workload, run, run.total.jobs).seconds();
  Filler(workload, run, run.total, &result).Fill(seconds);
  if (run.fragmentation.has_value()) result.set_fragmentation(*run.fragmentation);
  if (run.queue_fairness.has_value()) result.set_queue_fairness(*run.queue_fairness);
  if (run.user_fairness.has_value()) result.set_user_fairness(*run.user_fairness);
  for (const OwnerSum& queue : run.queues) {
    *result.add_queues() = FiguresOf(workload, run, queue, seconds);
  }
  for (const OwnerSum& user : run.users) {
    *result.add_users() = FiguresOf(workload, run, user, seconds);
  }
  for (size_t kind = 0; kind < run.resources.size(); ++kind) {
    const auto amount = static_cast<double>(run.capacity.amount[kind]);
    if (amount > 0) (*result.mutable_capacity())[run.resources[kind]] = InUnits(kind, amount);
  }
  result.set_cycles(run.cycles);
  return result;
}

std::string JobsCsv(const Workload& workload, const ReplayRun& run) {
  std::string text =
      "name,submit,wait,run,end,slowdown,queue,user,tasks,tier,preemptions,failures,last_start,"
      "nodes,devices\n";
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    const TraceJob& job = workload.jobs[i];
    const Outcome& outcome = run.outcomes[i];
    absl::StrAppendFormat(&text, "%s,%.15g,", CsvField(job.name), Seconds(job.submit));
    if (Started(outcome))
      absl::StrAppendFormat(&text, "%.15g", Seconds(outcome.first_start - job.submit));
    absl::StrAppendFormat(&text, ",%.15g,", Seconds(job.run));
    if (Finished(outcome)) {
      absl::StrAppendFormat(&text, "%.15g,%.15g", Seconds(outcome.end), SlowdownOf(job, outcome));
    } else {
      text += ",";
    }
    const std::string tier = outcome.tier == kNoTier ? "" : run.tiers.at(outcome.tier);
    absl::StrAppend(&text, ",", CsvField(job.queue), ",", CsvField(job.user), ",", TasksOf(job),
                    ",", CsvField(tier), ",", outcome.preemptions, ",", outcome.failures, ",");
    if (outcome.last_start != absl::InfiniteDuration()) {
      absl::StrAppendFormat(&text, "%.15g", Seconds(outcome.last_start));
    }
    absl::StrAppend(&text, ",", CsvField(run.names.Nodes(outcome.places)), ",",
                    CsvField(run.names.Devices(outcome.places)), "\n");
  }
  return text;
}

}  // namespace berth::replay
