// The kinds of other schedulers' manifests, and how a file of them is read.
#ifndef BERTH_CLIENTS_CLI_FOREIGN_KINDS_H_
#define BERTH_CLIENTS_CLI_FOREIGN_KINDS_H_

#include <string>
#include <vector>

#include "clients/cli/foreign_document.h"

namespace berth {

// Each converts one document, and adds what it becomes to the file's manifests.
void ReadVolcanoJob(const YamlNode& node, ForeignFile* file);
void ReadVolcanoCronJob(const YamlNode& node, ForeignFile* file);
void ReadVolcanoJobFlow(const YamlNode& node, ForeignFile* file);
void ReadVolcanoPodGroup(const YamlNode& node, ForeignFile* file);
void ReadKubernetesJob(const YamlNode& node, ForeignFile* file);
void ReadKubernetesCronJob(const YamlNode& node, ForeignFile* file);
void ReadKubernetesPod(const YamlNode& node, ForeignFile* file);
void ReadJobSet(const YamlNode& node, ForeignFile* file);
void ReadPyTorchJob(const YamlNode& node, ForeignFile* file);
void ReadMpiJob(const YamlNode& node, ForeignFile* file);
void ReadTrainJob(const YamlNode& node, ForeignFile* file);

// Takes lists (kind: List, as `kubectl get -o yaml` writes them) apart.
std::vector<YamlNode> WithoutLists(std::vector<YamlNode> documents, YamlErrors* errors);

// What documents give to others of the file: ConfigMaps, Secrets, priority classes, templates.
void CollectShared(const std::vector<YamlNode>& documents, ForeignFile* file);

// Converts the document if it is of such a kind, or refuses a kind that has no meaning for Berth.
// Returns false for all others.
bool ReadForeign(const YamlNode& document, ForeignFile* file);

// "batch/v1", ..., for "did you mean".
std::vector<std::string> ForeignApiVersions();
// Of one version.
std::vector<std::string> ForeignKinds(absl::string_view api_version);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_FOREIGN_KINDS_H_
