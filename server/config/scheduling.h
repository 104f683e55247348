// The scheduling part of the configuration: defaults, checks, and conversion for the planner.
#ifndef BERTH_SERVER_CONFIG_SCHEDULING_H_
#define BERTH_SERVER_CONFIG_SCHEDULING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "berth/config/v1/config.pb.h"
#include "server/convert/job.h"
#include "server/validation/findings.h"

namespace berth {

// The defaults are PolicyConfig's.
void FillScheduling(config::v1::Scheduling& scheduling);
// Names of policies are checked against the registry. Only for a filled section.
void CheckScheduling(const FieldPath& path, const config::v1::Scheduling& scheduling,
                     Findings& findings);

// FAILED_PRECONDITION if it requires something that a store of this format cannot hold yet. Only
// for a completed configuration.
absl::Status CheckStoreFormat(const config::v1::Server& config, uint32_t store_format);

// Only for a completed configuration. Planning's own conversion: planning/policy_record.h.
JobDefaults JobDefaultsFrom(const config::v1::Server& config);

}  // namespace berth

#endif  // BERTH_SERVER_CONFIG_SCHEDULING_H_
