// The filter of a list of jobs.
#ifndef BERTH_SERVER_SERVICES_JOB_FILTER_H_
#define BERTH_SERVER_SERVICES_JOB_FILTER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"
#include "core/model/cluster_state.h"

namespace berth {

inline constexpr size_t kMaxNamePatternBytes = 128;

// INVALID_ARGUMENT with every violation of filter and order.
absl::Status ValidateJobList(const v1::ListJobsRequest& request);

// A filter without its node. Valid for one step under the reader lock: both outlive the matcher.
class JobMatcher {
 public:
  JobMatcher(const ClusterState& state, const v1::JobFilter& filter);
  // O(length of name and pattern + labels requested).
  bool operator()(const Job& job) const;

 private:
  bool InQueue(const Job& job) const;
  bool HasLabels(const Job& job) const;

  const ClusterState& state_;
  const v1::JobFilter& filter_;
  JobId series_;                  // likewise
  const Queue* queue_ = nullptr;  // null: none is requested, or none has that name
  Time submitted_after_ = absl::InfinitePast();
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_JOB_FILTER_H_
