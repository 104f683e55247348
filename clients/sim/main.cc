// berth-sim: the scheduler without a cluster.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "clients/sim/output.h"
#include "clients/sim/scenario_file.h"
#include "clients/sim/scenario_runner.h"
#include "clients/sim/update.h"

namespace berth {
namespace {

constexpr int kDiffers = 1;  // from what was expected
constexpr int kBroken = 2;   // cannot be read or run

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

void Report(const RunArguments& arguments, const ScenarioDocument& one, const ScenarioRun& run) {
  if (!arguments.check) {
    std::cout << Printed(run.result, arguments.format);
    return;
  }
  const bool ok = run.result.mismatches().empty();
  std::cout << (ok ? "ok   " : "FAIL ") << one.scenario.name() << "\n";
  for (const std::string& line : run.result.mismatches()) {
    std::cout << Located(one, absl::InvalidArgumentError(line)).message() << "\n";
  }
}

int RunFile(const RunArguments& arguments, const std::string& file) {
  const auto documents = ReadScenarioFile(file);
  if (!documents.ok()) {
    std::cerr << documents.status().message() << "\n";
    return kBroken;
  }
  int code = 0;
  Updates updates;
  for (const ScenarioDocument& one : *documents) {
    if (!arguments.only.empty() && one.scenario.name() != arguments.only) continue;
    const absl::StatusOr<ScenarioRun> run = RunOne(arguments, one);
    if (!run.ok()) {
      if (arguments.check) std::cout << "FAIL " << one.scenario.name() << "\n";
      (arguments.check ? std::cout : std::cerr) << run.status().message() << "\n";
      code = kBroken;
      continue;
    }
    Report(arguments, one, *run);
    if (run->result.mismatches().empty()) continue;
    if (arguments.check) code = std::max(code, kDiffers);
    if (arguments.update) updates.Add(one, *run);
  }
  if (!arguments.update) return code;
  const absl::Status status = updates.Write(file);
  if (status.ok()) return code == kDiffers ? 0 : code;
  std::cerr << status.message() << "\n";
  return kBroken;
}

int Main(int argc, char** argv) {
  CLI::App app{"Runs the scheduler without a cluster: scenarios, with what they expect."};
  app.require_subcommand(1);
  RunArguments arguments;
  CLI::App* run = app.add_subcommand("run", "Run scenarios and print what they come to");
  run->add_option("FILE", arguments.files, "Scenario files (YAML or JSON), - for standard input")
      ->required();
  run->add_option("-o,--output", arguments.format, "json, yaml or table")
      ->check(CLI::IsMember({"json", "yaml", "table"}));
  run->add_option("--only", arguments.only, "Only the scenario of this name");
  run->add_option("--tasks", arguments.tasks, "Tasks after each cycle (all) or at the end only")
      ->check(CLI::IsMember({"all", "end"}));
  run->add_flag("--check", arguments.check,
                "Compare with what is expected; run each scenario again and shuffled");
  run->add_flag("--update", arguments.update, "Write what is into the files' expectations");
  CLI11_PARSE(app, argc, argv);
  int code = 0;
  for (const std::string& file : arguments.files) code = std::max(code, RunFile(arguments, file));
  return code;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
