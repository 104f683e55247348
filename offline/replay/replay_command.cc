#include "offline/replay/replay_command.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "offline/replay/csv_workload.h"
#include "offline/replay/fill.h"
#include "offline/replay/gnuplot.h"
#include "offline/replay/history_workload.h"
#include "offline/replay/jitter.h"
#include "offline/replay/network_progress.h"
#include "offline/replay/network_result.h"
#include "offline/replay/plots.h"
#include "offline/replay/replay.h"
#include "offline/replay/replay_result.h"
#include "offline/replay/swf.h"
#include "offline/replay/trace_file.h"
#include "offline/replay/training_costs.h"
#include "offline/replay/training_progress.h"
#include "offline/replay/training_result.h"
#include "offline/replay/watch.h"
#include "offline/sim/scenario_file.h"

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
      absl::StrCat(arguments.trace, ": neither .swf, .csv nor .jsonl: give --format"));
}

absl::StatusOr<Workload> ReadAny(const ReplayArguments& arguments) {
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

absl::StatusOr<Workload> ReadWorkload(const ReplayArguments& arguments) {
  absl::StatusOr<Workload> workload = ReadAny(arguments);
  if (!workload.ok()) return workload;
  if (auto status = CheckAnyJob(*workload, arguments.trace); !status.ok()) return status;
  return workload;
}

// Keeps `take` jobs from job `skip` on.
absl::Status Cut(const ReplayArguments& arguments, Workload* workload) {
  std::vector<TraceJob>& jobs = workload->jobs;
  if (arguments.skip > 0 && arguments.skip >= static_cast<int64_t>(jobs.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.trace, ": --skip leaves none of ", jobs.size(), " jobs"));
  }
  jobs.erase(jobs.begin(), jobs.begin() + arguments.skip);
  if (arguments.take > 0 && arguments.take < static_cast<int64_t>(jobs.size())) {
    jobs.resize(static_cast<size_t>(arguments.take));
  }
  return absl::OkStatus();
}

// The only document of the file.
absl::StatusOr<ScenarioDocument> ReadOne(const std::string& path) {
  absl::StatusOr<std::vector<ScenarioDocument>> documents = ReadScenarioFile(path);
  if (!documents.ok()) return documents.status();
  if (documents->size() == 1) return std::move(documents->front());
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": expected one document, got ", documents->size()));
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
  std::optional<ScenarioDocument> config;  // its "config" replaces that of the cluster
  JobTemplate jobs;
  bool templated = false;
  TrainingEntries training;
};

// Adds the name of the file to the error.
absl::Status WithConfigFile(const Case& one, const absl::Status& status) {
  const bool of_config = absl::StartsWith(status.message(), "config");
  return Located(of_config && one.config.has_value() ? *one.config : one.cluster, status);
}

// Every case with every policy of --policy instead of its own.
std::vector<Case> WithPolicies(const ReplayArguments& arguments, std::vector<Case> cases) {
  if (arguments.policies.empty()) return cases;
  std::vector<Case> all;
  for (const Case& plain : cases) {
    for (const std::string& name : arguments.policies) {
      Case one = plain;
      one.name = arguments.configs.empty() ? name : absl::StrCat(plain.name, " ", name);
      sim::v1::SharingParameters::Policy policy{};
      sim::v1::SharingParameters::Policy_Parse(absl::AsciiStrToUpper(name), &policy);
      one.cluster.scenario.mutable_config()->mutable_sharing()->set_policy(policy);
      all.push_back(std::move(one));
    }
  }
  return all;
}

// The cluster, with every configuration instead of its own.
absl::StatusOr<std::vector<Case>> CasesOf(const ReplayArguments& arguments, int64_t processors) {
  Case plain{.name = "default", .cluster = {}, .jobs = {}};
  if (arguments.cluster.empty()) {
    plain.cluster.scenario = OneMachine(processors);
    plain.cluster.file = arguments.trace;
  } else {
    auto read = ReadOne(arguments.cluster);
    if (!read.ok()) return read.status();
    plain.cluster = *std::move(read);
  }
  if (arguments.configs.empty()) return WithPolicies(arguments, {plain});
  std::vector<Case> cases;
  for (const std::string& path : arguments.configs) {
    const absl::StatusOr<ScenarioDocument> config = ReadOne(path);
    if (!config.ok()) return config.status();
    sim::v1::Scenario rest = config->scenario;
    rest.clear_config();
    rest.clear_name();
    rest.clear_jobs();
    rest.clear_training();
    if (rest.ByteSizeLong() > 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": only \"config\", \"jobs\" and \"training\" are allowed"));
    }
    if (auto status = CheckTraining(config->scenario.training()); !status.ok()) {
      return Located(*config, status);
    }
    const absl::StatusOr<JobTemplate> jobs = ToJobTemplate(config->scenario);
    if (!jobs.ok()) return Located(*config, jobs.status());
    Case one = plain;
    one.jobs = *jobs;
    one.templated = config->scenario.jobs_size() > 0 || config->scenario.training_size() > 0;
    one.name = StemOf(path);
    *one.cluster.scenario.mutable_config() = config->scenario.config();
    one.training = config->scenario.training();
    one.config = *config;
    cases.push_back(std::move(one));
  }
  return WithPolicies(arguments, std::move(cases));
}

absl::StatusOr<ReplayOptions> OptionsFrom(const ReplayArguments& arguments) {
  ReplayOptions options;
  options.record = !arguments.plots.empty();
  options.places = !arguments.jobs.empty();
  if (options.record) {  // fail early, not after hours
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

// What the run times of jobs depend on, beside the workload.
struct Model {
  std::optional<sim::v1::NetworkModel> network;
  std::optional<FaultModel> faults;
};

// The models of --network and --faults, if any. Stretches requested times as the network says.
absl::StatusOr<Model> ModelOf(const ReplayArguments& arguments, Workload* workload) {
  Model model;
  if (!arguments.faults.empty()) {
    absl::StatusOr<FaultModel> faults = ReadFaultFile(arguments.faults);
    if (!faults.ok()) return faults.status();
    model.faults = *std::move(faults);
  }
  if (arguments.network.empty()) return model;
  absl::StatusOr<sim::v1::NetworkModel> network = ReadNetworkFile(arguments.network);
  if (!network.ok()) return network.status();
  StretchRequested(*network, workload);
  model.network = *std::move(network);
  return model;
}

bool AnyCosts(const Workload& workload) {
  return std::any_of(workload.jobs.begin(), workload.jobs.end(), [](const TraceJob& job) {
    const TraceCosts& costs = job.costs;
    return costs.interval.has_value() || costs.checkpoint.has_value() || costs.restart.has_value();
  });
}

// Whether jobs save their work, and start again from what they saved.
bool Trains(const Workload& workload, const Case& one, const Model& model) {
  return model.faults.has_value() || !one.training.empty() || AnyCosts(workload);
}

absl::Status CheckModels(const Workload& workload, const std::vector<Case>& cases,
                         const Model& model) {
  const bool classes = std::any_of(workload.jobs.begin(), workload.jobs.end(),
                                   [](const TraceJob& job) { return !job.training.empty(); });
  for (const Case& one : cases) {
    if (model.network.has_value() && Trains(workload, one, model)) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, ": --network excludes costs of checkpoints and restarts"));
    }
    if (classes && !model.network.has_value() && one.training.empty()) {
      return absl::InvalidArgumentError(
          "--columns: class needs --network, or \"training\" in each --config");
    }
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, ": cannot be written"));
}

struct Ran {
  ReplayRun run;
  sim::v1::PolicyResult figures;
};

absl::StatusOr<Ran> RunOne(const Workload& workload, const Case& one, const Model& model,
                           ReplayOptions options) {
  options.jobs = one.jobs;
  std::optional<Network> network;
  std::optional<NetworkProgress> progress;
  std::optional<TrainingProgress> training;
  if (model.network.has_value()) {
    absl::StatusOr<Network> made = NetworkFor(*model.network, workload);
    if (!made.ok()) return made.status();
    network = *std::move(made);
    progress.emplace(workload, *network);
    options.progress = &*progress;
  } else if (Trains(workload, one, model)) {
    auto costs = CostsOf(one.training, one.jobs.checkpoint_interval, workload);
    if (!costs.ok()) return costs.status();
    training.emplace(workload, *std::move(costs));
    options.progress = &*training;
    if (model.faults.has_value()) options.faults = &*model.faults;
  }
  absl::StatusOr<ReplayRun> run = Replay(workload, one.cluster.scenario, options);
  if (!run.ok()) return WithConfigFile(one, run.status());
  Ran ran{.run = *std::move(run), .figures = {}};
  ran.figures = Figures(workload, ran.run, one.name);
  if (progress.has_value()) {
    *ran.figures.mutable_network() = FiguresOf(workload, ran.run, progress->Take());
  }
  if (training.has_value()) {
    *ran.figures.mutable_training() = FiguresOf(workload, ran.run, training->Take());
  }
  return ran;
}

// The arguments and the watch.
struct Work {
  const ReplayArguments& arguments;
  const Workload& workload;
  ErrorWatch& watch;
};

// The mean over the finished copies, one for each seed; of no copies if none is finished.
absl::StatusOr<sim::v1::PolicyResult> ReplayCopies(const Work& work, const Case& one,
                                                   const Model& model,
                                                   const ReplayOptions& options) {
  std::vector<uint64_t> seeds = work.arguments.seeds;
  if (seeds.empty()) seeds = {1};
  std::vector<sim::v1::PolicyResult> results;
  for (const uint64_t seed : seeds) {
    work.watch.Begin(absl::StrCat(one.name, ", seed ", seed));
    const Workload copy = Jittered(work.workload, work.arguments.jitter, seed);
    ReplayOptions seeded = options;
    seeded.fault_seed = seed;
    absl::StatusOr<Ran> ran = RunOne(copy, one, model, seeded);
    if (!ran.ok()) return ran.status();
    if (ran->run.interrupted) break;
    results.push_back(std::move(ran->figures));
  }
  sim::v1::PolicyResult mean = results.empty() ? sim::v1::PolicyResult() : MeanOf(results);
  mean.set_copies(static_cast<int64_t>(results.size()));
  return mean;
}

// One replay for each seed.
bool MakesCopies(const ReplayArguments& arguments) {
  return arguments.jitter > absl::ZeroDuration() || !arguments.seeds.empty();
}

absl::Status CheckJitter(const ReplayArguments& arguments) {
  const bool jitters = arguments.jitter > absl::ZeroDuration();
  const bool copies = MakesCopies(arguments);
  if (!jitters && arguments.faults.empty() && copies) {
    return absl::InvalidArgumentError("--seeds needs --jitter, --faults or --fill");
  }
  const char* why = jitters ? "--jitter makes several" : "--seeds makes several";
  if (copies && !arguments.jobs.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs needs one replay, but ", why));
  }
  if (copies && !arguments.plots.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--plots needs one replay, but ", why));
  }
  const bool whole = absl::Trunc(arguments.jitter, absl::Seconds(1)) == arguments.jitter;
  if (arguments.jitter < absl::ZeroDuration() || !whole) {
    return absl::InvalidArgumentError("--jitter must be a whole number of seconds");
  }
  return absl::OkStatus();
}

absl::Status PlotAll(const Work& work, std::vector<PlottedRun> plotted) {
  if (plotted.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const PlottedRun& one : plotted) names.push_back(one.name);
  const std::vector<std::string> slugs = SlugsOf(names);
  for (size_t i = 0; i < slugs.size(); ++i) plotted[i].slug = slugs[i];
  return Plot(work.workload, plotted, work.arguments.plots);
}

// Adds one configuration after the other to the result, until stopped.
absl::Status ReplayAll(const Work& work, const std::vector<Case>& cases, const Model& model,
                       const ReplayOptions& options, sim::v1::ReplayResult* result) {
  std::vector<PlottedRun> plotted;
  bool first = true;
  for (const Case& one : cases) {
    if (work.watch.stopped()) break;
    if (MakesCopies(work.arguments)) {
      const auto mean = ReplayCopies(work, one, model, options);
      if (!mean.ok()) return mean.status();
      if (mean->copies() > 0) *result->add_policies() = *mean;
      continue;
    }
    work.watch.Begin(one.name);
    absl::StatusOr<Ran> ran = RunOne(work.workload, one, model, options);
    if (!ran.ok()) return ran.status();
    if (std::exchange(first, false) && !work.arguments.jobs.empty()) {
      const std::string jobs = JobsCsv(work.workload, ran->run);
      if (auto status = WriteFile(work.arguments.jobs, jobs); !status.ok()) return status;
    }
    if (ran->run.interrupted) break;
    *result->add_policies() = std::move(ran->figures);
    if (options.record) {
      plotted.push_back({.name = one.name, .slug = {}, .run = std::move(ran->run)});
    }
  }
  return options.record ? PlotAll(work, std::move(plotted)) : absl::OkStatus();
}

// The finished runs, one for each seed, and the unfinished part of the next.
struct Fillings {
  std::vector<FillRun> finished;
  std::optional<FillRun> begun;
};

absl::StatusOr<Fillings> FillOrders(const Work& work, const Case& one,
                                    const std::vector<uint64_t>& seeds) {
  Fillings fillings;
  for (const uint64_t seed : seeds) {
    work.watch.Begin(absl::StrCat(one.name, ", seed ", seed));
    auto run = Fill(work.workload, one.cluster.scenario,
                    {.demand = work.arguments.fill,
                     .seed = seed,
                     .known = work.arguments.known,
                     .watch = &work.watch});
    if (!run.ok()) return WithConfigFile(one, run.status());
    if (run->interrupted) {
      fillings.begun = *std::move(run);
      break;
    }
    fillings.finished.push_back(*std::move(run));
  }
  return fillings;
}

absl::Status WriteFillJobs(const Work& work, const Fillings& fillings) {
  std::vector<FillRun> runs = fillings.finished;
  if (fillings.begun.has_value()) runs.push_back(*fillings.begun);
  return WriteFile(work.arguments.jobs, FillJobsCsv(work.workload, runs));
}

}  // namespace

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  const auto* policies = sim::v1::SharingParameters::Policy_descriptor();
  for (int i = 0; i < policies->value_count(); ++i) {
    if (policies->value(i)->number() == sim::v1::SharingParameters::POLICY_UNSPECIFIED) continue;
    names.push_back(absl::AsciiStrToLower(std::string(policies->value(i)->name())));
  }
  return names;
}

absl::StatusOr<sim::v1::ReplayResult> RunReplay(const ReplayArguments& arguments) {
  if (auto status = CheckJitter(arguments); !status.ok()) return status;
  absl::StatusOr<Workload> workload = ReadWorkload(arguments);
  if (!workload.ok()) return workload.status();
  if (auto status = Cut(arguments, &*workload); !status.ok()) return status;
  if (arguments.load != 1) SetLoad(arguments.load, &*workload);
  const absl::StatusOr<Model> model = ModelOf(arguments, &*workload);
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::vector<Case>> cases = CasesOf(arguments, workload->processors);
  if (!cases.ok()) return cases.status();
  if (auto status = CheckModels(*workload, *cases, *model); !status.ok()) return status;
  absl::StatusOr<ReplayOptions> options = OptionsFrom(arguments);
  if (!options.ok()) return options.status();
  ErrorWatch watch(arguments.quiet);
  options->watch = &watch;
  sim::v1::ReplayResult result;
  result.set_workload(arguments.trace);
  result.set_jobs(static_cast<int64_t>(workload->jobs.size()));
  result.mutable_left_out()->insert(workload->left_out.begin(), workload->left_out.end());
  const std::map<std::string, int64_t> counts = CountsOf(*workload);
  result.mutable_counted()->insert(counts.begin(), counts.end());
  if (auto status = ReplayAll({arguments, *workload, watch}, *cases, *model, *options, &result);
      !status.ok()) {
    return status;
  }
  result.set_interrupted(watch.stopped());
  return result;
}

absl::StatusOr<sim::v1::FillResult> RunFill(const ReplayArguments& arguments) {
  absl::StatusOr<Workload> workload = ReadWorkload(arguments);
  if (!workload.ok()) return workload.status();
  if (auto status = Cut(arguments, &*workload); !status.ok()) return status;
  if (arguments.cluster.empty() || !arguments.plots.empty() || !arguments.outages.empty() ||
      !arguments.network.empty() || !arguments.faults.empty()) {
    return absl::InvalidArgumentError(
        "--fill needs --cluster, and takes no --plots, --outages, --network and --faults");
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
  ErrorWatch watch(arguments.quiet);
  const Work work = {arguments, *workload, watch};
  for (const Case& one : *cases) {
    if (one.templated) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, ": --fill takes no \"jobs\" and no \"training\""));
    }
    if (watch.stopped()) break;
    const absl::StatusOr<Fillings> fillings = FillOrders(work, one, seeds);
    if (!fillings.ok()) return fillings.status();
    if (&one == &cases->front() && !arguments.jobs.empty()) {
      if (auto status = WriteFillJobs(work, *fillings); !status.ok()) return status;
    }
    if (!fillings->finished.empty()) {
      *result.add_policies() = Figures(fillings->finished, one.name);
    }
  }
  result.set_interrupted(watch.stopped());
  return result;
}

}  // namespace berth::replay
