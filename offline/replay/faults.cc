#include "offline/replay/faults.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace berth::replay {
namespace {

using What = FaultAct::What;

std::vector<NodeId> AllNodes(const ClusterState& state) {
  std::vector<NodeId> nodes;
  state.nodes().ForEach([&](NodeId id, const Node&) { nodes.push_back(id); });
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

bool Runs(const ClusterState& state, const FaultAct& act) {
  const Job* job = state.jobs().Find(act.task.job);
  if (job == nullptr || job->status.state != JobState::kRunning) return false;
  const Task& task = job->tasks[act.task.task];
  return task.attempt == act.attempt && task.state == TaskState::kRunning;
}

}  // namespace

Faults::Faults(const FaultModel& model, uint64_t seed, const ClusterState& state, Time begin)
    : model_(model),
      state_(state),
      begin_(begin),
      nodes_(AllNodes(state)),
      strikes_to_come_(model, nodes_.size(), seed) {}

Time Faults::Next() const {
  const Time strike = begin_ + strikes_to_come_.next().time;
  return due_.empty() ? strike : std::min(strike, due_.begin()->time);
}

void Faults::Add(Time time, FaultAct act, size_t cause) {
  due_.insert({.time = time, .act = act, .cause = cause, .number = numbers_++});
}

bool Faults::Applies(const Due& due) const {
  const bool of_task = due.act.what == What::kTaskFails || due.act.what == What::kTaskHangs;
  return !of_task || Runs(state_, due.act);
}

std::optional<FaultAct> Faults::Begin(const Strike& strike, Time now) {
  ++strikes_;
  const FaultCause& cause = model_.causes[strike.cause];
  FaultAct act{.node = nodes_[strike.node], .still = cause.detection};
  if (bad_.count(act.node) > 0) return std::nullopt;
  if (cause.kind == FaultKind::kNode) {
    bad_.insert(act.node);
    act.what = What::kNodeDown;
    Add(now + cause.detection, act, strike.cause);
    act.what = What::kNodeUp;
    Add(now + cause.detection + cause.repair, act, strike.cause);
    act.what = What::kNodeStands;
    return act;
  }
  std::vector<TaskKey> tasks = state_.nodes().At(act.node).tasks;
  if (tasks.empty()) return std::nullopt;
  std::sort(tasks.begin(), tasks.end());
  act.task = tasks[static_cast<size_t>(strike.task * static_cast<double>(tasks.size()))];
  act.attempt = state_.jobs().At(act.task.job).tasks[act.task.task].attempt;
  act.what = cause.kind == FaultKind::kTask ? What::kTaskFails : What::kTaskHangs;
  if (!Runs(state_, act)) return std::nullopt;
  Add(now + cause.detection, act, strike.cause);
  act.what = What::kTaskStands;
  return act;
}

std::optional<FaultAct> Faults::Take(Time now) {
  while (Next() <= now) {
    const Strike strike = strikes_to_come_.next();
    if (begin_ + strike.time <= now &&
        (due_.empty() || begin_ + strike.time < due_.begin()->time)) {
      strikes_to_come_.Pop();
      if (auto act = Begin(strike, begin_ + strike.time); act.has_value()) return act;
      continue;
    }
    const Due due = *due_.begin();
    due_.erase(due_.begin());
    if (!Applies(due)) continue;
    if (due.act.what == What::kNodeUp) {
      bad_.erase(due.act.node);
    } else if (due.act.what != What::kNodeDown || !state_.nodes().At(due.act.node).tasks.empty()) {
      ++interruptions_[model_.causes[due.cause].name];
    }
    return due.act;
  }
  return std::nullopt;
}

absl::Status CheckFrequency(const FaultModel& model, int64_t nodes) {
  if (nodes == 0) return absl::InvalidArgumentError("the cluster has no nodes, which faults need");
  double all = 0;
  for (const FaultCause& cause : model.causes) all += cause.count;
  const double times = static_cast<double>(nodes) / static_cast<double>(model.nodes);
  if (absl::ToDoubleSeconds(model.period) >= all * times) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("faults: more than one a second on ", nodes, " nodes"));
}

}  // namespace berth::replay
