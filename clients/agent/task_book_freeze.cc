// Tasks that the server freezes, and lets go on.
#include <utility>

#include "clients/agent/task_book.h"

namespace berth {

void TaskBook::Freeze(const v1::FreezeTask& message) {
  const TaskId id = ToTaskId(message.key());
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  const Entry& entry = found->second;
  if (entry.record.phase() != agent::v1::TaskRecord::RUNNING || entry.stopping) return;
  const v1::TaskReport& told = entry.record.report();
  const bool done = message.request() != 0 && told.state() == v1::TaskReport::PAUSED &&
                    told.freeze_request() == message.request();
  if (done) return Resend(entry);
  runner_.Freeze(id, message.request());
}

// What is reported last is what a registration reports.
void TaskBook::OnFrozen(Instant now, const TaskEvent& event, Entry& entry) {
  const v1::TaskReport::State state =
      event.kind == TaskEvent::Kind::kPaused ? v1::TaskReport::PAUSED : v1::TaskReport::RUNNING;
  const v1::TaskReport& told = entry.record.report();
  const bool known = told.state() == state && told.freeze_request() == event.freeze_request;
  if (entry.record.phase() != agent::v1::TaskRecord::RUNNING || known || entry.stopping) return;
  v1::TaskReport report;
  report.set_state(state);
  report.set_reserved_port(entry.record.port());
  report.set_freeze_request(event.freeze_request);
  Report(now, event.id, entry, std::move(report));
}

}  // namespace berth
