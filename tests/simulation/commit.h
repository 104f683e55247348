#ifndef BERTH_TESTS_SIMULATION_COMMIT_H_
#define BERTH_TESTS_SIMULATION_COMMIT_H_

namespace berth::simulation {

// The commit of the build: "1a2b3c4d5e6f", followed by "+" if there were local changes.
const char* Commit();

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_COMMIT_H_
