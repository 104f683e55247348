// berth-simtest: whole clusters in one thread, from seeds.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "generated/tests/commit.h"
#include "support/log.h"
#include "tests/simulation/shrink.h"
#include "tests/simulation/world.h"

namespace berth::simulation {
namespace {

const World* current = nullptr;  // for a process that is ended by a check of the product
uint64_t current_seed = 0;

void PrintFailure(const World& world, const Options& options, const std::string& what) {
  world.trace().PrintLast(stderr);
  std::fprintf(stderr, "seed %llu, commit %s: %s\n", static_cast<unsigned long long>(options.seed),
               kCommit, what.c_str());
}

void OnAbort(int) {
  std::fprintf(stderr, "seed %llu, commit %s: a check ended the process\n",
               static_cast<unsigned long long>(current_seed), kCommit);
  if (current != nullptr) current->trace().PrintLast(stderr);
  _exit(1);
}

bool RunSeed(const Options& options, bool hash_only) {
  const auto begin = std::chrono::steady_clock::now();
  World world(options);
  current = &world;
  current_seed = options.seed;
  const Outcome outcome = world.Run();
  current = nullptr;
  const double real =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (hash_only) {
    std::printf("%016llx\n", static_cast<unsigned long long>(outcome.hash));
  } else {
    std::printf(
        "seed %llu: %s, %.1f h simulated in %.1f s (%.0f times), %llu steps, %llu jobs, "
        "%llu starts, hash %016llx\n",
        static_cast<unsigned long long>(options.seed), outcome.failure.empty() ? "ok" : "FAILED",
        absl::ToDoubleHours(outcome.simulated), real,
        absl::ToDoubleSeconds(outcome.simulated) / real,
        static_cast<unsigned long long>(outcome.steps),
        static_cast<unsigned long long>(outcome.jobs),
        static_cast<unsigned long long>(outcome.starts),
        static_cast<unsigned long long>(outcome.hash));
  }
  std::fflush(stdout);
  if (!outcome.failure.empty()) PrintFailure(world, options, outcome.failure);
  return outcome.failure.empty();
}

// In a process of its own, as a check of the product may end it.
bool Fails(const Options& options) {
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    _exit(RunSeed(options, true) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool fails = status != 0;
  std::printf("%s  %s\n", fails ? "fails" : "ok   ", CommandLine(options).c_str());
  std::fflush(stdout);
  return fails;
}

int ShrinkSeed(const Options& options) {
  if (!Fails(options)) {
    std::printf("seed %llu does not fail\n", static_cast<unsigned long long>(options.seed));
    return 0;
  }
  const Options least = Shrink(options, Fails);
  RunSeed(least, false);
  std::printf("the least that fails: berth-simtest %s\n", CommandLine(least).c_str());
  return 1;
}

// "loss,clog" or "all" or "none"; false if there is no such fault.
bool ParseFaults(const std::string& text, FaultSet* faults) {
  *faults = 0;
  if (text == "all") *faults = kAllFaults;
  if (text == "all" || text == "none") return true;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const auto found = std::find(kFaultNames.begin(), kFaultNames.end(), name);
    if (found == kFaultNames.end()) return false;
    *faults |= FaultSet{1} << (found - kFaultNames.begin());
  }
  return true;
}

int Main(int argc, char** argv) {
  Options options;
  uint64_t seeds = 1;
  std::string faults = "all";
  std::string log_level = "error";
  bool hash_only = false;
  bool shrink = false;
  CLI::App cli(
      "berth-simtest: the control plane, agents and clients in simulated time, with faults");
  cli.add_option("--seed", options.seed, "the first seed");
  cli.add_option("--seeds", seeds, "how many, one after the other");
  cli.add_option("--hours", options.hours,
                 "simulated, with faults; then without until all is well");
  cli.add_option("--faults", faults,
                 absl::StrCat("all, none, or some of ", absl::StrJoin(kFaultNames, ",")));
  cli.add_option("--nodes", options.max_nodes, "at most");
  cli.add_option("--jobs", options.max_jobs, "at most");
  cli.add_option("--log-level", log_level, "of the product's own log, on standard error");
  cli.add_flag("--print", options.print, "every event as it happens");
  cli.add_flag("--hash", hash_only, "only the sum over all events, for comparing two runs");
  cli.add_flag("--shrink", shrink, "looks for the least that fails with the first seed");
  CLI11_PARSE(cli, argc, argv);
  if (!ParseFaults(faults, &options.faults)) {
    std::cerr << "berth-simtest: --faults: no such fault in \"" << faults << "\"\n";
    return 2;
  }
  if (absl::Status log = StartLog(log_level, ""); !log.ok()) {
    std::cerr << "berth-simtest: --log-level: " << log.message() << "\n";
    return 2;
  }
  signal(SIGABRT, OnAbort);
  if (shrink) return ShrinkSeed(options);
  for (const uint64_t end = options.seed + seeds; options.seed < end; ++options.seed) {
    if (!RunSeed(options, hash_only)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace berth::simulation

int main(int argc, char** argv) { return berth::simulation::Main(argc, argv); }
