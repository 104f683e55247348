// Plugins of Volcano's jobs: what tasks have without them, and what they cannot have.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_
#define BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_

#include <string>

#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_document.h"

namespace berth {

// Warns about each plugin that the job names. `path` is that of the job's spec.
void WarnAboutPlugins(const std::string& path, const volcano::v1::JobSpec& spec,
                      ForeignDocument* document);

// Refuses commands and variables that use what only a plugin gives: files below /etc/volcano,
// variables with hosts, and host names of pods.
void CheckPluginUses(const std::string& path, const volcano::v1::JobSpec& spec,
                     const std::string& job_name, ForeignDocument* document);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_
