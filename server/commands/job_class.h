// The priority class of a job that is submitted: looked up once, then part of the job.
#ifndef BERTH_SERVER_COMMANDS_JOB_CLASS_H_
#define BERTH_SERVER_COMMANDS_JOB_CLASS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "berth/v1/job.pb.h"
#include "berth/v1/priority_class.pb.h"
#include "core/model/cluster_state.h"
#include "server/validation/findings.h"

namespace berth {

// The class of each job of the call against the state: unknown classes are missing; invalid are a
// priority of a group above the class's, and a preemption policy that its class does not allow.
void CheckClasses(const ClusterState& state, const v1::SubmitJobsRequest& request,
                  Findings& findings);

// Gives the job what its class says, or what the global default says if it names neither class nor
// priority. `preemptible_below`: of JobDefaults.
void TakeClass(const ClusterState& state, const v1::JobSpec& asked,
               std::optional<int32_t> preemptible_below, JobSpec* spec);

// As the API shows it, with its etag, which depends on the content alone.
void RenderWithEtag(const PriorityClass& from, v1::PriorityClass* out);
// ABORTED if the etag is not empty and not that of the class.
absl::Status CheckClassEtag(const PriorityClass& known, const std::string& etag);

}  // namespace berth

#endif  // BERTH_SERVER_COMMANDS_JOB_CLASS_H_
