// Where a job would go if it were submitted now.
#ifndef BERTH_CLIENTS_CLI_PLAN_H_
#define BERTH_CLIENTS_CLI_PLAN_H_

#include <string>

#include "berth/v1/explain.pb.h"
#include "clients/cli/manifest.h"
#include "clients/cli/session.h"

namespace berth {

// Asks the server and prints the plan. kOk if the job would be accepted, even if it would be
// pending. Errors are printed as by FinishSubmit.
ExitCode PlanManifest(Session& session, const Manifest& manifest);

// The nodes with their tasks, or the reasons why the job would be pending; and the jobs that it
// would evict.
std::string PlanText(const v1::PlanJobResponse& plan, const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PLAN_H_
