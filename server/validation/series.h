// The API's rules for arrays and schedules.
#ifndef BERTH_SERVER_VALIDATION_SERIES_H_
#define BERTH_SERVER_VALIDATION_SERIES_H_

#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/job.pb.h"
#include "server/validation/findings.h"

namespace berth {

inline constexpr size_t kMaxIndexesBytes = 4096;
inline constexpr int32_t kMaxHistory = 100;

void CheckSeries(const FieldPath& path, const v1::JobSpec& spec, const config::v1::Limits& limits,
                 Findings& findings);

// The name of a job: a DNS label, or of a job that a series made, "sweep.17".
void CheckJobReference(const FieldPath& path, absl::string_view name, Findings& findings);

}  // namespace berth

#endif  // BERTH_SERVER_VALIDATION_SERIES_H_
