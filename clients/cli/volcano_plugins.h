// Volcano's plugins: what they give to tasks beyond what Berth gives to all.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_
#define BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_

#include <string>

#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_document.h"
#include "clients/cli/kubernetes_text.h"

namespace berth {

// `path` is that of the job's specification.

// Commands of the plugin ray, which take the place of those of the pods. Before the conversion.
void SetRayCommands(const std::string& path, const std::string& job_name,
                    volcano::v1::JobSpec* spec, ForeignDocument* document);

// TF_CONFIG of a task, for the words of a command; "" if the plugin tensorflow gives it none.
std::string TensorFlowConfig(const volcano::v1::JobSpec& spec, const std::string& job_name,
                             int task);

// Host names, files and variables of the plugins svc and mpi, and warnings of what else they mean
// here. After the conversion of all tasks. `space`: the namespace.
void ConvertPlugins(const std::string& path, const volcano::v1::JobSpec& spec,
                    const std::string& space, ForeignJob* job);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_PLUGINS_H_
