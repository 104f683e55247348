#include "tests/simulation/shrink.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth::simulation {
namespace {

constexpr int kSteps = 5;  // for each amount in each round

// Halves an amount, or removes a quarter of it, as long as the run still fails.
template <class Value>
bool ShrinkAmount(Options& options, Value Options::*amount, Value least,
                  absl::FunctionRef<bool(const Options&)> fails) {
  bool changed = false;
  for (int step = 0; step < kSteps; ++step) {
    const Value before = options.*amount;
    for (const Value candidate : {before / 2, before - before / 4}) {
      Options smaller = options;
      smaller.*amount = std::max(candidate, least);
      if (smaller.*amount >= before || !fails(smaller)) continue;
      options = smaller;
      changed = true;
      break;
    }
    if (options.*amount == before) break;
  }
  return changed;
}

bool ShrinkFaults(Options& options, absl::FunctionRef<bool(const Options&)> fails) {
  bool changed = false;
  for (size_t fault = 0; fault < kFaultNames.size(); ++fault) {
    Options fewer = options;
    fewer.faults &= ~(FaultSet{1} << fault);
    if (fewer.faults == options.faults || !fails(fewer)) continue;
    options = fewer;
    changed = true;
  }
  return changed;
}

}  // namespace

Options Shrink(Options options, absl::FunctionRef<bool(const Options&)> fails) {
  for (bool changed = true; changed;) {
    changed = ShrinkAmount(options, &Options::hours, 0.05, fails);
    changed |= ShrinkFaults(options, fails);
    changed |= ShrinkAmount(options, &Options::max_jobs, int64_t{1}, fails);
    changed |= ShrinkAmount(options, &Options::max_nodes, 2, fails);
  }
  return options;
}

std::string CommandLine(const Options& options) {
  std::vector<absl::string_view> faults;
  for (size_t fault = 0; fault < kFaultNames.size(); ++fault) {
    if ((options.faults & (FaultSet{1} << fault)) != 0) faults.push_back(kFaultNames[fault]);
  }
  return absl::StrCat("--seed ", options.seed, " --hours ", options.hours, " --nodes ",
                      options.max_nodes, " --jobs ", options.max_jobs, " --faults ",
                      faults.empty() ? "none" : absl::StrJoin(faults, ","));
}

}  // namespace berth::simulation
