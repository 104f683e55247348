// What a job reports about itself, for `berth job describe`: progress, checkpoints, hangs.
#ifndef BERTH_CLIENTS_CLI_JOB_PROGRESS_H_
#define BERTH_CLIENTS_CLI_JOB_PROGRESS_H_

#include "berth/v1/job.pb.h"
#include "clients/cli/page.h"
#include "clients/cli/session.h"

namespace berth {

void AddJobProgress(const v1::Job& job, const Session& session, Page* page);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_PROGRESS_H_
