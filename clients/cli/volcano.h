// Volcano's Job and Queue manifests as Berth's. What Berth cannot honour is an error at its place;
// docs/manifests.md lists what each key becomes.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_H_
#define BERTH_CLIENTS_CLI_VOLCANO_H_

#include <map>
#include <string>

#include "clients/cli/manifest.h"
#include "support/yaml_proto.h"

namespace berth {

// Fill `manifest` from one document, or add to `errors`. `skipped` is told of keys left out at the
// user's word.
void ReadVolcanoJob(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                    YamlErrors* skipped, Manifest* manifest);
void ReadVolcanoQueue(const YamlNode& document, const ManifestOptions& options, YamlErrors* errors,
                      YamlErrors* skipped, Manifest* manifest);

// Kubernetes' resource name -> Berth's: "cpu", "memory" or a device kind; "" = not supported.
std::string BerthResource(const std::string& name);
// An amount of such a resource in Berth's unit (thousandths of a core, bytes, devices).
absl::StatusOr<int64_t> ParseKubernetesAmount(const std::string& berth_resource,
                                              const std::string& text);

// Refusals that deserve more words than "unsupported key".
YamlReadOptions VolcanoReadOptions(const ManifestOptions& options, YamlErrors* skipped,
                                   YamlPositions* positions);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_H_
