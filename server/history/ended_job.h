// A job that has ended, as the API shows it.
#ifndef BERTH_SERVER_HISTORY_ENDED_JOB_H_
#define BERTH_SERVER_HISTORY_ENDED_JOB_H_

#include <string>

#include "absl/strings/string_view.h"
#include "berth/v1/history.pb.h"
#include "core/history/usage_facts.h"
#include "core/model/job.h"

namespace berth {

// The last part of a path of queues; that of the root is "root".
std::string QueueNameIn(absl::string_view path);

// `spec`: as submitted, with its last labels.
v1::EndedJob EndedJobOf(const EndedJobFacts& job, const JobSpec& spec);

}  // namespace berth

#endif  // BERTH_SERVER_HISTORY_ENDED_JOB_H_
