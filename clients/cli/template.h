// Templates of jobs: a manifest with parameters.
//
//   apiVersion: berth/v1
//   kind: Template
//   name: train
//   parameters:
//   - {name: rate, default: "0.1", description: learning rate}
//   - {name: data}                       # required: it has no default
//   job:
//     name: train-{{rate}}
//     groups: [{command: [train, "--rate={{rate}}", "{{data}}"]}]
#ifndef BERTH_CLIENTS_CLI_TEMPLATE_H_
#define BERTH_CLIENTS_CLI_TEMPLATE_H_

#include <map>
#include <set>
#include <string>

#include "support/yaml_tree.h"

namespace berth {

using TemplateValues = std::map<std::string, std::string>;

// The job of a template as a manifest of kind Job: each {{NAME}} in a single value is replaced by
// the value given, or the parameter's default. Replacement happens in values that have been read,
// so a value never becomes structure. Adds the values that it took to `used`. Errors at their
// places: parameters without a value, and names that are no parameters.
YamlNode FillTemplate(const YamlNode& document, const TemplateValues& values,
                      std::set<std::string>* used, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_TEMPLATE_H_
