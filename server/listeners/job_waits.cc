#include "server/listeners/job_waits.h"

#include <algorithm>
#include <variant>

namespace berth {

Effect JobWaits::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                               const ColdParts&) {
  for (const Event& event : events) {
    if (const auto* bound = std::get_if<TasksBound>(&event.body)) {
      NotePlaced(state, *bound, event.time);
    } else if (const auto* changed = std::get_if<JobStatusChanged>(&event.body)) {
      NoteStatus(*changed, event.time);
    }
  }
  return nullptr;
}

void JobWaits::NotePlaced(const ClusterState& state, const TasksBound& bound, Time time) {
  const Job* job = state.jobs().Find(bound.job);
  if (!bound.gang || job == nullptr) return;
  placed_[bound.job] = time;
  if (job->status.starts <= 1) decisions_.Observe(time - std::max(job->submit, job->start_after));
}

void JobWaits::NoteStatus(const JobStatusChanged& changed, Time time) {
  const bool runs = changed.status.state == JobState::kRunning;
  if (!runs && !Ended(changed.status.state)) return;
  const auto placed = placed_.find(changed.job);
  if (placed == placed_.end()) return;
  if (runs) starts_.Observe(time - placed->second);
  placed_.erase(placed);
}

}  // namespace berth
