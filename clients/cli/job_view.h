// Formats jobs and their tasks for people.
#ifndef BERTH_CLIENTS_CLI_JOB_VIEW_H_
#define BERTH_CLIENTS_CLI_JOB_VIEW_H_

#include <string>
#include <vector>

#include "clients/cli/output.h"
#include "clients/cli/session.h"

namespace berth {

Shape<v1::Job> JobShape();
// "from 2026-11-20 14:05:00 on n1, n2"; the first few nodes.
std::string ReservationText(const v1::Reservation& reservation, const Session& session);
Table TaskTable(const std::vector<v1::Task>& tasks, const Session& session);
// A page of text with the most interesting tasks. `tasks` are all tasks of the job.
std::string DescribeJob(const v1::Job& job, const std::vector<v1::Task>& tasks,
                        const Session& session);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_JOB_VIEW_H_
