// Formats explanations and estimates of jobs for people.
#ifndef BERTH_CLIENTS_CLI_EXPLAIN_VIEW_H_
#define BERTH_CLIENTS_CLI_EXPLAIN_VIEW_H_

#include <string>

#include "berth/v1/explain.pb.h"
#include "clients/cli/session.h"

namespace berth {

// Why the job is pending, with numbers, and what would start it.
std::string ExplanationText(const v1::ExplainJobResponse& answer, const Session& session);
// When it starts; "": it is not pending.
std::string EstimateSentence(const v1::EstimateJobResponse& estimate, const Session& session);
// When the job starts. `job` is its name.
std::string EstimateText(const std::string& job, const v1::EstimateJobResponse& estimate,
                         const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_EXPLAIN_VIEW_H_
