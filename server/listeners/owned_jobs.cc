#include "server/listeners/owned_jobs.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "support/errors.h"

namespace berth {
namespace {

constexpr absl::Duration kFullOwnerRetry = absl::Seconds(30);

}  // namespace

void OwnedJobs::Begin(const ClusterState& state) {
  if (most_ == 0) return;
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (!Ended(job.status.state)) Start(id, job.owner);
  });
}

void OwnedJobs::Start(JobId id, const std::string& owner) {
  if (owner.empty()) return;
  owner_of_.emplace(id, owner);
  ++counts_[owner];
}

void OwnedJobs::EndIfOver(const ClusterState& state, JobId id) {
  const auto found = owner_of_.find(id);
  if (found == owner_of_.end()) return;
  const Job* job = state.jobs().Find(id);
  if (job != nullptr && !Ended(job->status.state)) return;
  const auto count = counts_.find(found->second);
  if (--count->second == 0) counts_.erase(count);
  owner_of_.erase(found);
}

absl::Status OwnedJobs::Check(const std::string& owner, int64_t more) const {
  if (most_ == 0 || owner.empty()) return absl::OkStatus();
  const auto known = counts_.find(owner);
  const auto added = added_.find(owner);
  const int64_t there =
      (known == counts_.end() ? 0 : known->second) + (added == added_.end() ? 0 : added->second);
  if (there + more <= most_) return absl::OkStatus();
  return RetryLaterError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("user \"", owner, "\" may own at most ", most_,
                   " jobs that have not ended (limits.active_jobs_per_user), has ", there,
                   ", and this call adds ", more),
      kFullOwnerRetry);
}

void OwnedJobs::Add(const std::string& owner, int64_t jobs) {
  if (most_ > 0 && !owner.empty()) added_[owner] += jobs;
}

Effect OwnedJobs::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                const ColdParts&) {
  if (most_ == 0) return nullptr;
  added_.clear();
  for (const Event& event : events) {
    if (const auto* submitted = std::get_if<JobSubmitted>(&event.body); submitted != nullptr) {
      Start(submitted->id, submitted->spec.owner);
    }
  }
  for (const Event& event : events) {
    if (const auto* changed = std::get_if<JobStatusChanged>(&event.body); changed != nullptr) {
      EndIfOver(state, changed->job);
    } else if (const auto* cancelled = std::get_if<JobCancelled>(&event.body);
               cancelled != nullptr) {
      EndIfOver(state, cancelled->id);
    } else if (const auto* deleted = std::get_if<JobDeleted>(&event.body); deleted != nullptr) {
      EndIfOver(state, deleted->id);
    }
  }
  return nullptr;
}

}  // namespace berth
