// Where a job would go if it were submitted now.
#ifndef BERTH_CLIENTS_CLI_PLAN_H_
#define BERTH_CLIENTS_CLI_PLAN_H_

#include <string>

#include "berth/v1/explain.pb.h"
#include "clients/cli/manifest.h"
#include "clients/cli/session.h"

namespace berth {

// Asks the server and tells. kOk if it would be accepted, though it may have to wait; what is wrong
// with it is told as FinishSubmit does.
ExitCode PlanManifest(Session& session, const Manifest& manifest);

// Nodes with what they would get; else what the job would wait for. Whom it would evict.
std::string PlanText(const v1::PlanJobResponse& plan, const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PLAN_H_
