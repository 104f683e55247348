// StateEditor: the line of a queue (core/model/line.h).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/model/line.h"
#include "core/model/state_editor.h"

namespace berth {

void StateEditor::CountInLine(const Job& job, int sign) {
  if (sign == 0) return;
  Queue& queue = state_.queues_.At(job.queue);
  queue.line_waits += sign * job.line.work;
  if (!std::exchange(queue.line_moved, true)) state_.moved_lines_.push_back(queue.id);
}

std::vector<QueueId> StateEditor::TakeMovedLines() {
  std::vector<QueueId> moved;
  for (QueueId id : std::exchange(state_.moved_lines_, {})) {
    Queue* queue = state_.queues_.Find(id);
    if (queue == nullptr) continue;
    queue->line_moved = false;
    moved.push_back(id);
  }
  return moved;
}

void StateEditor::EnterLine(JobId id, int64_t work) {
  Job& job = state_.jobs_.At(id);
  Queue& queue = state_.queues_.At(job.queue);
  BERTH_CHECK(job.line == LinePlace{} && InLine(job.status.state));
  job.line = {.work = work, .before = queue.line};
  job.longest_line_before = queue.longest_line;
  queue.line = std::min(queue.line + work, kMaxLine);
  CountInLine(job, 1);
  const int64_t remembered = queue.longest_line - work / kLineMemory;
  queue.longest_line = std::max(queue.line_waits, remembered);
  if (facts()) state_.dirty_.usages.push_back(job.queue);
}

void StateEditor::UndoAddJob(JobId id, JobId next) {
  BERTH_CHECK(id.value + 1 == state_.next_job_id_.value && next <= id);
  const Job& job = state_.jobs_.At(id);
  if (job.line.work > 0) {
    Queue& queue = state_.queues_.At(job.queue);
    queue.line = job.line.before;
    queue.longest_line = job.longest_line_before;
    if (InLine(job.status.state)) CountInLine(job, -1);
  }
  EraseJob(id);
  state_.next_job_id_ = next;
}

absl::Status StateEditor::LoadQueueLine(QueueId id, int64_t line, int64_t longest) {
  if (line < 0 || line > kMaxLine || longest < 0 || longest > kMaxLine) {
    return absl::InvalidArgumentError(
        absl::StrCat("the line of queue ", id.value, " is out of range"));
  }
  Queue& queue = state_.queues_.At(id);
  queue.line = line;
  queue.longest_line = longest;
  return absl::OkStatus();
}

}  // namespace berth
