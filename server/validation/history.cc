#include "server/validation/history.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/validation/findings.h"
#include "server/validation/queue.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using v1::GetUsageRequest;

constexpr size_t kMaxFilterBytes = 256;
constexpr size_t kMaxPatternBytes = 128;

// The times are those of messages with from and to, or since and until.
template <class Request>
void CheckTimes(const Request& request, Findings& findings) {
  const FieldPath root;
  if (request.has_from()) CheckTimestamp({root, "from"}, request.from(), findings);
  if (request.has_to()) CheckTimestamp({root, "to"}, request.to(), findings);
  const bool both = request.has_from() && request.has_to();
  if (both && TimeFrom(request.from()) >= TimeFrom(request.to())) {
    findings.Invalid({root, "to"}, "must be after from");
  }
  CheckEnum({root, "step"}, request.step(), findings);
}

void CheckText(absl::string_view field, const std::string& text, size_t most, Findings& findings) {
  const FieldPath root;
  if (text.size() <= most) return;
  findings.Invalid({root, field}, absl::StrCat("at most ", most, " bytes, has ", text.size()));
}

}  // namespace

absl::Status ValidateGetUsage(const GetUsageRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckTimes(request, findings);
  std::set<int> seen;
  for (int i = 0; i < request.by_size(); ++i) {
    const GetUsageRequest::Dimension by = request.by(i);
    CheckEnum({root, "by", i}, by, findings);
    if (by == GetUsageRequest::DIMENSION_UNSPECIFIED) {
      findings.Invalid({root, "by", i}, "names no dimension");
    }
    if (!seen.insert(by).second) findings.Invalid({root, "by", i}, "is named twice");
  }
  CheckRange({root, "queue_depth"}, request.queue_depth(), 0, kMaxQueueDepth, findings);
  if (request.queue_depth() > 0 && !seen.contains(GetUsageRequest::QUEUE)) {
    findings.Invalid({root, "queue_depth"}, "has no effect without QUEUE in by");
  }
  CheckText("queue", request.queue(), kMaxFilterBytes, findings);
  CheckText("user", request.user(), kMaxFilterBytes, findings);
  CheckText("account", request.account(), kMaxFilterBytes, findings);
  if (request.step() == v1::HISTORY_STEP_MINUTE) {
    const bool finer =
        std::any_of(seen.begin(), seen.end(), [](int by) { return by != GetUsageRequest::QUEUE; });
    if (finer || !request.user().empty() || !request.account().empty()) {
      findings.Invalid({root, "step"},
                       "minutes are kept by queue only: ask for HOUR, or by QUEUE without user and "
                       "account");
    }
  }
  return findings.ToStatus();
}

absl::Status ValidateGetCapacity(const v1::GetCapacityRequest& request) {
  Findings findings;
  CheckTimes(request, findings);
  return findings.ToStatus();
}

absl::Status ValidateListEndedJobs(const v1::ListEndedJobsRequest& request) {
  Findings findings;
  const FieldPath root;
  if (request.has_since()) CheckTimestamp({root, "since"}, request.since(), findings);
  if (request.has_until()) CheckTimestamp({root, "until"}, request.until(), findings);
  for (int i = 0; i < request.states_size(); ++i) {
    const v1::JobState state = request.states(i);
    const bool ended =
        state == v1::JOB_SUCCEEDED || state == v1::JOB_FAILED || state == v1::JOB_CANCELLED;
    if (!ended) {
      findings.Invalid({root, "states", i},
                       "must be JOB_SUCCEEDED, JOB_FAILED or JOB_CANCELLED: jobs here have ended");
    }
  }
  CheckText("queue", request.queue(), kMaxFilterBytes, findings);
  CheckText("user", request.user(), kMaxFilterBytes, findings);
  CheckText("owner", request.owner(), kMaxFilterBytes, findings);
  CheckText("account", request.account(), kMaxFilterBytes, findings);
  CheckText("name_pattern", request.name_pattern(), kMaxPatternBytes, findings);
  if (request.uids_size() > kMaxAskedUids) {
    findings.Invalid({root, "uids"},
                     absl::StrCat("at most ", kMaxAskedUids, ", has ", request.uids_size()));
  }
  return findings.ToStatus();
}

}  // namespace berth
