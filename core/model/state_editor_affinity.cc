// StateEditor: AffinityIndex, and what waits for others to come or to go.
#include "core/model/state_editor.h"

namespace berth {

// Jobs of which nobody spoke before may now stand in one class with others that are not spoken of;
// or need no longer stand apart. Where edits are tentative, classes stay: they will be put back.
void StateEditor::SpeakOfOthers(const Job& job, bool begins) {
  if (job.affinity.empty()) return;
  const std::vector<std::string> keys = state_.affinity_.Speak(job, begins);
  for (const std::string& key : keys) {
    if (!begins) state_.affinity_.ForgetKey(key);
  }
  if (keys.empty() || (!begins && !facts())) return;
  state_.jobs_.ForEach([&](JobId id, const Job& other) {
    for (const std::string& key : keys) {
      if (!other.labels.contains(key)) continue;
      if (begins && other.occupying > 0) state_.affinity_.ListKey(other, key);
      if (facts() && other.pending_class != ClassId{}) Touch(id);
    }
  });
}

void StateEditor::NeighboursCouldHelp(JobId id) {
  if (!facts() || !state_.affinity_.any()) return;
  if (state_.affinity_.Concerns(state_.jobs_.At(id))) state_.pending_.ReopenForNeighbours();
}

void StateEditor::SetJobLabels(JobId id, std::map<std::string, std::string> labels) {
  Job& job = state_.jobs_.At(id);
  const bool concerned = state_.affinity_.Concerns(job);
  if (job.occupying > 0) state_.affinity_.List(job, false);
  job.labels = std::move(labels);
  if (job.occupying > 0) state_.affinity_.List(job, true);
  if (concerned || state_.affinity_.Concerns(job)) {
    Touch(id);
    if (facts()) state_.pending_.ReopenForNeighbours();
  }
  MarkJob(id);
}

}  // namespace berth
