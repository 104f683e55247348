// Why jobs are pending, counted, for metrics.
#ifndef BERTH_SERVER_READS_WAITING_JOBS_H_
#define BERTH_SERVER_READS_WAITING_JOBS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "berth/v1/job_status.pb.h"
#include "server/reads/read_view.h"

namespace berth {

inline constexpr size_t kMostWaitingJobs = 1000;

// Of the oldest kMostWaitingJobs pending jobs, by their most important reason. In steps.
std::array<int64_t, v1::WaitReason::Code_ARRAYSIZE> CountWaitingJobs(ReadView& view, Time now);

}  // namespace berth

#endif  // BERTH_SERVER_READS_WAITING_JOBS_H_
