// Kubernetes' job specification, also as part of CronJob and JobSet.
#ifndef BERTH_CLIENTS_CLI_KUBERNETES_JOB_H_
#define BERTH_CLIENTS_CLI_KUBERNETES_JOB_H_

#include <string>

#include "berth/kubernetes/v1/batch.pb.h"
#include "clients/cli/foreign_document.h"

namespace berth {

inline constexpr int32_t kUsualBackoffLimit = 6;  // Kubernetes' default

// `path` is that of the specification, such as "spec". The job's metadata is converted before.
void ConvertKubernetesJobSpec(const std::string& path, const kubernetes::v1::JobSpec& spec,
                              bool queued_by_kueue, ForeignJob* job);

// Never or OnFailure, which pods of jobs must have. "" is an error, as in Kubernetes.
void CheckJobRestartPolicy(const std::string& path, const kubernetes::v1::PodSpec& pod,
                           ForeignDocument* document);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_KUBERNETES_JOB_H_
