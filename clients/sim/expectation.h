// What a scenario expects, compared with what came of it.
#ifndef BERTH_CLIENTS_SIM_EXPECTATION_H_
#define BERTH_CLIENTS_SIM_EXPECTATION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/sim/v1/result.pb.h"
#include "berth/sim/v1/scenario.pb.h"

namespace berth {

struct Comparison {
  // One line each: "jobs.j1.state: expected Running, got Pending".
  std::vector<std::string> mismatches;
  // The same things as the expectation says, as they are.
  sim::v1::Expectation actual;
};

// `end` holds the state of everything; `decisions` the texts of the decisions that count.
// INVALID_ARGUMENT for what can be no expectation (bad patterns or amounts).
absl::StatusOr<Comparison> Compare(const sim::v1::Expectation& expected,
                                   const sim::v1::ScenarioResult& end,
                                   const std::vector<std::string>& decisions);

// As YAML that the reader takes, every line after `indent` blanks; begins with "expect:".
std::string ExpectationText(const sim::v1::Expectation& expectation, int indent);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_EXPECTATION_H_
