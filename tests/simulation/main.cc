// berth-simtest: whole clusters in one thread, each from a seed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "support/log.h"
#include "tests/simulation/run.h"

namespace berth::simulation {
namespace {

// "loss,clog" or "all" or "none"; false if a fault is unknown.
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
  cli.add_option("--seeds", seeds, "how many seeds, one after the other");
  cli.add_option("--hours", options.hours,
                 "simulated hours with faults; then without, until all nodes and jobs recover");
  cli.add_option("--faults", faults,
                 absl::StrCat("all, none, or some of ", absl::StrJoin(kFaultNames, ",")));
  cli.add_option("--nodes", options.max_nodes, "maximum number of nodes");
  cli.add_option("--jobs", options.max_jobs, "maximum number of jobs");
  cli.add_option("--log-level", log_level, "level of the product's log, on standard error");
  cli.add_flag("--print", options.print, "print every event as it happens");
  cli.add_flag("--hash", hash_only, "print only the sum over all events, to compare runs");
  cli.add_flag("--shrink", shrink, "search for the smallest run of the first seed that fails");
  CLI11_PARSE(cli, argc, argv);
  if (!ParseFaults(faults, &options.faults)) {
    std::cerr << "berth-simtest: --faults: unknown fault in \"" << faults << "\"\n";
    return 2;
  }
  if (absl::Status log = StartLog(log_level, ""); !log.ok()) {
    std::cerr << "berth-simtest: --log-level: " << log.message() << "\n";
    return 2;
  }
  TellOnAbort();
  if (shrink) return ShrinkSeed(options) ? 0 : 1;
  for (const uint64_t end = options.seed + seeds; options.seed < end; ++options.seed) {
    if (!RunSeed(options, hash_only)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace berth::simulation

int main(int argc, char** argv) { return berth::simulation::Main(argc, argv); }
