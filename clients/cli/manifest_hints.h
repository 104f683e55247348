// What a new user writes from habit, of Kubernetes, Slurm or Docker, and what to write instead.
#ifndef BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_
#define BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "support/yaml_tree.h"

namespace berth {

// What to write instead of `key`, which is no field of `type` (JobSpec, TaskGroup or
// ResourceRequest); "" if nothing is known about it.
std::string KeyHint(const google::protobuf::Descriptor& type, const YamlNode& key,
                    const YamlNode& value);

// What to write instead of an apiVersion that is not known; "" if nothing is known about it.
std::string ApiVersionHint(absl::string_view api_version);

// What a file is that is no manifest, such as a script; "" if nothing is known about it.
std::string FileHint(absl::string_view text, absl::string_view file);

// The job's keys as Berth reads them. A command that is one string with blanks becomes a shell's:
//   command: sleep 1   ->   command: [/bin/sh, -c, sleep 1]
// Variables written as "NAME=value" are refused, and told how to be written.
void PrepareJob(YamlNode* spec, YamlErrors* errors);

// Refuses a Volcano container's command or args that are one string with blanks, which would be one
// word: Kubernetes takes lists only.
void CheckContainerCommands(const YamlNode& document, YamlErrors* errors);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_MANIFEST_HINTS_H_
