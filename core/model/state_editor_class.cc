// StateEditor: the classes of pending jobs (core/model/pending_index.h).
#include <utility>

#include "core/model/state_editor.h"

namespace berth {
namespace {

// The part of a job that planning reads and writes: its tasks, and its status up to `bound`.
constexpr size_t kPlannedBytes = 384;
constexpr size_t kAhead = 8;  // jobs

}  // namespace

void StateEditor::RefreshPending(Job& job) {
  const JobNeeds needs = NeedsOf(job);
  if (needs.empty()) {
    LeavePending(job);
    return RefreshWanting(job);
  }
  const Demand demand = DemandOf(state_.queues_.At(job.queue), job, needs, state_.affinity_);
  if (job.pending_class != ClassId{}) {
    if (state_.pending_.Class(job.pending_class).demand == demand) return;
    LeavePending(job);
  }
  RememberClass(job);
  job.pending_class = state_.pending_.Add(demand, KeyOf(job), facts());
  RefreshWanting(job);
}

void StateEditor::LeavePending(Job& job) {
  if (job.pending_class == ClassId{}) return;
  RememberClass(job);
  state_.pending_.Remove(job.pending_class, KeyOf(job));
  if (!facts()) {  // the next job of the class will be tried soon
    const auto& equal = state_.pending_.Class(job.pending_class).jobs;
    if (!equal.empty()) state_.jobs_.Prefetch(equal.begin()->job, kPlannedBytes);
  }
  job.pending_class = ClassId{};
}

void StateEditor::RememberClass(Job& job) {
  if (!remembers_classes_ || std::exchange(job.class_remembered, true)) return;
  origins_.push_back({job.id, job.pending_class});
}

void StateEditor::Prefetch(JobId id) const { state_.jobs_.Prefetch(id, kPlannedBytes); }

void StateEditor::RestoreClasses() {
  touched_.clear();
  for (size_t i = 0; i < origins_.size(); ++i) {
    if (i + kAhead < origins_.size()) state_.jobs_.Prefetch(origins_[i + kAhead].job, 64);
    const Origin& origin = origins_[i];
    Job& job = state_.jobs_.At(origin.job);
    job.class_remembered = false;
    if (job.pending_class == origin.pending_class) continue;
    if (job.pending_class != ClassId{}) state_.pending_.Remove(job.pending_class, KeyOf(job));
    job.pending_class = origin.pending_class;
    if (job.pending_class != ClassId{}) state_.pending_.Return(job.pending_class, KeyOf(job));
    RefreshWanting(job);
  }
  origins_.clear();
  state_.pending_.DropEmpty();  // forget verdicts on tentative classes
}

void StateEditor::KeepClasses(ClassId first) {
  for (const Origin& origin : origins_) state_.jobs_.At(origin.job).class_remembered = false;
  origins_.clear();
  const ClassId end = state_.pending_.next_class();
  for (ClassId id = first; id < end; ++id.value) {
    const PendingClass* made = state_.pending_.FindClass(id);
    if (made == nullptr || made->jobs.empty()) continue;
    const ClassId fresh = state_.pending_.Renew(id);
    for (const OrderKey& key : state_.pending_.Class(fresh).jobs) {
      Job& job = state_.jobs_.At(key.job);
      job.pending_class = fresh;
      RefreshWanting(job);
    }
  }
}

}  // namespace berth
