// StateEditor: which pending tasks count as demand of their queues (Queue::wanted), and the related
// verdicts that planning remembers.
#include <utility>

#include "core/model/state_editor.h"
#include "core/model/state_editor_internal.h"

namespace berth {

Resources StateEditor::WaitingRequest(const Job& job) const {
  Resources sum;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const Resources& one = state_.interner_.Shape(job.groups[g].shape).resources;
    const int32_t waiting = job.tallies[g].In(TaskState::kPending);
    if (waiting == 1) {
      sum += one;  // multiplication would be slow
    } else {
      sum += one.Times(waiting);
    }
  }
  return sum;
}

void StateEditor::RefreshWanting(Job& job) {
  const JobState now = job.status.state;
  const bool never =
      job.pending_class != ClassId{} && state_.pending_.Class(job.pending_class).never;
  const bool wanting = !Ended(now) && !OnHold(now) && !never;
  if (wanting == job.wanting) return;
  job.wanting = wanting;
  ChangeQueues(job.queue, WaitingRequest(job), {.wanted = wanting ? 1 : -1});
}

void StateEditor::SetNever(ClassId id, bool never) {
  PendingClass& c = state_.pending_.classes_.At(id);
  state_.pending_.Remember(id, c);
  c.never = never;
  if (never) state_.pending_.never_.push_back(id);
  for (const OrderKey& key : c.jobs) RefreshWanting(state_.jobs_.At(key.job));
}

void StateEditor::SetRank(JobId id, int64_t rank) {
  Job& job = state_.jobs_.At(id);
  state_.ranked_ = true;
  if (job.rank == rank) return;
  const ClassId of = job.pending_class;
  if (of != ClassId{}) state_.pending_.Remove(of, KeyOf(job));
  job.rank = rank;
  if (of == ClassId{}) return;
  state_.pending_.Return(of, KeyOf(job));
  if (state_.pending_.Class(of).jobs.begin()->job == id) Reopen(of);
}

void StateEditor::SettleNever() {
  PendingIndex& pending = state_.pending_;
  for (ClassId id : std::exchange(pending.judged_, {})) {
    const PendingClass* c = pending.FindClass(id);
    if (c != nullptr && pending.NeverChanged(*c)) SetNever(id, !c->never);
  }
}

void StateEditor::EndTrial() {
  for (ClassId id : state_.pending_.EndTrial()) {
    for (const OrderKey& key : state_.pending_.Class(id).jobs) {
      RefreshWanting(state_.jobs_.At(key.job));
    }
  }
}

void StateEditor::ForgetNever() {
  PendingIndex& pending = state_.pending_;
  pending.judged_.clear();
  for (ClassId id : std::exchange(pending.never_, {})) {
    const PendingClass* c = pending.FindClass(id);
    if (c != nullptr && c->never) SetNever(id, false);
  }
}

void StateEditor::ForgetVerdicts() {
  state_.pending_.ReopenAll();
  state_.ageing_.clear();
  state_.unranked_.clear();
  state_.jobs_.ForEach([this](JobId id, const Job&) { state_.unranked_.push_back(id); });
  ForgetNever();
  state_.planning_cache_.reset();
  state_.free_.ClearMarks();
}

void StateEditor::SetReservation(JobId id, Reservation reservation) {
  if (reservation.places.empty()) {
    state_.reservations_.erase(id);
  } else {
    state_.reservations_[id] = std::move(reservation);
  }
  if (!facts()) return;
  state_.dirty_.jobs.push_back(id);
  state_.pending_.ReopenAll();  // its reservation may now be free for others
}

void StateEditor::TryWalltime(JobId id, Duration walltime) {
  BERTH_CHECK(!facts());
  Job& job = state_.jobs_.At(id);
  const bool listed = job.occupying > 0;
  if (listed) ListEnd(job, PlannedEnd(job), absl::InfiniteFuture());
  job.walltime = walltime;
  if (listed) ListEnd(job, absl::InfiniteFuture(), PlannedEnd(job));
}

// Jobs that wait for its end must learn the new one, and the job itself may fit differently.
void StateEditor::SetJobWalltime(JobId id, Duration walltime) {
  Job& job = state_.jobs_.At(id);
  const bool listed = job.occupying > 0;
  if (listed) ListEnd(job, PlannedEnd(job), absl::InfiniteFuture());
  job.walltime = walltime;
  job.walltime_updated = true;
  if (listed) ListEnd(job, absl::InfiniteFuture(), PlannedEnd(job));
  Touch(id);
  MarkJob(id);
  if (facts() && listed) state_.pending_.ReopenAll();
}

}  // namespace berth
