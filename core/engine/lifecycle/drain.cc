// Leaving nodes that are drained, and devices that are.
//
//   mode         a task that must leave
//   NOW          is stopped, with its grace
//   WAIT         goes on until it ends, or until the deadline
//   WHEN_PLACED  goes on until the action migrate has another place for it, or until the deadline
//   CHECKPOINT   is asked to save its work (core/model/drains.h, server/controllers/launch.cc), and
//                stopped once it, or its gang, has reported a checkpoint since; or at the deadline.
//                At once if it saves nothing: it does not run, or its job has no checkpoint signal
//
// Example: a gang of 4 on n0..n3; n2 drains by checkpoint at 10:00. All four are asked. At 10:02
// rank 0 reports a checkpoint of the gang: the job restarts, keeps its places on n0, n1 and n3, and
// waits for a fourth.
//
// A deadline that has passed makes the jobs on the node unsettled (StateEditor::PassTime).
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/model/drains.h"

namespace berth {
namespace {

enum class Leaving { kStays, kLater, kSaved, kNow };

Leaving LeavingOf(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (!Holds(task) || task.state == TaskState::kLost || !look.state.Expels(task.node)) {
    return Leaving::kStays;
  }
  const NodeStatus& node = look.state.nodes().At(task.node).status;
  if (!MustLeave(node, task.devices)) return Leaving::kStays;
  const DrainMode mode = DrainModeOf(node);
  if (mode == DrainMode::kNow || DrainDeadline(node) <= look.now) return Leaving::kNow;
  if (mode == DrainMode::kWait || mode == DrainMode::kWhenPlaced) return Leaving::kLater;
  // What started after the others were asked has done little.
  const bool saves = look.job.saves_before_drain && task.state == TaskState::kRunning &&
                     task.start <= node.drain.begin;
  if (!saves) return Leaving::kNow;
  return SavedAt(look.job, index) > node.drain.begin ? Leaving::kSaved : Leaving::kLater;
}

std::string HadToLeave(const Look& look, uint32_t task) {
  const Node& node = look.state.nodes().At(look.job.tasks[task].node);
  return absl::StrCat(TaskLabel(look.job, task), " had to leave ",
                      node.status.draining ? "" : "devices of ", node.spec.name);
}

// It ended with one of JobSpec::saved_exit_codes because a drain asked it to save its work.
bool SavedForDrain(const Look& look, uint32_t index) {
  const Job& job = look.job;
  const Task& task = job.tasks[index];
  if (task.state != TaskState::kFailed || task.end_cause != EndCause::kExit) return false;
  const auto& codes = job.saved_exit_codes;
  if (!std::binary_search(codes.begin(), codes.end(), ExitCode(task))) return false;
  return !AskedToSave(job, task) && AskedByDrain(look.state, job, index) != absl::InfiniteFuture();
}

}  // namespace

Step LeaveDraining(const Look& look) {
  if (look.state.expelling_nodes().empty()) return {};
  TaskList now, saved;
  bool others_save = false;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    const Leaving leaving = LeavingOf(look, i);
    if (leaving == Leaving::kNow) now.push_back(i);
    if (leaving == Leaving::kSaved) saved.push_back(i);
    others_save = others_save || leaving == Leaving::kLater;
  }
  // If the job restarts as a whole, it does so once all that must leave have saved their work.
  if (now.empty() && others_save && !Replaceable(look.job, saved)) return {};
  TaskList leaving;
  std::merge(now.begin(), now.end(), saved.begin(), saved.end(), std::back_inserter(leaving));
  if (leaving.empty()) return {};
  return Displace(look, leaving, ReleaseReason::kDrain, HadToLeave(look, leaving[0]));
}

Step ReplaceSaved(const Look& look) {
  if (look.job.saved_exit_codes.empty() || !look.job.saves_before_drain) return {};
  if (TallyOf(look.job).In(TaskState::kFailed) == 0) return {};
  TaskList saved;
  for (uint32_t i = 0; i < look.job.tasks.size(); ++i) {
    if (SavedForDrain(look, i)) saved.push_back(i);
  }
  if (saved.empty()) return {};
  const std::string message =
      absl::StrCat(TaskLabel(look.job, saved[0]), " saved its work and ended, for the drain");
  return Displace(look, saved, ReleaseReason::kDrain, message);
}

}  // namespace berth
