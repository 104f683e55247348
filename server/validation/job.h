// The API's rules for jobs, as far as they concern a request by itself. Rules that depend on the
// state (queues, other jobs) are in server/validation/job_state.h.
#ifndef BERTH_SERVER_VALIDATION_JOB_H_
#define BERTH_SERVER_VALIDATION_JOB_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"
#include "server/validation/graph.h"

namespace berth {

inline constexpr int kMaxGroups = 64;
inline constexpr int kMaxPolicies = 32;
inline constexpr int kMaxDependencies = 256;
inline constexpr int kMaxTolerations = 64;
inline constexpr int kMaxExcludedNodes = 1024;
inline constexpr int kMaxRetries = 1000;
inline constexpr int32_t kMaxPriority = 1'000'000;
inline constexpr size_t kMaxRequestIdBytes = 128;

// Every job of the call, and relations between them. `limits` with all defaults filled in
// (server/config/config.h). Pure.
void CheckSubmit(const v1::SubmitJobsRequest& request, const config::v1::Limits& limits,
                 Findings& findings);
absl::Status ValidateUpdateJob(const v1::UpdateJobRequest& request);

// One job, by itself.
void CheckJob(const FieldPath& path, const v1::Job& job, const config::v1::Limits& limits,
              Findings& findings);

// Dependencies between the jobs of one call.
using JobPositions =
    absl::flat_hash_map<absl::string_view, int>;  // by name; the first of that name
JobPositions JobsByName(const v1::SubmitJobsRequest& request);
bool HasDependencies(const v1::SubmitJobsRequest& request);
Graph DependencyGraph(const v1::SubmitJobsRequest& request, const JobPositions& index);

void CheckRequestId(absl::string_view request_id, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_JOB_H_
