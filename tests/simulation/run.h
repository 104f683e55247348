// Runs of one seed each, and their output.
#ifndef BERTH_TESTS_SIMULATION_RUN_H_
#define BERTH_TESTS_SIMULATION_RUN_H_

#include "tests/simulation/options.h"

namespace berth::simulation {

// If a check of the product aborts the process, prints the seed, the commit and the last events.
void TellOnAbort();

// Returns true if no rule was violated. Prints one line, or only the sum over all events. On
// failure also prints the last events, the seed, the commit and the violated rule on standard
// error.
bool RunSeed(const Options& options, bool hash_only);

// Searches for the smallest run of this seed that still fails, and prints its command line. Returns
// true if the seed does not fail.
bool ShrinkSeed(const Options& options);

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_RUN_H_
