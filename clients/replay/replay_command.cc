#include "clients/replay/replay_command.h"

#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "clients/replay/csv_workload.h"
#include "clients/replay/fill.h"
#include "clients/replay/gnuplot.h"
#include "clients/replay/history_workload.h"
#include "clients/replay/plots.h"
#include "clients/replay/replay.h"
#include "clients/replay/replay_result.h"
#include "clients/replay/swf.h"
#include "clients/replay/trace_file.h"
#include "clients/sim/scenario_file.h"

namespace berth::replay {
namespace {

absl::StatusOr<std::string> FormatOf(const ReplayArguments& arguments) {
  if (!arguments.format.empty()) return arguments.format;
  const absl::string_view name = absl::StripSuffix(arguments.trace, ".gz");
  if (absl::EndsWith(name, ".jsonl")) return std::string("history");
  for (const char* format : {"swf", "csv"}) {
    if (absl::EndsWith(name, absl::StrCat(".", format))) return std::string(format);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(arguments.trace, ": neither .swf, .csv nor .jsonl: say --format"));
}

absl::StatusOr<Workload> ReadWorkload(const ReplayArguments& arguments) {
  const absl::StatusOr<std::string> format = FormatOf(arguments);
  if (!format.ok()) return format.status();
  absl::StatusOr<std::string> text = ReadTraceFile(arguments.trace);
  if (!text.ok()) return text.status();
  if (*format == "swf") {
    if (!arguments.columns.empty()) return absl::InvalidArgumentError("--columns is for CSV");
    const SwfOptions options{.one_task = arguments.cluster.empty(),
                             .processors = arguments.processors,
                             .perfect_times = arguments.perfect_times};
    return ReadSwf(*text, arguments.trace, options);
  }
  if (arguments.cluster.empty()) {
    return absl::InvalidArgumentError("CSV and histories need --cluster");
  }
  if (arguments.processors != 0) return absl::InvalidArgumentError("--processors is for SWF");
  if (arguments.perfect_times) return absl::InvalidArgumentError("--perfect-times is for SWF");
  if (*format == "history") {
    if (!arguments.columns.empty()) return absl::InvalidArgumentError("--columns is for CSV");
    return ReadHistory(*text, arguments.trace);
  }
  const bool timed = arguments.fill == 0;
  const absl::StatusOr<ColumnMap> columns = ParseColumns(arguments.columns, timed);
  if (!columns.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--columns: ", columns.status().message()));
  }
  return ReadCsv(*text, arguments.trace, *columns);
}

// Keeps jobs skip, skip + 1, ..., so many.
absl::Status Cut(const ReplayArguments& arguments, Workload* workload) {
  std::vector<TraceJob>& jobs = workload->jobs;
  if (arguments.skip > 0 && arguments.skip >= static_cast<int64_t>(jobs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.trace, ": --skip leaves nothing of ", jobs.size(), " jobs"));
  }
  jobs.erase(jobs.begin(), jobs.begin() + arguments.skip);
  if (arguments.take > 0 && arguments.take < static_cast<int64_t>(jobs.size())) {
    jobs.resize(static_cast<size_t>(arguments.take));
  }
  return absl::OkStatus();
}

// The one document of the file.
absl::StatusOr<ScenarioDocument> ReadOne(const std::string& path) {
  absl::StatusOr<std::vector<ScenarioDocument>> documents = ReadScenarioFile(path);
  if (!documents.ok()) return documents.status();
  if (documents->size() == 1) return std::move(documents->front());
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", documents->size(), " documents where one is wanted"));
}

// "a/b.yaml" -> "b".
std::string StemOf(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  return name.substr(0, name.find_last_of('.'));
}

struct Case {
  std::string name;
  ScenarioDocument cluster;
};

// The cluster, with each configuration in place of its own.
absl::StatusOr<std::vector<Case>> CasesOf(const ReplayArguments& arguments, int64_t processors) {
  Case plain{.name = "default", .cluster = {}};
  if (arguments.cluster.empty()) {
    plain.cluster.scenario = OneMachine(processors);
    plain.cluster.file = arguments.trace;
  } else {
    auto read = ReadOne(arguments.cluster);
    if (!read.ok()) return read.status();
    plain.cluster = *std::move(read);
  }
  if (arguments.configs.empty()) return std::vector<Case>{plain};
  std::vector<Case> cases;
  for (const std::string& path : arguments.configs) {
    const absl::StatusOr<ScenarioDocument> config = ReadOne(path);
    if (!config.ok()) return config.status();
    sim::v1::Scenario rest = config->scenario;
    rest.clear_config();
    rest.clear_name();
    if (rest.ByteSizeLong() > 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": only \"config\" is taken"));
    }
    Case one = plain;
    one.name = StemOf(path);
    *one.cluster.scenario.mutable_config() = config->scenario.config();
    cases.push_back(std::move(one));
  }
  return cases;
}

absl::StatusOr<ReplayOptions> OptionsFrom(const ReplayArguments& arguments) {
  ReplayOptions options;
  options.record = !arguments.plots.empty();
  if (options.record) {  // before hours have gone by
    if (auto status = FindGnuplot(); !status.ok()) return status;
  }
  if (arguments.outages.empty()) return options;
  const absl::StatusOr<std::string> text = ReadTraceFile(arguments.outages);
  if (!text.ok()) return text.status();
  auto outages = ReadOutages(*text, arguments.outages);
  if (!outages.ok()) return outages.status();
  options.outages = *std::move(outages);
  return options;
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written"));
}

}  // namespace

absl::StatusOr<sim::v1::ReplayResult> RunReplay(const ReplayArguments& arguments) {
  absl::StatusOr<Workload> workload = ReadWorkload(arguments);
  if (!workload.ok()) return workload.status();
  if (auto status = Cut(arguments, &*workload); !status.ok()) return status;
  const absl::StatusOr<std::vector<Case>> cases = CasesOf(arguments, workload->processors);
  if (!cases.ok()) return cases.status();
  const absl::StatusOr<ReplayOptions> options = OptionsFrom(arguments);
  if (!options.ok()) return options.status();
  sim::v1::ReplayResult result;
  result.set_workload(arguments.trace);
  result.set_jobs(static_cast<int64_t>(workload->jobs.size()));
  result.mutable_left_out()->insert(workload->left_out.begin(), workload->left_out.end());
  const std::map<std::string, int64_t> counts = CountsOf(*workload);
  result.mutable_counted()->insert(counts.begin(), counts.end());
  std::vector<PlottedRun> plotted;
  for (const Case& one : *cases) {
    absl::StatusOr<ReplayRun> run = Replay(*workload, one.cluster.scenario, *options);
    if (!run.ok()) return Located(one.cluster, run.status());
    *result.add_policies() = Figures(*workload, *run, one.name);
    if (!arguments.jobs.empty() && result.policies_size() == 1) {
      const absl::Status status = WriteFile(arguments.jobs, JobsCsv(*workload, *run));
      if (!status.ok()) return status;
    }
    if (options->record) plotted.push_back({.name = one.name, .slug = {}, .run = *std::move(run)});
  }
  if (!options->record) return result;
  std::vector<std::string> names;
  for (const PlottedRun& one : plotted) names.push_back(one.name);
  const std::vector<std::string> slugs = SlugsOf(names);
  for (size_t i = 0; i < slugs.size(); ++i) plotted[i].slug = slugs[i];
  if (auto status = Plot(*workload, plotted, arguments.plots); !status.ok()) return status;
  return result;
}

absl::StatusOr<sim::v1::FillResult> RunFill(const ReplayArguments& arguments) {
  absl::StatusOr<Workload> workload = ReadWorkload(arguments);
  if (!workload.ok()) return workload.status();
  if (auto status = Cut(arguments, &*workload); !status.ok()) return status;
  if (arguments.cluster.empty() || !arguments.jobs.empty() || !arguments.plots.empty() ||
      !arguments.outages.empty()) {
    return absl::InvalidArgumentError(
        "--fill needs --cluster, and takes no --jobs, --plots and --outages");
  }
  const absl::StatusOr<std::vector<Case>> cases = CasesOf(arguments, workload->processors);
  if (!cases.ok()) return cases.status();
  std::vector<uint64_t> seeds = arguments.seeds;
  if (seeds.empty()) seeds = {1};
  sim::v1::FillResult result;
  result.set_workload(arguments.trace);
  result.set_jobs(static_cast<int64_t>(workload->jobs.size()));
  result.mutable_seeds()->Assign(seeds.begin(), seeds.end());
  result.set_demand(arguments.fill);
  result.set_known(arguments.known);
  for (const Case& one : *cases) {
    std::vector<FillRun> runs;
    for (const uint64_t seed : seeds) {
      const auto run = Fill(*workload, one.cluster.scenario,
                            {.demand = arguments.fill, .seed = seed, .known = arguments.known});
      if (!run.ok()) return Located(one.cluster, run.status());
      runs.push_back(*run);
    }
    *result.add_policies() = Figures(runs, one.name);
  }
  return result;
}

}  // namespace berth::replay
