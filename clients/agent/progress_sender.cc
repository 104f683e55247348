#include "clients/agent/progress_sender.h"

#include <algorithm>
#include <utility>

#include "support/proto_time.h"

namespace berth {

ProgressSender::ProgressSender(Reported reported, Send send)
    : reported_(std::move(reported)), send_(std::move(send)) {}

// Without a NOTIFY_SOCKET it could not show progress.
void ProgressSender::Add(Instant now, const TaskEvent& running, const v1::TaskLaunch& launch) {
  Entry& entry = entries_[running.id];
  entry = {};
  entry.began = running.began.value_or(now.steady);
  if (!launch.has_watchdog() || running.mute) return;
  const absl::Duration timeout = DurationFrom(launch.watchdog().timeout());
  const absl::Duration start = DurationFrom(launch.watchdog().start());
  entry.watch = {.timeout = timeout, .start = std::max(start, timeout)};
}

void ProgressSender::Remove(Instant now, const TaskId& id, bool send) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (send && reported_(id)) {
    v1::Progress message;
    if (auto state = News(now, id, found->second)) AddTo(&message, *std::move(state));
    Flush(&message);
  }
  entries_.erase(found);
}

void ProgressSender::SendAll(Instant now) {
  for (auto& [id, entry] : entries_) entry.sent.clear();
  SendChanges(now);
}

void ProgressSender::SendChanges(Instant now) {
  v1::Progress message;
  for (auto& [id, entry] : entries_) {
    if (!reported_(id)) continue;
    if (auto state = News(now, id, entry)) AddTo(&message, *std::move(state));
  }
  Flush(&message);
}

void ProgressSender::SendEnded(const std::vector<TaskId>& ended) {
  v1::Progress message;
  for (const TaskId& id : ended) {
    NoticesVersion first;
    auto notices = source_ != nullptr ? source_->Read(id, &first) : std::nullopt;
    if (!notices) continue;
    *notices->told.mutable_key() = ToKey(id);
    AddTo(&message, std::move(notices->told));
  }
  Flush(&message);
}

std::optional<v1::TaskProgress> ProgressSender::News(Instant now, const TaskId& id, Entry& entry) {
  if (source_ == nullptr) return std::nullopt;
  if (auto read = source_->Read(id, &entry.version)) entry.notices = std::move(read);
  if (!entry.notices && !entry.watch) return std::nullopt;
  const TaskNotices notices = entry.notices.value_or(TaskNotices());
  v1::TaskProgress state = notices.told;
  *state.mutable_key() = ToKey(id);
  const absl::Duration since = notices.progress.value_or(entry.began);
  if (entry.watch) {
    const absl::Duration limit = notices.progress ? entry.watch->timeout : entry.watch->start;
    state.set_hung(now.steady >= std::max(since + limit, notices.not_before));
  }
  std::string text = state.SerializeAsString();
  if (text == entry.sent && !state.hung()) return std::nullopt;
  entry.sent = std::move(text);
  if (entry.watch)
    ToProto(std::max(now.steady - since, absl::ZeroDuration()), state.mutable_still());
  return state;
}

void ProgressSender::AddTo(v1::Progress* message, v1::TaskProgress state) {
  *message->add_tasks() = std::move(state);
  if (message->tasks_size() >= kMaxProgressTasks) Flush(message);
}

void ProgressSender::Flush(v1::Progress* message) {
  if (message->tasks().empty()) return;
  send_(std::exchange(*message, {}));
}

}  // namespace berth
