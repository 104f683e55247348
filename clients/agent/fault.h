// Who is at fault if a task cannot be started: the node, unless a status blames the job or nobody.
// docs/users/training.md has the table of causes.
#ifndef BERTH_CLIENTS_AGENT_FAULT_H_
#define BERTH_CLIENTS_AGENT_FAULT_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "berth/v1/agent.pb.h"

namespace berth {

inline constexpr absl::string_view kJobsFault = "berth/jobs-fault";
inline constexpr absl::string_view kNobodysFault = "berth/nobodys-fault";

// The same error, blamed on the job. OK stays OK.
inline absl::Status BlameJob(absl::Status status) {
  status.SetPayload(kJobsFault, absl::Cord());
  return status;
}

// The same error, blamed on nobody.
inline absl::Status BlameNobody(absl::Status status) {
  status.SetPayload(kNobodysFault, absl::Cord());
  return status;
}

inline v1::TaskReport::Fault FaultOf(const absl::Status& status) {
  if (status.GetPayload(kNobodysFault).has_value()) return v1::TaskReport::NOBODY;
  return status.GetPayload(kJobsFault).has_value() ? v1::TaskReport::JOB : v1::TaskReport::NODE;
}

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_FAULT_H_
