// Hints for users of Kubernetes, Slurm or Docker: what to write instead of their keys.
#ifndef BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_
#define BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "support/yaml_tree.h"

namespace berth {

// What to write instead of `key`, which is not a field of `type` (JobSpec, TaskGroup or
// ResourceRequest); "" if there is no hint.
std::string KeyHint(const google::protobuf::Descriptor& type, const YamlNode& key,
                    const YamlNode& value);

// What to write instead of an unknown apiVersion; "" if there is no hint.
std::string ApiVersionHint(absl::string_view api_version);

// What a file is if it is not a manifest, such as a script; "" if there is no hint.
std::string FileHint(absl::string_view text, absl::string_view file);

// Rewrites keys of a job. A command that is one string with blanks becomes a shell command:
//   command: sleep 1   ->   command: [/bin/sh, -c, sleep 1]
// Variables written as "NAME=value" are refused, with a hint.
void PrepareJob(YamlNode* spec, YamlErrors* errors);

// Refuses commands and args of containers, anywhere in the document, that are one string with
// blanks, which would be run as one word: Kubernetes takes lists only.
void CheckContainerCommands(const YamlNode& node, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_
