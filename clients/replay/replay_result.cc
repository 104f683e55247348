#include "clients/replay/replay_result.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "clients/replay/network_result.h"
#include "clients/sim/output.h"

namespace berth::replay {
namespace {

double Seconds(Duration duration) { return absl::ToDoubleSeconds(duration); }

double SlowdownOf(const TraceJob& job, Duration wait) {
  const double bound = std::max(Seconds(job.run), Seconds(kSlowdownBound));
  return std::max(1.0, Seconds(wait + job.run) / bound);
}

bool Started(const Outcome& outcome) { return outcome.first_start != absl::InfiniteDuration(); }
bool Finished(const Outcome& outcome) { return outcome.end != absl::InfiniteDuration(); }

// Figures of a table: what, and how many digits.
struct Line {
  const char* name;
  const sim::v1::Distribution& (sim::v1::PolicyResult::*of)() const;
};
constexpr std::array<Line, 3> kLines = {{{"wait s", &sim::v1::PolicyResult::wait},
                                         {"completion s", &sim::v1::PolicyResult::completion},
                                         {"slowdown", &sim::v1::PolicyResult::bounded_slowdown}}};

std::string Table(const sim::v1::ReplayResult& result) {
  std::string text = absl::StrFormat("%s: %d jobs\n", result.workload(), result.jobs());
  for (const auto& [reason, count] : result.left_out()) {
    absl::StrAppendFormat(&text, "left out, %s: %d\n", reason, count);
  }
  for (const sim::v1::PolicyResult& policy : result.policies()) {
    absl::StrAppendFormat(&text, "\n%-14s %14s %14s %14s %14s %14s\n", policy.name(), "mean",
                          "median", "95 %", "99 %", "max");
    for (const Line& line : kLines) {
      const sim::v1::Distribution& d = (policy.*line.of)();
      absl::StrAppendFormat(&text, "%-14s %14.2f %14.2f %14.2f %14.2f %14.2f\n", line.name,
                            d.mean(), d.median(), d.p95(), d.p99(), d.max());
    }
    absl::StrAppendFormat(&text, "makespan %.0f s, %d finished, %d never started, %d evictions\n",
                          policy.makespan(), policy.finished(), policy.never(), policy.evictions());
    const std::map<std::string, double> sorted(policy.utilisation().begin(),
                                               policy.utilisation().end());
    for (const auto& [resource, part] : sorted) {
      absl::StrAppendFormat(&text, "utilisation of %s %.2f %%\n", resource, 100 * part);
    }
    if (policy.has_network()) text += TableOf(policy.network());
  }
  return text;
}

// As a field of CSV.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace

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
  std::vector<double> waits, completions, slowdowns;
  Duration last_end;
  const Duration begin = workload.jobs.empty() ? Duration() : workload.jobs.front().submit;
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    const TraceJob& job = workload.jobs[i];
    const Outcome& outcome = run.outcomes[i];
    if (!Started(outcome)) result.set_never(result.never() + 1);
    if (!Started(outcome) || !Finished(outcome)) continue;
    result.set_finished(result.finished() + 1);
    waits.push_back(Seconds(outcome.first_start - job.submit));
    completions.push_back(Seconds(outcome.end - job.submit));
    slowdowns.push_back(SlowdownOf(job, outcome.end - job.submit - job.run));
    last_end = std::max(last_end, outcome.end);
  }
  *result.mutable_wait() = DistributionOf(std::move(waits));
  *result.mutable_completion() = DistributionOf(std::move(completions));
  *result.mutable_bounded_slowdown() = DistributionOf(std::move(slowdowns));
  const double makespan = result.finished() > 0 ? Seconds(last_end - begin) : 0;
  result.set_makespan(makespan);
  for (const auto& [resource, amount] : run.capacity) {
    const auto held = run.held.find(resource);
    if (held == run.held.end() || makespan <= 0) continue;
    (*result.mutable_utilisation())[resource] =
        held->second / (static_cast<double>(amount) * makespan);
  }
  for (const auto& [resource, amount] : run.lost) (*result.mutable_lost())[resource] = amount;
  result.set_evictions(run.evictions);
  result.set_cycles(run.cycles);
  return result;
}

std::string JobsCsv(const Workload& workload, const ReplayRun& run) {
  std::string text = "name,submit,wait,run,end,slowdown\n";
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    const TraceJob& job = workload.jobs[i];
    const Outcome& outcome = run.outcomes[i];
    absl::StrAppendFormat(&text, "%s,%.15g,", Quoted(job.name), Seconds(job.submit));
    if (Started(outcome))
      absl::StrAppendFormat(&text, "%.15g", Seconds(outcome.first_start - job.submit));
    absl::StrAppendFormat(&text, ",%.15g,", Seconds(job.run));
    if (Finished(outcome)) {
      absl::StrAppendFormat(&text, "%.15g,%.15g", Seconds(outcome.end),
                            SlowdownOf(job, outcome.end - job.submit - job.run));
    } else {
      text += ",";
    }
    text += "\n";
  }
  return text;
}

sim::v1::FillPolicy Figures(const std::vector<FillRun>& runs, const std::string& name) {
  sim::v1::FillPolicy sums;
  const auto count = static_cast<double>(runs.size());
  const auto mean = [&](auto&& of) {
    double sum = 0;
    for (const FillRun& run : runs) sum += static_cast<double>(of(run));
    return sum / count;
  };
  const double at = mean([](const FillRun& run) { return 100 * run.at_capacity; });
  const double squares = mean([&](const FillRun& run) {
    return (100 * run.at_capacity - at) * (100 * run.at_capacity - at);
  });
  sums.set_name(name);
  sums.set_at_capacity(at);
  sums.set_deviation(std::sqrt(squares));
  sums.set_at_end(mean([](const FillRun& run) { return 100 * run.at_end; }));
  sums.set_dropped(mean([](const FillRun& run) { return run.dropped; }));
  sums.set_mixes(mean([](const FillRun& run) { return run.mixes; }));
  sums.set_seconds(mean([](const FillRun& run) { return run.seconds; }));
  return sums;
}

std::string Printed(const sim::v1::FillResult& result, absl::string_view format) {
  if (format != "table") return PrintedMessage(result, format);
  std::string text =
      absl::StrFormat("%s: %d jobs, %d orders, %d jobs known before; GPUs in use, in per cent\n",
                      result.workload(), result.jobs(), result.seeds_size(), result.known());
  const std::string end = absl::StrFormat("at %.0f %%", 100 * result.demand());
  absl::StrAppendFormat(&text, "%-20s %9s %6s %9s %9s %6s %8s\n", "policy", "at 100 %", "+-", end,
                        "dropped", "mixes", "seconds");
  for (const sim::v1::FillPolicy& one : result.policies()) {
    absl::StrAppendFormat(&text, "%-20s %9.2f %6.2f %9.2f %9.1f %6.1f %8.2f\n", one.name(),
                          one.at_capacity(), one.deviation(), one.at_end(), one.dropped(),
                          one.mixes(), one.seconds());
  }
  return text;
}

std::string Printed(const sim::v1::ReplayResult& result, absl::string_view format) {
  return format == "table" ? Table(result) : PrintedMessage(result, format);
}

}  // namespace berth::replay
