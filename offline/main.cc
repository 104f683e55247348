// berth-sim: the scheduler without a cluster.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "offline/replay/compare.h"
#include "offline/replay/replay_command.h"
#include "offline/replay/replay_result.h"
#include "offline/replay/watch.h"
#include "offline/sim/output.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"
#include "offline/sim/update.h"
#include "offline/sim/verify.h"
#include "offline/whatif/whatif_command.h"
#include "storage/restore.h"
#include "storage/rocksdb/offline_store.h"
#include "support/command_line.h"
#include "support/number_check.h"
#include "support/quantity.h"
#include "support/visible.h"

namespace berth {
namespace {

constexpr int kDiffers = 1;  // from what was expected
constexpr int kBroken = 2;   // cannot be read or run

// Prints an error, which may quote files of others. Returns the exit code.
int Broken(const absl::Status& status) {
  std::cerr << VisibleLines(status.message()) << "\n";
  return kBroken;
}

struct RunArguments {
  std::vector<std::string> files;
  std::string format = "json";
  std::string only;
  std::string tasks = "all";
  bool check = false;
  bool update = false;
};

absl::StatusOr<ScenarioRun> RunOne(const RunArguments& arguments, const ScenarioDocument& one) {
  RunOptions options;
#ifndef NDEBUG
  options.check_consistency = true;
#endif
  options.tasks_each_cycle = arguments.tasks == "all";
  auto run =
      arguments.check ? CheckScenario(one.scenario, options) : RunScenario(one.scenario, options);
  if (!run.ok()) return Located(one, run.status());
  return run;
}

// A pending scenario is expected to differ.
bool MatchesExpectation(const ScenarioDocument& one, const std::vector<std::string>& wrong) {
  return wrong.empty() == one.scenario.pending().empty();
}

void Report(const ScenarioDocument& one, const std::vector<std::string>& wrong) {
  const std::string& pending = one.scenario.pending();
  const char* word =
      MatchesExpectation(one, wrong) ? (pending.empty() ? "ok   " : "pend ") : "FAIL ";
  std::cout << word << Visible(one.scenario.name()) << (pending.empty() ? "" : ": ")
            << Visible(pending) << "\n";
  if (wrong.empty() && !pending.empty()) std::cout << "  passes now: remove its \"pending\"\n";
  for (const std::string& line : wrong) std::cout << (pending.empty() ? "" : "  ") << line << "\n";
}

// Prints the result of one document. Returns the exit code.
int Check(const ScenarioDocument& one, const absl::StatusOr<ScenarioRun>& run) {
  std::vector<std::string> wrong;
  if (!run.ok()) wrong.push_back(VisibleLines(run.status().message()));
  for (int i = 0; run.ok() && i < run->result.mismatches_size(); ++i) {
    const absl::Status line = absl::InvalidArgumentError(run->result.mismatches(i));
    wrong.push_back(Visible(Located(one, line).message()));
  }
  Report(one, wrong);
  if (MatchesExpectation(one, wrong)) return 0;
  return run.ok() ? kDiffers : kBroken;
}

int Print(const RunArguments& arguments, const absl::StatusOr<ScenarioRun>& run) {
  if (run.ok()) {
    std::cout << Printed(run->result, arguments.format);
    return 0;
  }
  return Broken(run.status());
}

int RunFile(const RunArguments& arguments, const std::string& file) {
  const auto documents = ReadScenarioFile(file);
  if (!documents.ok()) return Broken(documents.status());
  int code = 0;
  Updates updates;
  for (const ScenarioDocument& one : *documents) {
    if (!arguments.only.empty() && one.scenario.name() != arguments.only) continue;
    const absl::StatusOr<ScenarioRun> run = RunOne(arguments, one);
    code = std::max(code, arguments.check ? Check(one, run) : Print(arguments, run));
    if (arguments.update && run.ok()) updates.Add(one, *run);
  }
  if (!arguments.update) return code;
  const absl::Status status = updates.Write(file);
  if (status.ok()) return code == kDiffers ? 0 : code;
  return Broken(status);
}

int Verify(const std::string& directory, const std::string& format) {
  const auto offline = OfflineStore::Open(directory);
  if (!offline.ok()) {
    Broken(offline.status());
    if (absl::IsDataLoss(offline.status())) std::cerr << HowToRestore(directory) << "\n";
    return kBroken;
  }
  const absl::StatusOr<sim::v1::VerifyResult> result = VerifyLog((*offline)->store());
  if (!result.ok()) return Broken(result.status());
  std::cout << PrintedVerify(*result, format);
  return result->has_difference() ? kDiffers : 0;
}

// The exit code that a shell returns for a process ended by a signal.
int Interrupted() {
  std::cerr << "interrupted: only what was finished by then is printed\n";
  return 128 + replay::ErrorWatch::signal();
}

int Fill(const replay::ReplayArguments& arguments, const std::string& format) {
  const absl::StatusOr<sim::v1::FillResult> result = replay::RunFill(arguments);
  if (!result.ok()) return Broken(result.status());
  std::cout << replay::Printed(*result, format);
  return result->interrupted() ? Interrupted() : 0;
}

int Compare(const std::vector<std::string>& files, const std::string& format, replay::TableOf of) {
  const auto comparisons = replay::Compare(files[0], files[1]);
  if (!comparisons.ok()) return Broken(comparisons.status());
  std::cout << replay::Printed(*comparisons, format, of);
  return 0;
}

struct ReplayCommand {
  CLI::App* app = nullptr;
  replay::ReplayArguments arguments;
  std::vector<std::string> compare;  // two files with results, instead of a replay
  std::string format = "table";
  std::string jitter = "0";
  std::string by;
};

replay::TableOf OwnersOf(const std::string& by) {
  if (by.empty()) return replay::TableOf::kAll;
  return by == "queue" ? replay::TableOf::kQueues : replay::TableOf::kUsers;
}

int Replay(const ReplayCommand& command) {
  replay::ReplayArguments arguments = command.arguments;
  const auto jitter = ParseDuration(command.jitter);
  if (!jitter.ok()) {
    std::cerr << "--jitter: " << jitter.status().message() << "\n";
    return kBroken;
  }
  arguments.jitter = absl::Seconds(jitter->seconds) + absl::Nanoseconds(jitter->nanos);
  if (!command.compare.empty()) {
    if (!arguments.plots.empty()) {
      std::cerr << "--compare takes no --plots\n";
      return kBroken;
    }
    return Compare(command.compare, command.format, OwnersOf(command.by));
  }
  if (arguments.trace.empty()) {
    std::cerr << "TRACE is required, or --compare\n";
    return kBroken;
  }
  if (arguments.fill > 0) return Fill(arguments, command.format);
  const absl::StatusOr<sim::v1::ReplayResult> result = replay::RunReplay(arguments);
  if (!result.ok()) return Broken(result.status());
  std::cout << replay::Printed(*result, command.format, OwnersOf(command.by));
  return result->interrupted() ? Interrupted() : 0;
}

// Options of the workload.
void AddWorkload(ReplayCommand* to) {
  to->app
      ->add_option("--format", to->arguments.format,
                   "swf, csv or history; default: by the name of the file")
      ->check(CLI::IsMember({"swf", "csv", "history"}));
  to->app->add_option("--columns", to->arguments.columns,
                      "For CSV: FIELD=COLUMN, separated by commas");
  to->app
      ->add_option("--processors", to->arguments.processors,
                   "For SWF: processors of the machine; default: MaxProcs of the header")
      ->check(WholeNumber<int64_t>(1, int64_t{1} << 30));
  to->app->add_flag("--perfect-times", to->arguments.perfect_times,
                    "For SWF: every job requests exactly its run time");
  to->app->add_option("--skip", to->arguments.skip, "Skip this many jobs, by submit time")
      ->check(WholeNumber<int64_t>(0));
  to->app->add_option("--take", to->arguments.take, "Then replay this many jobs; default: all")
      ->check(WholeNumber<int64_t>(0));
}

// Options of repetitions and order.
void AddCopies(ReplayCommand* to) {
  CLI::Option* fill =
      to->app
          ->add_option("--fill", to->arguments.fill,
                       "Fill the cluster instead: jobs arrive in random order, never end, and are "
                       "dropped if they do not fit at once, until they have requested this many "
                       "times the GPUs of the cluster")
          ->check(RealNumber(0.01, 100.0));
  to->app
      ->add_option("--load", to->arguments.load,
                   "Jobs arrive this many times as fast (1.2: a fifth more work)")
      ->check(RealNumber(0.001, 1000.0))
      ->excludes(fill);
  to->app
      ->add_option("--jitter", to->jitter,
                   "Replay copies in which each job arrives up to this much later (120s), and "
                   "print the means")
      ->excludes(fill);
  to->app
      ->add_option("--seeds", to->arguments.seeds,
                   "Seeds of the copies (--jitter, --faults) or of the orders (--fill); default 1")
      ->delimiter(',')
      ->allow_extra_args(false);
  to->app
      ->add_option("--known", to->arguments.known,
                   "With --fill: this many jobs, drawn from the list, are known in advance")
      ->needs(fill)
      ->check(WholeNumber(0, 1'000'000));
}

void AddReplay(CLI::App& app, ReplayCommand* to) {
  to->app = app.add_subcommand("replay", "Replay a recorded workload, and print how it fared");
  CLI::Option* trace = to->app->add_option(
      "TRACE", to->arguments.trace, "SWF, CSV or `berth job history`, compressed by gzip or not");
  to->app
      ->add_option("--compare", to->compare,
                   "Compare two results of -o json side by side, without a replay")
      ->expected(2)
      ->excludes(trace);
  AddWorkload(to);
  to->app->add_option(
      "--cluster", to->arguments.cluster,
      "A scenario: nodes, queues, HyperNodes, config; default for SWF: one machine");
  to->app
      ->add_option(
          "--config", to->arguments.configs,
          "Config of a scenario, how jobs are submitted, what stops cost them; several are "
          "compared")
      ->allow_extra_args(false);
  to->app
      ->add_option("--policy", to->arguments.policies,
                   "Placement policy for each configuration; several are compared")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(replay::PolicyNames()));
  CLI::Option* network =
      to->app->add_option("--network", to->arguments.network,
                          "Network model: the speed of training jobs depends on communication");
  CLI::Option* outages = to->app->add_option("--outages", to->arguments.outages,
                                             "Outages of nodes, as CSV: node,down,up");
  to->app
      ->add_option("--faults", to->arguments.faults,
                   "Rates of random faults; jobs start again from their last checkpoint")
      ->excludes(outages)
      ->excludes(network);
  to->app->add_option("--by", to->by, "In tables, also print each queue, or each user")
      ->check(CLI::IsMember({"queue", "user"}));
  to->app->add_option("--jobs", to->arguments.jobs,
                      "Write the result and the nodes of each job to this file, as CSV (of the "
                      "first config)");
  to->app->add_flag("--quiet", to->arguments.quiet, "Print no progress on standard error");
  to->app->add_option("--plots", to->arguments.plots,
                      "Draw plots into this folder, as PNG and SVG, with their data");
  AddCopies(to);
  to->app->add_option("-o,--output", to->format, "table, json or yaml")
      ->check(CLI::IsMember({"json", "yaml", "table"}));
}

struct WhatifCommand {
  CLI::App* app = nullptr;
  std::string snapshot;
  Changes changes;
  double horizon_hours = 168, without_walltime_hours = 24, walltime_part = 1;
  std::string run_times = "walltime";
  std::string format = "table";
};

void AddWhatif(CLI::App& app, WhatifCommand* to) {
  to->app = app.add_subcommand("whatif", "Forecast a cluster, as it is and with changes");
  to->app
      ->add_option("DIR", to->snapshot,
                   "A backup of a berthd, or the data directory of a stopped one")
      ->required();
  to->app->add_option("--nodes", to->changes.nodes,
                      "Nodes as in a scenario: new ones, and known ones with another inventory");
  to->app->add_option("--queues", to->changes.queues,
                      "Queues as in a scenario: new ones, and new values of known ones");
  to->app->add_option("--config", to->changes.config, "Config as in a scenario, replaces berthd's");
  to->app->add_option("--add-nodes", to->changes.add_nodes,
                      "NODE=COUNT: this many more nodes like NODE; may be repeated");
  to->app->add_option("--drain", to->changes.drain,
                      "Nodes to drain (n[0-3] for several); may be repeated");
  to->app->add_option("--lose", to->changes.lose,
                      "Nodes that are lost at once, with their tasks; may be repeated");
  to->app
      ->add_option("--run-times", to->run_times,
                   "Run time of jobs: walltime, or predicted if the snapshot has predictions")
      ->check(CLI::IsMember({"walltime", "predicted"}));
  to->app->add_option("--hours", to->horizon_hours, "Hours to look ahead; default 168")
      ->check(RealNumber(0.01, 100'000.0));
  to->app
      ->add_option("--walltime-part", to->walltime_part,
                   "Part of its walltime that a job runs; default 1")
      ->check(RealNumber(0.01, 1.0));
  to->app
      ->add_option("--without-walltime", to->without_walltime_hours,
                   "Hours that a job without a walltime runs; default 24")
      ->check(RealNumber(0.01, 100'000.0));
  to->app->add_option("-o,--output", to->format, "table, json or yaml")
      ->check(CLI::IsMember({"json", "yaml", "table"}));
}

int RunWhatif(const WhatifCommand& command) {
  const absl::StatusOr<std::unique_ptr<Snapshot>> snapshot = ReadSnapshot(command.snapshot);
  if (!snapshot.ok()) return Broken(snapshot.status());
  const ForecastOptions options{.horizon = absl::Hours(command.horizon_hours),
                                .walltime_part = command.walltime_part,
                                .without_walltime = absl::Hours(command.without_walltime_hours),
                                .predicted = command.run_times == "predicted"};
  absl::StatusOr<sim::v1::WhatifResult> result = Whatif(**snapshot, command.changes, options);
  if (!result.ok()) return Broken(result.status());
  result->set_snapshot(command.snapshot);
  std::cout << PrintedWhatif(*result, command.format);
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app{
      "Runs the scheduler without a cluster: scenarios with expected results, recorded workloads, "
      "forecasts, and the decision log of a stopped berthd."};
  app.require_subcommand(1);
  RunArguments arguments;
  CLI::App* run = app.add_subcommand("run", "Run scenarios and print their results");
  run->add_option("FILE", arguments.files, "Scenario files (YAML or JSON), - for standard input")
      ->required();
  run->add_option("-o,--output", arguments.format, "json, yaml or table")
      ->check(CLI::IsMember({"json", "yaml", "table"}));
  run->add_option("--only", arguments.only, "Only the scenario with this name");
  run->add_option("--tasks", arguments.tasks, "Tasks after each cycle (all) or at the end only")
      ->check(CLI::IsMember({"all", "end"}));
  run->add_flag("--check", arguments.check,
                "Compare with the expectations; also run each scenario again, and shuffled");
  run->add_flag("--update", arguments.update, "Write the results into the files as expectations");
  std::string directory, verify_format = "table";
  CLI::App* verify =
      app.add_subcommand("verify", "Repeat the planning of a stopped berthd; compare decisions");
  verify->add_option("DIR", directory, "The store: data_directory of its configuration")
      ->required();
  verify->add_option("-o,--output", verify_format, "table, json or yaml")
      ->check(CLI::IsMember({"json", "yaml", "table"}));
  ReplayCommand replay;
  AddReplay(app, &replay);
  WhatifCommand whatif;
  AddWhatif(app, &whatif);
  if (const auto code = ParseCommandLine(app, argc, argv); code.has_value()) return *code;
  if (replay.app->parsed()) return Replay(replay);
  if (whatif.app->parsed()) return RunWhatif(whatif);
  if (verify->parsed()) return Verify(directory, verify_format);
  int code = 0;
  for (const std::string& file : arguments.files) code = std::max(code, RunFile(arguments, file));
  return code;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
