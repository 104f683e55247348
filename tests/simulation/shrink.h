// The least that still fails.
#ifndef BERTH_TESTS_SIMULATION_SHRINK_H_
#define BERTH_TESTS_SIMULATION_SHRINK_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "tests/simulation/options.h"

namespace berth::simulation {

// Leaves out kinds of faults, then time, jobs and nodes, as long as fails() says that what is left
// still fails. `options` must.
Options Shrink(Options options, absl::FunctionRef<bool(const Options&)> fails);

// How to run it: "--seed 7 --hours 3 --faults loss,clog".
std::string CommandLine(const Options& options);

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_SHRINK_H_
