// Reads scenario files: strict YAML or JSON, several documents a file, with the shorthands of
// docs/developers/scenarios.md.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_FILE_H_
#define BERTH_OFFLINE_SIM_SCENARIO_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/sim/v1/scenario.pb.h"
#include "support/yaml_proto.h"

namespace berth {

struct ScenarioDocument {
  sim::v1::Scenario scenario;  // its name is never empty: given, or FILE#NUMBER
  std::string file;
  // Positions of fields, by path: "jobs[2].queue", "steps[0].expect".
  YamlPositions positions;
};

// Reads every document of the file. Returns the errors of ReadTextFile, or all errors of the
// documents, one "FILE:LINE:COLUMN: TEXT" a line.
absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarioFile(const std::string& path);
absl::StatusOr<std::vector<ScenarioDocument>> ReadScenarios(absl::string_view text,
                                                            const std::string& file);

// Puts FILE:LINE:COLUMN before an error whose text begins with a path ("jobs[2].queue: no such
// queue"): the position of the path, or of the nearest enclosing field.
absl::Status Located(const ScenarioDocument& document, const absl::Status& status);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_FILE_H_
