// StateEditor: what all edits share (Sync, waking, the passing of time). Each other
// state_editor_*.cc is named after what it edits; state_load.cc loads.
#include "core/model/state_editor.h"

#include <algorithm>
#include <utility>

#include "core/model/job_timer.h"

namespace berth {

StateEditor::StateEditor(ClusterState& state, EditMode mode) : state_(state), mode_(mode) {}

StateEditor::~StateEditor() { Sync(); }

void StateEditor::Sync() {
  for (JobId id : touched_) {
    Job* job = state_.jobs_.Find(id);
    if (job == nullptr) continue;
    RefreshPending(*job);
    if (!facts()) continue;
    RefreshTimer(*job);
    RefreshShort(*job);
  }
  touched_.clear();
  if (facts()) state_.pending_.DropEmpty();
}

void StateEditor::WakeForNode(NodeId id) {
  if (facts()) state_.freed_nodes_.push_back(id);
}

void StateEditor::WakeAll() {
  if (facts()) state_.pending_.ReopenAll();
}

void StateEditor::WakeReserved(Duration refresh) {
  if (state_.freed_nodes_.empty()) return;
  for (const auto& [id, reservation] : state_.reservations_) {
    const Job* job = state_.jobs_.Find(id);
    if (job == nullptr || job->pending_class == ClassId{}) continue;
    const BlockedVerdict* verdict = state_.pending_.Class(job->pending_class).blocked.get();
    if (verdict == nullptr) continue;
    const Time due = verdict->found + refresh;
    if (due <= state_.passed_time_) {
      state_.pending_.Reopen(job->pending_class);
    } else {
      state_.pending_.Revisit(job->pending_class, due);
    }
  }
}

void StateEditor::WakeForRoom(absl::FunctionRef<bool(ShapeId, NodeId)> fits) {
  if (state_.freed_nodes_.empty()) return;
  std::vector<NodeId> nodes = std::exchange(state_.freed_nodes_, {});
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  std::vector<ShapeId> woken;
  auto& blocked = state_.pending_.blocked_by_room_;
  for (auto it = blocked.begin(); it != blocked.end();) {
    const ShapeId of = it->first;
    if (state_.interner_.shapes().Find(of) == nullptr) {  // the last job of that shape is deleted
      it = blocked.erase(it);
      continue;
    }
    const auto helps = [&](NodeId node) { return state_.free_.Has(node) && fits(of, node); };
    if (std::any_of(nodes.begin(), nodes.end(), helps)) woken.push_back(of);
    ++it;
  }
  for (ShapeId shape : woken) state_.pending_.ReopenShape(shape);
}

void StateEditor::PassTime(Time now) {
  if (now <= state_.passed_time_) return;
  Sync();
  state_.passed_time_ = now;
  state_.pending_.ReopenDue(now);
  while (!state_.timers_.empty() && state_.timers_.begin()->first <= now) {
    Job& job = state_.jobs_.At(state_.timers_.begin()->second);
    state_.unsettled_.insert(job.id);
    RefreshTimer(job);
  }
  while (!state_.backoffs_.empty() && state_.backoffs_.begin()->first <= now) {
    const NodeId id = state_.backoffs_.begin()->second;
    state_.backoffs_.erase(state_.backoffs_.begin());
    ReindexNode(state_.nodes_.At(id));
    state_.freed_nodes_.push_back(id);
  }
  while (!state_.drain_ends_.empty() && state_.drain_ends_.begin()->first <= now) {
    const Node& node = state_.nodes_.At(state_.drain_ends_.begin()->second);
    state_.drain_ends_.erase(state_.drain_ends_.begin());
    for (TaskKey key : node.tasks) state_.unsettled_.insert(key.job);
  }
}

void StateEditor::RefreshTimer(Job& job) {
  const Time before = job.has_timer ? state_.timer_of_.at(job.id) : Time(absl::InfiniteFuture());
  const Time due = NextDue(job, state_.passed_time_, before);
  if (due == before) return;
  DropTimer(job);
  if (due == absl::InfiniteFuture()) return;
  state_.timers_.insert({due, job.id});
  state_.timer_of_[job.id] = due;
  job.has_timer = true;
}

void StateEditor::RefreshShort(const Job& job) {
  const Time since = ShortSince(job);
  const auto found = state_.short_since_.find(job.id);
  const bool listed = found != state_.short_since_.end();
  if (!listed && since == absl::InfiniteFuture()) return;
  if (listed && found->second == since) return;
  if (listed) {
    state_.short_jobs_.erase({found->second, job.id});
    state_.short_since_.erase(found);
  }
  if (since == absl::InfiniteFuture()) return;
  state_.short_jobs_.insert({since, job.id});
  state_.short_since_[job.id] = since;
}

void StateEditor::DropTimer(Job& job) {
  if (!job.has_timer) return;
  const auto found = state_.timer_of_.find(job.id);
  state_.timers_.erase({found->second, job.id});
  state_.timer_of_.erase(found);
  job.has_timer = false;
}

void StateEditor::AdoptTimers(JobId id) {
  Job& job = state_.jobs_.At(id);
  RefreshTimer(job);
  RefreshShort(job);
}

}  // namespace berth
