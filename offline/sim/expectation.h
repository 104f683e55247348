// Compares the expectations of a scenario with its results.
#ifndef BERTH_OFFLINE_SIM_EXPECTATION_H_
#define BERTH_OFFLINE_SIM_EXPECTATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/result.pb.h"
#include "berth/sim/v1/scenario.pb.h"

namespace berth {

struct Comparison {
  // One line each: "jobs.j1.state: expected Running, got Pending".
  std::vector<std::string> mismatches;
  // The actual values of everything that the expectation names.
  sim::v1::Expectation actual;
};

// `end` has the final state; `decisions` are the texts of the decisions since the last check.
// INVALID_ARGUMENT for an invalid expectation (bad patterns or amounts).
absl::StatusOr<Comparison> Compare(const sim::v1::Expectation& expected,
                                   const sim::v1::ScenarioResult& end,
                                   const std::vector<std::string>& decisions);

// YAML that the reader accepts, with every line indented by `indent` blanks. Begins with "expect:".
std::string ExpectationText(const sim::v1::Expectation& expectation, int indent);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_EXPECTATION_H_
