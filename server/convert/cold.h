// The cold part of a job: the fields of its spec that are not kept in memory (command, environment,
// working directory, image, volumes, annotations, kill signal, user to run as, signal and grace of
// a checkpoint). Its bytes are a serialized berth.v1.JobSpec with only those fields set; groups are
// parallel to the job's. Kept in the job_spec record, read when a task is launched or a job is
// described.
#ifndef BERTH_SERVER_CONVERT_COLD_H_
#define BERTH_SERVER_CONVERT_COLD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "berth/v1/job.pb.h"

namespace berth {

// Pure; thread-safe.
std::string EncodeCold(const v1::JobSpec& spec);

// Only the cold fields. DATA_LOSS if the bytes are not a cold part.
absl::Status ParseCold(absl::string_view cold, v1::JobSpec* spec);

// Adds the cold fields to a spec that was rendered from memory. DATA_LOSS also if the groups do not
// match.
absl::Status MergeCold(absl::string_view cold, v1::JobSpec* spec);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_COLD_H_
