#include "clients/agent/progress_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "support/proto_time.h"

namespace berth {
namespace {

constexpr int32_t kIdlePercent = 5;  // of interactive jobs; that of IdleRule is its own

// Whether all of them are known to be busy for at most that part of the time.
bool AreIdle(const std::vector<std::string>& gpus, const std::map<std::string, int64_t>& percent,
             int32_t most_percent) {
  return std::all_of(gpus.begin(), gpus.end(), [&](const auto& gpu) {
    const auto found = percent.find(gpu);
    return found != percent.end() && found->second >= 0 && found->second <= most_percent;
  });
}

std::vector<std::string> GpusOf(const v1::TaskLaunch& launch) {
  std::vector<std::string> gpus;
  for (int i = 0; i < std::min(launch.device_uuids_size(), launch.device_kinds_size()); ++i) {
    const std::string& kind = launch.device_kinds(i);
    if (kind == "gpu" || kind == "mig") gpus.push_back(launch.device_uuids(i));
  }
  return gpus;
}

}  // namespace

ProgressSender::ProgressSender(Reported reported, Send send)
    : reported_(std::move(reported)), send_(std::move(send)) {}

void ProgressSender::SetPreparing(const TaskId& id, const std::string& what) {
  entries_[id].preparing = what;
}

// Without a NOTIFY_SOCKET it could not show progress.
void ProgressSender::Add(Instant now, const TaskEvent& running, const v1::TaskLaunch& launch) {
  Entry& entry = entries_[running.id];
  entry = {};
  entry.began = running.began.value_or(now.steady);
  if (launch.has_idle()) {
    Idle idle{.gpus = GpusOf(launch),
              .most_percent = launch.idle().devices(),
              .after = DurationFrom(launch.idle().for_())};
    if (!idle.gpus.empty()) entry.idle = std::move(idle);
  }
  if (launch.has_interactive()) {
    entry.unused = {.gpus = GpusOf(launch),
                    .after = DurationFrom(launch.interactive().idle()),
                    .action = launch.interactive().action()};
    entry.unused->gpus_idle = entry.unused->gpus.empty();
  }
  if (!launch.has_watchdog() || running.mute) return;
  const absl::Duration timeout = DurationFrom(launch.watchdog().timeout());
  const absl::Duration start = DurationFrom(launch.watchdog().start());
  entry.watch = {.timeout = timeout, .start = std::max(start, timeout)};
}

void ProgressSender::SetPaused(Instant now, const TaskEvent& event) {
  const auto found = entries_.find(event.id);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.paused = event.kind == TaskEvent::Kind::kPaused;
  if (!entry.paused) entry.resumed = event.began.value_or(now.steady);
  if (entry.idle) entry.idle->since.reset();
  if (entry.unused) entry.unused->since.reset();
}

void ProgressSender::SetDeviceUse(Instant now, const std::map<std::string, int64_t>& percent) {
  for (auto& [id, entry] : entries_) {
    if (entry.unused) entry.unused->gpus_idle = AreIdle(entry.unused->gpus, percent, kIdlePercent);
    if (!entry.idle || entry.paused) continue;
    Idle& idle = *entry.idle;
    if (!AreIdle(idle.gpus, percent, idle.most_percent))
      idle.since.reset();
    else if (!idle.since)
      idle.since = now.steady;
  }
}

std::optional<absl::Duration> ProgressSender::IdleTime(Instant now, const Entry& entry) {
  if (!entry.idle || !entry.idle->since) return std::nullopt;
  const absl::Duration time = now.steady - *entry.idle->since;
  return time >= entry.idle->after ? std::optional(time) : std::nullopt;
}

std::vector<TaskId> ProgressSender::Interactive() const {
  std::vector<TaskId> tasks;
  for (const auto& [id, entry] : entries_) {
    if (entry.unused && !entry.paused) tasks.push_back(id);
  }
  return tasks;
}

void ProgressSender::SetUnused(Instant now, const std::set<TaskId>& unused) {
  for (auto& [id, entry] : entries_) {
    if (!entry.unused || entry.paused) continue;
    if (!unused.contains(id) || !entry.unused->gpus_idle)
      entry.unused->since.reset();
    else if (!entry.unused->since)
      entry.unused->since = now.steady;
  }
}

std::optional<absl::Duration> ProgressSender::UnusedTime(Instant now, const Entry& entry) {
  if (!entry.unused || !entry.unused->since) return std::nullopt;
  const absl::Duration time = now.steady - *entry.unused->since;
  return time >= entry.unused->after ? std::optional(time) : std::nullopt;
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
  // A task that is discarded before it runs has no last event.
  std::erase_if(entries_, [&](const auto& entry) {
    return !entry.second.preparing.empty() && !reported_(entry.first);
  });
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
  if (!entry.preparing.empty()) {
    v1::TaskProgress state;
    *state.mutable_key() = ToKey(id);
    state.set_status(entry.preparing);
    if (entry.sent == entry.preparing) return std::nullopt;
    entry.sent = entry.preparing;
    return state;
  }
  if (auto read = source_->Read(id, &entry.version)) entry.notices = std::move(read);
  const std::optional<absl::Duration> idle = IdleTime(now, entry);
  const std::optional<absl::Duration> unused = UnusedTime(now, entry);
  // Once anything was told, so that the end of idleness is told, too.
  if (!entry.notices && !entry.watch && !idle && !unused && entry.sent.empty()) return std::nullopt;
  const TaskNotices notices = entry.notices.value_or(TaskNotices());
  v1::TaskProgress state = notices.told;
  *state.mutable_key() = ToKey(id);
  const absl::Duration since = std::max(notices.progress.value_or(entry.began), entry.resumed);
  if (entry.watch && !entry.paused) {
    const absl::Duration limit = notices.progress ? entry.watch->timeout : entry.watch->start;
    state.set_hung(now.steady >= std::max(since + limit, notices.not_before));
  }
  std::string text = state.SerializeAsString();
  if (idle) absl::StrAppend(&text, " idle");
  if (unused) absl::StrAppend(&text, " unused");
  if (text == entry.sent && !state.hung() && !idle && !unused) return std::nullopt;
  entry.sent = std::move(text);
  if (idle) ToProto(*idle, state.mutable_idle());
  if (unused) ToProto(*unused, state.mutable_unused());
  if (unused) state.set_unused_action(entry.unused->action);
  if (entry.watch && !entry.paused)
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
