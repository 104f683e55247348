// The shorthands of scenario files, written out on the tree before it is read as a message.
#ifndef BERTH_CLIENTS_SIM_SCENARIO_SUGAR_H_
#define BERTH_CLIENTS_SIM_SCENARIO_SUGAR_H_

#include "support/yaml_tree.h"

namespace berth {

// One document of a scenario file, in place. What is no shorthand stays as it is, for the reader to
// take or refuse; positions are kept.
void WriteOut(YamlNode* document, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_CLIENTS_SIM_SCENARIO_SUGAR_H_
