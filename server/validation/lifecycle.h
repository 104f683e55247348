// The API's rules for what happens to tasks that fail and before they are stopped: policies,
// membership of gangs, checkpoints.
#ifndef BERTH_SERVER_VALIDATION_LIFECYCLE_H_
#define BERTH_SERVER_VALIDATION_LIFECYCLE_H_

#include <string>

#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr int kMaxSavedExitCodes = 32;
inline constexpr int kMaxRungs = 8;
inline constexpr absl::Duration kMaxWatchdog = absl::Hours(24);
inline constexpr absl::Duration kMaxDumpWait = absl::Minutes(10);
// The first store format that can hold watchdogs and every policy.
inline constexpr uint32_t kFormatOfProgress = 8;
// The first store format that can hold access rules, and variables from files of the node.
inline constexpr uint32_t kFormatOfAccess = 9;
// And arrays, schedules, min_success and run_limit; and the images of nodes and groups.
inline constexpr uint32_t kFormatOfSeries = 10;
// Why a store of that older format cannot hold something, and what to do.
std::string NeedsFormat(uint32_t store_format);

using PolicyList = google::protobuf::RepeatedPtrField<v1::LifecyclePolicy>;
// `watched`: the job has a watchdog.
void CheckPolicies(const FieldPath& parent, const PolicyList& policies, bool watched,
                   Findings& findings);

// `path` is the group.
void CheckMembership(const FieldPath& path, const v1::JobSpec& spec, const v1::TaskGroup& group,
                     Findings& findings);
// At most one group hosts the rendezvous, and for others. `path` is the spec.
void CheckCoordinator(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);

void CheckSignal(const FieldPath& path, const std::string& signal, Findings& findings);
// A requested grace: at most `most`, and at most the operator's limit.
void CheckGrace(const FieldPath& path, const google::protobuf::Duration& grace, absl::Duration most,
                const config::v1::Limits& limits, Findings& findings);
void CheckEscalation(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);
void CheckIdle(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);
void CheckInteractive(const FieldPath& path, const v1::Interactive& interactive,
                      Findings& findings);
// `path` is the policy.
void CheckPausePolicy(const FieldPath& path, const v1::JobSpec& spec, Findings& findings);
void CheckWatchdog(const FieldPath& path, const v1::Watchdog& watchdog, Findings& findings);
// Refuses what a store of an older format must not hold, because an older berthd could not read it.
// `path` is the spec.
void CheckLifecycleFormat(const FieldPath& path, const v1::JobSpec& spec, uint32_t store_format,
                          Findings& findings);
void CheckCheckpoint(const FieldPath& path, const v1::JobSpec& spec,
                     const config::v1::Limits& limits, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_LIFECYCLE_H_
