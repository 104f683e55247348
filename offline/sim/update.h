// Rewrites the expectations of a scenario file in place.
#ifndef BERTH_OFFLINE_SIM_UPDATE_H_
#define BERTH_OFFLINE_SIM_UPDATE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "offline/sim/scenario_file.h"
#include "offline/sim/scenario_runner.h"

namespace berth {

class Updates {
 public:
  // Adds the actual values of every expectation of the document.
  void Add(const ScenarioDocument& document, const ScenarioRun& run);
  // Replaces the lines of each expectation in the file; the rest stays unchanged.
  // FAILED_PRECONDITION for an expectation that does not begin on a separate line.
  absl::Status Write(const std::string& file) const;
  // Likewise for text.
  absl::StatusOr<std::string> Apply(const std::string& text) const;

 private:
  std::map<int, sim::v1::Expectation> by_line_;  // of the key "expect", from 1
};

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_UPDATE_H_
