// Linearizability of what clients saw of jobs: each job is a register, which does not exist before
// its submission. Jobs are independent of each other, so each history is checked by itself (Wing
// and Gong: "Testing and Verifying Concurrent Objects", 1993, with remembered states as in Lowe:
// "Testing for linearizability", 2017).
#ifndef BERTH_TESTS_SIMULATION_HA_HISTORY_H_
#define BERTH_TESTS_SIMULATION_HA_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace berth::simulation {

struct Operation {
  enum class Kind : uint8_t { kSubmit, kUpdate, kGet };
  Kind kind = Kind::kGet;
  int32_t value = 0;  // written, or read
  bool found = true;  // kUpdate, kGet: the job existed
  absl::Duration begin;
  std::optional<absl::Duration> end;  // absent: no answer; it may have happened at any time since
};

// Empty if there is an order of the operations that explains all answers; else the history.
std::string CheckHistory(const std::vector<Operation>& operations);

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_HA_HISTORY_H_
