// The API's rules for a SubmitJobs call, as far as they concern the call by itself. Rules for one
// job: server/validation/job.h; rules against the state: server/commands/job_state.h.
#ifndef BERTH_SERVER_VALIDATION_SUBMISSION_H_
#define BERTH_SERVER_VALIDATION_SUBMISSION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

// The dependencies of one call's jobs. Jobs are positions in the request. A call without
// dependencies has no edges.
//   a; b after a; c after "stored"  ->  edges {1, 0, 0} and {2, 0, kInCluster}, order {0, 1, 2}
struct CallDependencies {
  static constexpr int kInCluster = -1;

  struct Edge {
    int job = 0;          // the job that depends on another
    int entry = 0;        // index in its spec.dependencies
    int on = kInCluster;  // the other job; kInCluster: no job of the call has the name
  };

  // The edges of one job.
  absl::Span<const Edge> Of(int job) const;

  std::vector<Edge> edges;  // in the order of the request
  // Without findings: every job after the jobs of the call that it depends on. Empty if no job
  // depends on another one of the call: then the order of the request is one.
  std::vector<int> order;
};

// Checks every job of the call and the relations between them in one pass. `limits` with all
// defaults filled in (server/config/config.h). Fields that a store of format `store_format` must
// not hold are refused. The edges are complete even if there are findings. Pure.
CallDependencies CheckSubmit(const v1::SubmitJobsRequest& request, const config::v1::Limits& limits,
                             uint32_t store_format, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_SUBMISSION_H_
