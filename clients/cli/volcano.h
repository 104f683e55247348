// Volcano's Queue and HyperNode manifests as Berth's, and what all manifests of other schedulers
// share: resources, and keys that are refused or left out. docs/users/manifests.md lists what each
// key becomes.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_H_
#define BERTH_CLIENTS_CLI_VOLCANO_H_

#include <map>
#include <string>

#include "clients/cli/manifest.h"
#include "support/yaml_proto.h"

namespace berth {

// Fill `manifest` from one document, or add to `errors`. `skipped` gets warnings: keys that the
// user chose to ignore, or that have no meaning here.
void ReadVolcanoQueue(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                      YamlErrors* skipped, Manifest* manifest);

void ReadVolcanoHyperNode(const YamlNode& document, const ManifestOptions& options,
                          YamlErrors* errors, YamlErrors* skipped, Manifest* manifest);

// Volcano's tiers begin with 0, Berth's with 1: 0 becomes 1, all others stay what they are.
inline int32_t BerthTier(int32_t volcano_tier) { return volcano_tier == 0 ? 1 : volcano_tier; }
// Go's regular expressions match anywhere in a name, Berth's match the whole name: returns an
// equivalent one.
std::string WholeNameRegex(const std::string& pattern);

// Kubernetes' resource name -> Berth's: "cpu", "memory" or a device kind; "" = not supported.
std::string BerthResource(const std::string& name);
// An amount of such a resource in Berth's unit (thousandths of a core, bytes, devices).
absl::StatusOr<int64_t> ParseKubernetesAmount(const std::string& berth_resource,
                                              const std::string& text);

// Options with hints for keys that need more explanation than "unsupported key".
YamlReadOptions VolcanoReadOptions(const ManifestOptions& options, YamlErrors* skipped,
                                   YamlPositions* positions);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_H_
