// Searches for the smallest run that still fails.
#ifndef BERTH_TESTS_SIMULATION_SHRINK_H_
#define BERTH_TESTS_SIMULATION_SHRINK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "tests/simulation/options.h"

namespace berth::simulation {

// Removes kinds of faults, then time, jobs and nodes, as long as fails() reports that the rest
// still fails. `options` must fail.
Options Shrink(Options options, absl::FunctionRef<bool(const Options&)> fails);

// The command line of a run: "--seed 7 --hours 3 --faults loss,clog".
std::string CommandLine(const Options& options);

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SHRINK_H_
