// StateEditor: AffinityIndex, and classes that wait for other jobs to come or go.
#include <algorithm>

#include "core/model/state_editor.h"

namespace berth {

// Jobs with a newly named label may be in one class with jobs without it; jobs with a label that is
// no longer named need no separate class.
void StateEditor::FollowTerms() {
  AffinityIndex& affinity = state_.affinity_;
  if (!affinity.Lags() || state_.pending_.in_trial()) return;
  const std::vector<LabelPair> changed = affinity.TakeLag();
  if (changed.empty()) return;
  state_.jobs_.ForEach([&](JobId id, const Job& job) {
    if (job.occupying == 0 && job.pending_class == ClassId{}) return;
    for (const LabelPair& label : changed) {
      const auto found = job.labels.find(label.first);
      if (found == job.labels.end() || found->second != label.second) continue;
      const auto with = affinity.followed_.find(label);
      if (job.occupying > 0 && with != affinity.followed_.end()) with->second.insert(id);
      if (job.pending_class != ClassId{}) Touch(id);
    }
  });
}

void StateEditor::WakeForAffinity(JobId id) {
  if (!facts() || !state_.affinity_.any()) return;
  if (state_.affinity_.Concerns(state_.jobs_.At(id))) state_.pending_.ReopenForAffinity();
}

void StateEditor::SetJobLabels(JobId id, std::map<std::string, std::string> labels) {
  Job& job = state_.jobs_.At(id);
  const bool concerned = state_.affinity_.Concerns(job);
  if (job.occupying > 0) state_.affinity_.List(job, false);
  job.labels = std::move(labels);
  if (job.occupying > 0) state_.affinity_.List(job, true);
  if (concerned || state_.affinity_.Concerns(job)) {
    Touch(id);
    if (facts()) state_.pending_.ReopenForAffinity();
  }
  MarkJob(id);
}

}  // namespace berth
