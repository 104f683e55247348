// Runs of one seed each, and what is printed of them.
#ifndef BERTH_TESTS_SIMULATION_RUN_H_
#define BERTH_TESTS_SIMULATION_RUN_H_

#include "tests/simulation/options.h"

namespace berth::simulation {

// What a check of the product that ends the process prints before: seed, commit, last events.
void TellOnAbort();

// True if all held. One line, or only the sum over all events; of a failure the last events, the
// seed, the commit and the rule that was broken, on standard error.
bool RunSeed(const Options& options, bool hash_only);

// Looks for the least that fails with this seed, and tells how to run it. True if it does not fail.
bool ShrinkSeed(const Options& options);

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_RUN_H_
