#include "server/listeners/queue_conditions.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

int32_t CountOf(const JobStatus& status) { return status.refusals.own + status.refusals.starts; }

}  // namespace

void RefusedStarts::Begin(const ClusterState& state) {
  state.jobs().ForEach([&](JobId id, const Job& job) {
    if (CountOf(job.status) > 0 && !Ended(job.status.state)) refusals_[id] = CountOf(job.status);
  });
}

void RefusedStarts::Note(const ClusterState& state, const JobStatusChanged& changed, Time time,
                         std::vector<Change>* changes) {
  const JobStatus& status = changed.status;
  const Job* job = state.jobs().Find(changed.job);
  const auto known = refusals_.find(changed.job);
  const int32_t before = known == refusals_.end() ? 0 : known->second;
  const bool runs = status.state == JobState::kRunning;
  if (runs || Ended(status.state)) {
    refusals_.erase(changed.job);
  } else if (CountOf(status) > 0) {
    refusals_[changed.job] = CountOf(status);
  }
  if (job == nullptr) return;
  if (runs) {
    changes->push_back({.queue = job->queue, .refused = false, .time = status.start});
  } else if (CountOf(status) > before) {
    changes->push_back({.queue = job->queue, .refused = true, .time = time});
  }
}

Effect RefusedStarts::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                    const ColdParts&) {
  std::vector<Change> changes;
  for (const Event& event : events) {
    if (const auto* changed = std::get_if<JobStatusChanged>(&event.body)) {
      Note(state, *changed, event.time, &changes);
    } else if (const auto* deleted = std::get_if<QueueDeleted>(&event.body)) {
      changes.push_back({.queue = deleted->id, .refused = false, .time = absl::InfiniteFuture()});
    }
  }
  if (changes.empty()) return nullptr;
  return [this, changes = std::move(changes)]() mutable { Apply(changes); };
}

void RefusedStarts::Apply(const std::vector<Change>& changes) {
  absl::MutexLock lock(&mutex_);
  for (const Change& change : changes) {
    if (change.refused) {
      Row& row = rows_[change.queue];
      ++row.starts;
      row.last = change.time;
    } else if (const auto found = rows_.find(change.queue);
               found != rows_.end() && change.time >= found->second.last) {
      rows_.erase(found);
    }
  }
}

int32_t RefusedStarts::ConsecutiveRefusals(QueueId queue) const {
  absl::MutexLock lock(&mutex_);
  const auto found = rows_.find(queue);
  if (found == rows_.end() || found->second.starts < kRepeatedRefusals) return 0;
  return found->second.starts;
}

int64_t RefusedStarts::Queues() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(rows_.begin(), rows_.end(),
                       [](const auto& entry) { return entry.second.starts >= kRepeatedRefusals; });
}

void RenderConditions(int32_t refused, v1::QueueStatus* out) {
  if (refused == 0) return;
  v1::QueueCondition* condition = out->add_conditions();
  condition->set_kind(v1::QueueCondition::STARTS_REFUSED);
  condition->set_count(refused);
  condition->set_detail(absl::StrCat("the last ", refused,
                                     " starts of its jobs were refused, and none has run since"));
}

}  // namespace berth
