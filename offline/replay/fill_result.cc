#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/replay/csv_rows.h"
#include "offline/replay/replay_result.h"
#include "offline/sim/output.h"
#include "support/visible_message.h"

namespace berth::replay {

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
  sums.set_orders(static_cast<int64_t>(runs.size()));
  sums.set_at_capacity(at);
  sums.set_deviation(std::sqrt(squares));
  sums.set_at_end(mean([](const FillRun& run) { return 100 * run.at_end; }));
  sums.set_dropped(mean([](const FillRun& run) { return run.dropped; }));
  sums.set_mixes(mean([](const FillRun& run) { return run.mixes; }));
  sums.set_seconds(mean([](const FillRun& run) { return run.seconds; }));
  return sums;
}

std::string FillJobsCsv(const Workload& workload, const std::vector<FillRun>& runs) {
  std::string text = "seed,arrival,name,cpu_millis,memory,gpu_milli,node,devices\n";
  for (const FillRun& run : runs) {
    for (size_t i = 0; i < run.arrivals.size(); ++i) {
      const TraceJob& job = workload.jobs[run.arrivals[i].job];
      const std::vector<TaskPlace> place = {run.arrivals[i].place};
      absl::StrAppend(&text, run.seed, ",", i + 1, ",", CsvField(job.name), ",",
                      job.shape.cpu_millis, ",", job.shape.memory_bytes, ",", AskedOf(job), ",",
                      CsvField(run.names.Nodes(place)), ",", CsvField(run.names.Devices(place)),
                      "\n");
    }
  }
  return text;
}

namespace {

std::string Table(const sim::v1::FillResult& result) {
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

}  // namespace

std::string Printed(const sim::v1::FillResult& result, absl::string_view format) {
  return format == "table" ? Table(VisibleCopy(result)) : PrintedFigures(result, format);
}

}  // namespace berth::replay
