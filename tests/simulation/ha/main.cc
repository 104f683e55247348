// berth-hatest: clusters with high availability in simulated time, each from a seed.
#include <CLI/CLI.hpp>
#include <iostream>
#include <string>

#include "absl/synchronization/mutex.h"
#include "support/log.h"
#include "tests/simulation/ha/world.h"

namespace berth::simulation {
namespace {

int Main(int argc, char** argv) {
  HaOptions options;
  uint64_t seeds = 1;
  std::string log_level = "error";
  CLI::App cli("berth-hatest: servers, etcd, clients and agents in simulated time, with faults");
  cli.add_option("--seed", options.seed, "the first seed");
  cli.add_option("--seeds", seeds, "how many seeds, one after the other");
  cli.add_option("--hours", options.hours, "simulated hours with faults");
  cli.add_option("--hosts", options.hosts, "servers");
  cli.add_option("--log-level", log_level, "level of the product's log, on standard error");
  cli.add_flag("--print", options.print, "print every fault");
  CLI11_PARSE(cli, argc, argv);
  if (!StartLog(log_level, "").ok()) return 2;
  // Many processes live and die here; their mutexes have the same addresses.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  HaOutcome all;
  for (const uint64_t end = options.seed + seeds; options.seed < end; ++options.seed) {
    const HaOutcome outcome = HaWorld(options).Run();
    if (!outcome.failure.empty()) {
      std::cout << "seed " << options.seed << " fails at " << outcome.failure << "\n";
      return 1;
    }
    all.steps += outcome.steps;
    all.operations += outcome.operations;
    all.unanswered += outcome.unanswered;
    all.terms += outcome.terms;
    all.faults += outcome.faults;
    all.fences += outcome.fences;
  }
  std::cout << seeds << " seeds of " << options.hours << " hours passed: " << all.faults
            << " faults, " << all.terms << " terms, " << all.operations << " operations ("
            << all.unanswered << " without an answer), " << all.fences << " fences, " << all.steps
            << " steps\n";
  return 0;
}

}  // namespace
}  // namespace berth::simulation

int main(int argc, char** argv) { return berth::simulation::Main(argc, argv); }
