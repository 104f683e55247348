// The part of a job that only the store holds: command, environment, user to run as.
#ifndef BERTH_SERVER_SERVICES_COLD_PART_H_
#define BERTH_SERVER_SERVICES_COLD_PART_H_

#include <string>

#include "absl/status/status.h"
#include "berth/v1/job.pb.h"
#include "core/model/ids.h"
#include "storage/store.h"

namespace berth {

// May read the disk. NOT_FOUND, naming the job, if it is gone.
absl::Status ReadColdPart(const Store& store, JobId id, const std::string& name, v1::JobSpec* cold);
// Adds it to a job that was rendered from memory.
absl::Status AddColdPart(const Store& store, v1::Job& job);

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_COLD_PART_H_
