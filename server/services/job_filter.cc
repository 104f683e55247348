#include "server/services/job_filter.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/access/access.h"
#include "core/model/pauses.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/validation/findings.h"
#include "server/validation/series.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/wildcard.h"

namespace berth {
namespace {

// Characters of names, and the two wildcards.
bool IsNamePattern(absl::string_view text) {
  return text.size() <= kMaxNamePatternBytes && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == '*' || c == '?';
         });
}

void CheckNames(const FieldPath& path, const v1::JobFilter& filter, Findings& findings) {
  if (!filter.queue().empty()) CheckDnsLabel({path, "queue"}, filter.queue(), findings);
  if (!filter.series().empty()) CheckJobReference({path, "series"}, filter.series(), findings);
  if (!filter.node().empty()) CheckDnsName({path, "node"}, filter.node(), findings);
  if (!filter.user().empty() && !IsUserName(filter.user())) {
    findings.Invalid({path, "user"},
                     "must be at most 128 letters, digits, '.', '_', '-', '@' and '+'");
  }
  if (filter.owner().size() > AccessRules::kMaxName) {
    findings.Invalid({path, "owner"}, absl::StrCat("at most ", AccessRules::kMaxName, " bytes"));
  }
  if (!IsNamePattern(filter.name_pattern())) {
    findings.Invalid(
        {path, "name_pattern"},
        absl::StrCat("must be at most ", kMaxNamePatternBytes,
                     " of a-z, 0-9, '-', '.', '*' (any text) and '?' (one character)"));
  }
}

}  // namespace

absl::Status ValidateJobList(const v1::ListJobsRequest& request) {
  Findings findings;
  const FieldPath root;
  const FieldPath path(root, "filter");
  const v1::JobFilter& filter = request.filter();
  for (int i = 0; i < filter.states_size(); ++i) {
    CheckEnum({path, "states", i}, filter.states(i), findings);
  }
  CheckNames(path, filter, findings);
  CheckLabels(path, "labels", filter.labels(), findings);
  if (filter.active_only() && filter.ended_only()) {
    findings.Invalid({path, "ended_only"}, "not together with active_only");
  }
  if (filter.has_submitted_after()) {
    CheckTimestamp({path, "submitted_after"}, filter.submitted_after(), findings);
  }
  if (request.order() != v1::ListJobsRequest::ORDER_UNSPECIFIED) {
    CheckEnum({root, "order"}, request.order(), findings);
  }
  return findings.ToStatus();
}

JobMatcher::JobMatcher(const ClusterState& state, const v1::JobFilter& filter)
    : state_(state), filter_(filter) {
  if (!filter.series().empty()) {
    const Job* series = state.FindJob(filter.series());
    if (series != nullptr) series_ = series->id;
  }
  if (!filter.queue().empty()) queue_ = state.FindQueue(filter.queue());
  if (filter.has_submitted_after()) submitted_after_ = TimeFrom(filter.submitted_after());
}

bool JobMatcher::operator()(const Job& job) const {
  const bool ended = Ended(job.status.state);
  if ((filter_.active_only() && ended) || (filter_.ended_only() && !ended)) return false;
  const auto& states = filter_.states();
  if (!states.empty() &&
      std::find(states.begin(), states.end(), JobStateToApi(job.status.state)) == states.end()) {
    return false;
  }
  const bool paused = ListedAsPaused(job.status);
  if (filter_.paused_only() && !paused) return false;
  const bool held = job.status.state == JobState::kSuspended || (paused && job.status.suspended);
  if (filter_.suspended_only() && !held) return false;
  if (filter_.without_members() && job.member) return false;
  if (!filter_.series().empty() && !(job.member && job.member->series == series_)) return false;
  if (!filter_.queue().empty() && !InQueue(job)) return false;
  if (!filter_.user().empty() && job.user != filter_.user()) return false;
  if (!filter_.owner().empty() && job.owner != filter_.owner()) return false;
  if (job.submit < submitted_after_) return false;
  if (!filter_.name_pattern().empty() && !MatchesPattern(job.name, filter_.name_pattern())) {
    return false;
  }
  return HasLabels(job);
}

bool JobMatcher::InQueue(const Job& job) const {
  if (queue_ == nullptr) return false;
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
    if (id == queue_->id) return true;
    if (id == kRootQueue) return false;
  }
}

bool JobMatcher::HasLabels(const Job& job) const {
  for (const auto& [key, value] : filter_.labels()) {
    const auto found = job.labels.find(key);
    if (found == job.labels.end() || found->second != value) return false;
  }
  return true;
}

}  // namespace berth
