#ifndef BERTH_TESTS_SIMULATION_COMMIT_H_
#define BERTH_TESTS_SIMULATION_COMMIT_H_

namespace berth::simulation {

// What was built: "1a2b3c4d5e6f", with "+" behind it if there were changes.
const char* Commit();

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_COMMIT_H_
