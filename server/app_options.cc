#include "server/app_options.h"

#include <algorithm>

#include "server/convert/values.h"

namespace berth {

LoopOptions LoopOptionsFrom(const config::v1::Server& config) {
  LoopOptions options;
  options.pending_commands = static_cast<size_t>(config.limits().pending_commands());
  return options;
}

LeaseOptions LeaseOptionsFrom(const config::v1::Server& config, GrantedLease granted_before) {
  return {
      .lease = DurationFrom(config.lease()),
      .fence_margin = DurationFrom(config.fence_margin()),
      .brake_share = config.silent_brake(),
      .restore_hold = std::max(DurationFrom(config.lease()), DurationFrom(config.stop_lease())) +
                      kForeignPatienceMargin,
      .granted_before = granted_before};
}

AuditLimits AuditLimitsFrom(const config::v1::Server& config) {
  return {.retention = DurationFrom(config.audit().retention()),
          .max_bytes = static_cast<uint64_t>(config.audit().max_bytes())};
}

UserLimits UserLimitsFrom(const config::v1::Server& config) {
  const config::v1::Limits& limits = config.limits();
  return {.requests = limits.requests_per_user(),
          .jobs = limits.submitted_jobs_per_user(),
          .streams = limits.streams_per_user(),
          .requests_per_second = limits.requests_per_second_per_user()};
}

}  // namespace berth
