#include "server/app_options.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/convert/values.h"
#include "storage/files.h"
#include "support/text_label.h"

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

std::optional<HistoryOptions> HistoryOptionsFrom(const config::v1::Server& config, bool in_memory) {
  const config::v1::Usage& usage = config.usage();
  if (!usage.enabled()) return std::nullopt;
  HistoryOptions options;
  if (!in_memory) options.directory = absl::StrCat(config.data_directory(), "/", kHistoryName);
  options.account_of = [label = usage.account_label()](
                           const std::map<std::string, std::string>& labels) -> std::string {
    const auto find = [&](const std::string& key) {
      const auto found = labels.find(key);
      return found == labels.end() ? nullptr : &found->second;
    };
    const std::string* account = find(label);
    return account != nullptr ? *account : TextInLabels(kSlurmAccountLabel, find);
  };
  options.minutes = DurationFrom(usage.minute_retention());
  options.hours = DurationFrom(usage.retention());
  options.max_bytes = static_cast<uint64_t>(usage.max_bytes());
  options.keys = static_cast<size_t>(usage.keys());
  return options;
}

UserLimits UserLimitsFrom(const config::v1::Server& config) {
  const config::v1::Limits& limits = config.limits();
  return {.requests = limits.requests_per_user(),
          .jobs = limits.submitted_jobs_per_user(),
          .streams = limits.streams_per_user(),
          .requests_per_second = limits.requests_per_second_per_user()};
}

}  // namespace berth
