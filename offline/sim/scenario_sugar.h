// Expands the shorthands of scenario files in the tree, before it is read as a message.
#ifndef BERTH_OFFLINE_SIM_SCENARIO_SUGAR_H_
#define BERTH_OFFLINE_SIM_SCENARIO_SUGAR_H_

#include "support/yaml_tree.h"

namespace berth {

// Expands one document of a scenario file in place. Everything else stays unchanged, for the reader
// to accept or refuse. Positions are kept.
void ExpandShorthands(YamlNode* document, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_SCENARIO_SUGAR_H_
