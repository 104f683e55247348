// ListJobs and ListTasks: pages over the state, in steps.
#ifndef BERTH_SERVER_SERVICES_JOB_LIST_H_
#define BERTH_SERVER_SERVICES_JOB_LIST_H_

#include "absl/status/status.h"
#include "berth/v1/job.pb.h"
#include "server/access/permit.h"
#include "server/reads/read_view.h"

namespace berth {

// Fill the response through the view; the caller responds when the view is durable.
// INVALID_ARGUMENT for an invalid page or filter; NOT_FOUND; PERMISSION_DENIED for a node in the
// filter. Only of jobs that the caller may list, and of these what it may see.
absl::Status ListJobs(ReadView& view, Rights& rights, Time now, const v1::ListJobsRequest& request,
                      v1::ListJobsResponse& response);
absl::Status ListTasks(ReadView& view, Rights& rights, const v1::ListTasksRequest& request,
                       v1::ListTasksResponse& response);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_JOB_LIST_H_
