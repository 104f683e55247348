// Scenario files: strict YAML or JSON, several documents a file, with the shorthands of
// docs/scenarios.md.
#ifndef BERTH_CLIENTS_SIM_SCENARIO_FILE_H_
#define BERTH_CLIENTS_SIM_SCENARIO_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/scenario.pb.h"
#include "support/yaml_proto.h"

namespace berth {

struct ScenarioDocument {
  sim::v1::Scenario scenario;  // always has a name: its own, or FILE#NUMBER
  std::string file;
  // Where fields stand, by path: "jobs[2].queue", "steps[0].expect".
  YamlPositions positions;
};

// Every document of the file. The errors of ReadTextFile, or all that is wrong with the documents,
// one "FILE:LINE:COLUMN: TEXT" a line.
absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarioFile(const std::string& path);
absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarios(absl::string_view text,
                                                            const std::string& file);

// The message of an error whose text begins with a path ("jobs[2].queue: no such queue") with
// FILE:LINE:COLUMN before it: where the path stands, or the nearest thing around it.
absl::Status Located(const ScenarioDocument& document, const absl::Status& status);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_SCENARIO_FILE_H_
