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
  if (message.request() == 0) return Thaw(id);
  resuming_.erase(id);
  const v1::TaskReport& told = entry.record.report();
  const bool done =
      told.state() == v1::TaskReport::PAUSED && told.freeze_request() == message.request();
  if (done) return Resend(entry);
  runner_.Freeze(id, message.request(), message.checkpoint_devices());
}

// It takes back the devices that it lent before it goes on. The server has waited for them: whoever
// still has one is about to end.
void TaskBook::Thaw(const TaskId& id) {
  const Entry& entry = tasks_.at(id);
  if (lending_.contains(id)) {
    std::string why;
    if (entry.stopping || CheckDevices(id, entry, &why) != Devices::kFree) {
      resuming_.insert(id);
      return;
    }
    TakeDevices(id, entry);
    lending_.erase(id);
    resuming_.erase(id);
  }
  runner_.Freeze(id, 0, false);
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
  if (state == v1::TaskReport::PAUSED) {
    report.set_devices_released(event.devices_released);
    report.set_message(event.message);
  }
  const bool lends = report.devices_released();
  if (lends) {
    ReleaseDevices(event.id);
    lending_.insert(event.id);
  } else if (lending_.erase(event.id) > 0) {
    TakeDevices(event.id, entry);
  }
  Report(now, event.id, entry, std::move(report));
  if (lends && !waiting_.empty()) RetryWaiting(now);
}

}  // namespace berth
