// The API's rules for one job by itself. Those for a call with several jobs are in
// server/validation/submission.h; rules that depend on the state (queues, other jobs) are in
// server/commands/job_state.h.
#ifndef BERTH_SERVER_VALIDATION_JOB_H_
#define BERTH_SERVER_VALIDATION_JOB_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr int kMaxGroups = 64;
inline constexpr int kMaxPolicies = 32;
inline constexpr int kMaxDependencies = 256;
inline constexpr int kMaxTolerations = 64;
inline constexpr int kMaxExcludedNodes = 1024;
inline constexpr int kMaxRetries = 1000;
inline constexpr int32_t kMaxPriority = 1'000'000;

// `bytes`: size of the serialized spec. `limits` with all defaults filled in
// (server/config/config.h). Pure.
void CheckJob(const FieldPath& path, const v1::Job& job, size_t bytes,
              const config::v1::Limits& limits, Findings& findings);
absl::Status ValidateUpdateJob(const v1::UpdateJobRequest& request);

void CheckRequestId(absl::string_view request_id, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_JOB_H_
