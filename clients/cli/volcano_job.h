// Volcano's job specification, also as part of its JobTemplate and CronJob.
#ifndef BERTH_CLIENTS_CLI_VOLCANO_JOB_H_
#define BERTH_CLIENTS_CLI_VOLCANO_JOB_H_

#include <string>

#include "berth/volcano/v1/manifests.pb.h"
#include "clients/cli/foreign_document.h"

namespace berth {

// `path` is that of the specification, such as "spec"; `space` the namespace. The job's metadata is
// converted before.
void ConvertVolcanoJobSpec(const std::string& path, const volcano::v1::JobSpec& spec,
                           const std::string& space, ForeignJob* job);

// Volcano's constraint at `path` as Berth's at `berth_path`.
void ConvertVolcanoTopology(const std::string& path, const std::string& berth_path,
                            const volcano::v1::NetworkTopology& in, ForeignJob* job,
                            v1::TopologyConstraint* out);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_VOLCANO_JOB_H_
