#include "clients/agent/task_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/task_containers.h"
#include "clients/agent/task_signals.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using agent::v1::TaskRecord;
using v1::TaskReport;

constexpr absl::Duration kSaveRetry = absl::Seconds(1);

TaskReport MakeReport(TaskReport::State state,
                      TaskReport::Cause cause = TaskReport::CAUSE_UNSPECIFIED,
                      std::string message = "") {
  TaskReport report;
  report.set_state(state);
  report.set_cause(cause);
  report.set_message(std::move(message));
  return report;
}

TaskReport RefusedReport(std::string message, TaskReport::Fault fault = TaskReport::NODE) {
  TaskReport report =
      MakeReport(TaskReport::REFUSED, TaskReport::CAUSE_UNSPECIFIED, std::move(message));
  report.set_fault(fault);
  return report;
}

TaskReport ExitReport(const TaskEvent& event) {
  TaskReport report = MakeReport(TaskReport::EXITED, event.cause, event.message);
  report.set_exit_code(event.exit_code);
  report.set_exit_signal(event.exit_signal);
  return report;
}

bool IsLive(const TaskRecord& record) { return record.phase() != TaskRecord::ENDED; }
bool IsStarted(const TaskRecord& record) {
  return record.phase() == TaskRecord::STARTING || record.phase() == TaskRecord::RUNNING;
}

}  // namespace

TaskBook::TaskBook(Options options, Journal& journal, TaskRunner& runner, SendReport send)
    : options_(std::move(options)), journal_(journal), runner_(runner), send_(std::move(send)) {}

void TaskBook::Recover(Instant now, const JournalState& state, bool rebooted) {
  identity_ = state.identity;
  store_ = {.cluster_id = identity_.cluster_id(),
            .incarnation = identity_.incarnation(),
            .epoch = identity_.epoch(),
            .node_id = identity_.node_id(),
            .term = identity_.term()};
  last_report_id_ = identity_.last_report_id();
  std::vector<std::pair<absl::Duration, TaskId>> ended;
  for (const auto& [id, record] : state.tasks) {
    Entry& entry = tasks_[id];
    entry.record = record;
    if (record.report().report_id() != 0 && !record.acked()) {
      unacked_[record.report().report_id()] = id;
    }
    if (!IsLive(record)) {
      const absl::Duration age = now.wall - absl::FromUnixMillis(record.ended_unix_ms());
      ended.push_back(
          {now.steady - std::clamp(age, absl::ZeroDuration(), options_.keep_ended), id});
      continue;
    }
    ++live_;
    if (record.report().devices_released())
      lending_.insert(id);
    else
      TakeDevices(id, entry);
  }
  std::sort(ended.begin(), ended.end());
  ended_.assign(ended.begin(), ended.end());
  for (auto& [id, entry] : tasks_) {
    if (!IsLive(entry.record)) continue;
    if (rebooted) {
      End(now, id, entry,
          MakeReport(TaskReport::EXITED, TaskReport::AGENT_REBOOT, "the node rebooted"));
    } else {
      runner_.Adopt(entry.record);
    }
  }
  MarkForeign(now);
}

// Ids of incarnation 0 do not identify their store: its name does, if it is known.
bool TaskBook::IsForeign(const TaskId& id, const Entry& entry) const {
  if (id.incarnation != store_.incarnation) return true;
  const std::string& cluster = entry.record.cluster_id();
  return !cluster.empty() && !store_.cluster_id.empty() && cluster != store_.cluster_id;
}

void TaskBook::MarkForeign(Instant now) {
  std::vector<TaskId> foreign;
  for (const auto& [id, entry] : tasks_) {
    if (!entry.foreign && IsForeign(id, entry)) foreign.push_back(id);
  }
  for (const TaskId& id : foreign) MakeForeign(now, id, tasks_.at(id));
  // The other store may reuse their ids.
  for (auto entry = tasks_.begin(); entry != tasks_.end();) {
    const TaskId id = entry->first;
    const bool mine = id.incarnation == store_.incarnation;
    const bool drop = mine && entry->second.foreign && !IsLive(entry->second.record);
    ++entry;
    if (drop) Drop(id);
  }
  std::erase_if(ended_, [&](const auto& ended) { return !tasks_.contains(ended.second); });
}

void TaskBook::MakeForeign(Instant now, const TaskId& id, Entry& entry) {
  entry.foreign = true;
  Ack(entry.record.report().report_id());  // nobody waits for it
  entry.silent = true;
  if (!IsLive(entry.record)) return;
  ++foreign_live_;
  if (!IsStarted(entry.record)) {
    if (!entry.waiting) runner_.Discard(id);
    return End(now, id, entry, MakeReport(TaskReport::EXITED, TaskReport::KILLED));
  }
  const absl::Duration grace = DurationFrom(entry.record.launch().kill_grace());
  StopRunning(id, entry, "", std::min(grace, kForeignGrace), TaskReport::KILLED);
}

bool TaskBook::ForeignIdsLive() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    const auto& [id, entry] = task;
    return entry.foreign && IsLive(entry.record) && id.incarnation == store_.incarnation;
  });
}

void TaskBook::Prepare(Instant now, const v1::Prepare& message, bool strict_allowed) {
  const TaskId id = ToTaskId(message.key());
  if (const auto found = tasks_.find(id); found != tasks_.end()) {
    if (WantsOtherImage(found->second, message)) return PrepareAgain(now, id, message);
    return Resend(found->second);
  }
  if (SupersededByNewer(id)) return;
  if (message.launch().fence() && !strict_allowed) {
    return AddEnded(now, id, RefusedReport("the agent's lease has lapsed"));
  }
  if (OfOlderEpoch(id, message.launch())) {
    return AddEnded(now, id, RefusedReport("its gang is in a newer epoch"));
  }
  if (live_ >= kMaxLiveTasks) {
    // The server knows this limit; tasks that it does not know of are here only for a moment.
    return AddEnded(
        now, id,
        RefusedReport(absl::StrCat("the node already has ", live_, " tasks"), TaskReport::NOBODY));
  }
  Entry& entry = tasks_[id];
  *entry.record.mutable_key() = message.key();
  entry.record.set_cluster_id(store_.cluster_id);
  *entry.record.mutable_launch() = message.launch();
  entry.start_at_once = message.start_at_once();
  if (message.reserve_port() || message.start_at_once()) entry.port = message.preferred_port();
  ++live_;
  TryPrepare(now, id, entry);
}

void TaskBook::Start(Instant now, const v1::Start& message) {
  const TaskId id = ToTaskId(message.key());
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) {
    if (SupersededByNewer(id)) return;
    return AddEnded(now, id,
                    RefusedReport("Start without Prepare: the agent does not know this task"));
  }
  Entry& entry = found->second;
  const v1::TaskLaunch& launch = entry.record.launch();
  const bool waits = IsLive(entry.record) && !IsStarted(entry.record);
  const bool other = message.epoch() != 0 && message.epoch() != launch.epoch();
  if (waits && (other || OfOlderEpoch(id, launch))) {
    if (!entry.waiting) runner_.Discard(id);
    return End(now, id, entry,
               RefusedReport(absl::StrCat("Start for epoch ", message.epoch(),
                                          ": it was prepared for epoch ", launch.epoch(),
                                          ", or its gang is in a newer one")));
  }
  if (entry.record.phase() == TaskRecord::PHASE_UNSPECIFIED) {
    entry.start = message;
    entry.start_wanted = true;
  } else if (entry.record.phase() == TaskRecord::PREPARED) {
    entry.start = message;
    DoStart(now, id, entry);
  } else {
    Resend(entry);
  }
}

void TaskBook::Kill(Instant now, const v1::Kill& message) {
  const TaskId id = ToTaskId(message.key());
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) {
    return AddEnded(
        now, id,
        MakeReport(TaskReport::EXITED, TaskReport::KILLED, "the task is not on this node"));
  }
  Entry& entry = found->second;
  if (!IsLive(entry.record)) return Resend(entry);
  if (!IsStarted(entry.record)) {
    if (!entry.waiting) runner_.Discard(id);
    return End(now, id, entry,
               MakeReport(TaskReport::EXITED, TaskReport::KILLED, message.reason()));
  }
  StopRunning(id, entry, message.signal(), DurationFrom(message.grace()), TaskReport::KILLED);
}

void TaskBook::Signal(const v1::SignalTask& message) {
  const TaskId id = ToTaskId(message.key());
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Entry& entry = found->second;
  const bool runs = entry.record.phase() == TaskRecord::RUNNING && !entry.stopping;
  if (!runs || message.request() <= entry.record.signalled()) return;
  runner_.Signal(id, message.signal());
  entry.record.set_signalled(message.request());
  agent::v1::JournalRecord record;  // if it is lost, the signal is sent twice
  *record.mutable_task() = entry.record;
  journal_.AppendLater(std::move(record));
}

void TaskBook::Forget(Instant now, const TaskId& id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  Entry& entry = found->second;
  if (entry.foreign) return;  // its grace period is already running
  entry.silent = true;
  if (!IsLive(entry.record)) {
    Ack(entry.record.report().report_id());
  } else if (!IsStarted(entry.record)) {
    if (!entry.waiting) runner_.Discard(id);
    End(now, id, entry, MakeReport(TaskReport::EXITED, TaskReport::KILLED));
  } else {
    StopRunning(id, entry, "SIGKILL", absl::ZeroDuration(), TaskReport::KILLED);
  }
}

void TaskBook::Fence(Instant now) {
  std::vector<TaskId> strict;
  for (const auto& [id, entry] : tasks_) {
    if (IsLive(entry.record) && entry.record.launch().fence()) strict.push_back(id);
  }
  for (const TaskId& id : strict) {
    Entry& entry = tasks_.at(id);
    if (IsStarted(entry.record)) {
      StopRunning(id, entry, "", DurationFrom(entry.record.launch().kill_grace()),
                  TaskReport::LEASE_LAPSED);
      continue;
    }
    if (!entry.waiting) runner_.Discard(id);
    End(now, id, entry,
        MakeReport(TaskReport::EXITED, TaskReport::LEASE_LAPSED,
                   "not started: the agent's lease has lapsed"));
  }
}

void TaskBook::StopRunning(const TaskId& id, Entry& entry, const std::string& signal,
                           absl::Duration grace, TaskReport::Cause cause) {
  entry.stopping = true;
  const v1::TaskLaunch& launch = entry.record.launch();
  const std::string own =
      launch.kill_signal().empty() ? StopSignalName(launch) : launch.kill_signal();
  runner_.Kill(id, !signal.empty() ? signal : own, grace, cause);
}

void TaskBook::OnEvent(Instant now, const TaskEvent& event) {
  const auto found = tasks_.find(event.id);
  if (found == tasks_.end() || !IsLive(found->second.record)) return;
  Entry& entry = found->second;
  switch (event.kind) {
    case TaskEvent::Kind::kPreparing:
      return;  // progress alone
    case TaskEvent::Kind::kPrepared:
      return OnPrepared(now, event, entry);
    case TaskEvent::Kind::kRunning: {
      if (entry.record.phase() == TaskRecord::RUNNING) return;  // adopted: already known
      entry.record.set_phase(TaskRecord::RUNNING);
      TaskReport report = MakeReport(TaskReport::RUNNING);
      report.set_reserved_port(entry.record.port());
      return Report(now, event.id, entry, std::move(report));
    }
    case TaskEvent::Kind::kRefused:
      End(now, event.id, entry, RefusedReport(event.message, event.fault));
      // The journal has its end, so its directory is not needed. If the journal was full, the
      // directory stays: a restarted agent reads the end from it.
      if (!event.has_output && !entry.unsaved) runner_.Remove(event.id);
      return;
    case TaskEvent::Kind::kExited:
      return End(now, event.id, entry, ExitReport(event));
    case TaskEvent::Kind::kPaused:
    case TaskEvent::Kind::kResumed:
      return OnFrozen(now, event, entry);
  }
}

void TaskBook::OnPrepared(Instant now, const TaskEvent& event, Entry& entry) {
  if (entry.record.phase() != TaskRecord::PHASE_UNSPECIFIED) return;
  entry.record.set_port(event.port);
  if (!event.image_digest.empty()) {
    entry.record.mutable_report()->set_image_digest(event.image_digest);
    entry.record.mutable_report()->set_image(entry.record.launch().image());
  }
  entry.record.mutable_report()->mutable_container_images()->Assign(event.container_images.begin(),
                                                                    event.container_images.end());
  if (entry.start_at_once || entry.start_wanted) return DoStart(now, event.id, entry);
  entry.record.set_phase(TaskRecord::PREPARED);
  TaskReport report = MakeReport(TaskReport::PREPARED);
  report.set_reserved_port(event.port);
  Report(now, event.id, entry, std::move(report));
}

// The journal has STARTING, synced, before the runner gets the task: whatever crashes, the key is
// never started again.
void TaskBook::DoStart(Instant now, const TaskId& id, Entry& entry) {
  v1::TaskLaunch launch = entry.record.launch();
  entry.record.mutable_launch()->clear_command();
  entry.record.mutable_launch()->clear_env();
  entry.record.mutable_launch()->clear_volumes();
  ShortenContainers(entry.record.mutable_launch());
  entry.record.set_phase(TaskRecord::STARTING);
  const absl::Status saved = Save(entry);
  if (!saved.ok()) {
    runner_.Discard(id);
    return End(now, id, entry, RefusedReport(absl::StrCat("agent journal: ", saved.message())));
  }
  if (entry.start.master_port() == 0) entry.start.set_master_port(entry.record.port());
  runner_.Start(id, launch, entry.start);
  entry.start.Clear();
}

// A rigid gang runs in one epoch: a live member of a newer one is here already.
bool TaskBook::OfOlderEpoch(const TaskId& id, const v1::TaskLaunch& launch) const {
  if (!launch.rigid() || launch.epoch() == 0) return false;
  const TaskId first{.job_uid = id.job_uid, .incarnation = id.incarnation};
  for (auto one = tasks_.lower_bound(first);
       one != tasks_.end() && one->first.job_uid == id.job_uid &&
       one->first.incarnation == id.incarnation;
       ++one) {
    const v1::TaskLaunch& other = one->second.record.launch();
    const bool newer = IsLive(one->second.record) && other.rigid() &&
                       other.epoch() > launch.epoch() && other.group() == launch.group();
    if (newer) return true;
  }
  return false;
}

bool TaskBook::SupersededByNewer(const TaskId& id) const {
  const auto after = tasks_.upper_bound(id);
  return after != tasks_.end() && after->first.incarnation == id.incarnation &&
         after->first.job_uid == id.job_uid && after->first.task == id.task;
}

void TaskBook::TryPrepare(Instant now, const TaskId& id, Entry& entry) {
  std::string why;
  const Devices devices = CheckDevices(id, entry, &why);
  entry.waiting = devices == Devices::kWait;
  if (entry.waiting) {
    waiting_.insert(id);
    return;
  }
  waiting_.erase(id);
  if (devices == Devices::kRefused) {
    return End(now, id, entry, RefusedReport(why));
  }
  TakeDevices(id, entry);
  runner_.Prepare(id, entry.record.launch(), entry.port);
}

void TaskBook::RetryWaiting(Instant now) {
  const std::vector<TaskId> waiting(waiting_.begin(), waiting_.end());
  for (const TaskId& id : waiting) TryPrepare(now, id, tasks_.at(id));
  const std::vector<TaskId> resuming(resuming_.begin(), resuming_.end());
  for (const TaskId& id : resuming) Thaw(id);
}

void TaskBook::AddEnded(Instant now, const TaskId& id, TaskReport report) {
  Entry& entry = tasks_[id];
  *entry.record.mutable_key() = ToKey(id);
  entry.record.set_cluster_id(store_.cluster_id);
  ++live_;
  End(now, id, entry, std::move(report));
}

void TaskBook::End(Instant now, const TaskId& id, Entry& entry, TaskReport report) {
  --live_;
  if (entry.foreign) --foreign_live_;
  waiting_.erase(id);
  lending_.erase(id);
  resuming_.erase(id);
  entry.waiting = false;
  if (entry.record.launch().device_uuids_size() > 0) ReleaseDevices(id);
  entry.record.clear_launch();
  entry.record.set_port(0);
  entry.record.set_phase(TaskRecord::ENDED);
  entry.record.set_ended_unix_ms(absl::ToUnixMillis(now.wall));
  ended_.push_back({now.steady, id});
  Report(now, id, entry, std::move(report));
  if (!waiting_.empty() || !resuming_.empty()) RetryWaiting(now);
}

// Durable, then sent. If the journal is full, it is sent anyway: from the disk (STARTING, and the
// supervisor's status file) a restarted agent derives the same report.
void TaskBook::Report(Instant now, const TaskId& id, Entry& entry, TaskReport report) {
  if (entry.record.report().report_id() != 0) unacked_.erase(entry.record.report().report_id());
  *report.mutable_key() = entry.record.key();
  report.set_image_digest(entry.record.report().image_digest());
  report.set_image(entry.record.report().image());
  *report.mutable_container_images() = entry.record.report().container_images();
  report.set_report_id(++last_report_id_);
  ToProto(now.wall, report.mutable_time());
  *entry.record.mutable_report() = std::move(report);
  entry.record.set_acked(entry.silent);
  if (!entry.silent) unacked_[entry.record.report().report_id()] = id;
  const bool saved = Save(entry).ok();
  if (!saved && !entry.unsaved) ++unsaved_;
  if (saved && entry.unsaved) --unsaved_;
  entry.unsaved = !saved;
  if (fatal_.ok() && !entry.silent) send_(entry.record.report());
}

void TaskBook::Resend(const Entry& entry) {
  if (entry.record.report().report_id() != 0 && !entry.silent) send_(entry.record.report());
}

absl::Status TaskBook::Save(const Entry& entry) {
  agent::v1::JournalRecord record;
  *record.mutable_task() = entry.record;
  const absl::Status status = journal_.Append({record});
  if (!status.ok() && !absl::IsResourceExhausted(status)) fatal_ = status;
  return status;
}

void TaskBook::Ack(uint64_t report_id) {
  const auto found = unacked_.find(report_id);
  if (found == unacked_.end()) return;
  Entry& entry = tasks_.at(found->second);
  entry.record.set_acked(true);
  agent::v1::JournalRecord record;
  *record.mutable_task() = entry.record;
  journal_.AppendLater(std::move(record));
  unacked_.erase(found);
}

// A task in STARTING has reported at most that it is prepared: Hello repeats that, so that the
// server does not miss it. The same holds for a task in preparation that starts without a Start
// message: the server treats it as starting already. The server asks again about other tasks in
// preparation.
std::vector<TaskReport> TaskBook::HelloReports() const {
  std::vector<TaskReport> reports;
  for (const auto& [id, entry] : tasks_) {
    const TaskRecord& record = entry.record;
    const bool starts = entry.start_at_once || entry.start_wanted;
    if (entry.foreign) continue;
    if (record.phase() == TaskRecord::PHASE_UNSPECIFIED && !starts) continue;
    if (!IsLive(record) && record.acked()) continue;
    TaskReport report = record.report();
    if (report.report_id() == 0) {
      const TaskReport known = std::move(report);
      report = MakeReport(TaskReport::PREPARED);
      report.set_image_digest(known.image_digest());
      report.set_image(known.image());
      *report.mutable_container_images() = known.container_images();
      *report.mutable_key() = record.key();
      report.set_reserved_port(record.port());
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<TaskReport> TaskBook::Unacked() const {
  std::vector<TaskReport> reports;
  for (const auto& [report_id, id] : unacked_) reports.push_back(tasks_.at(id).record.report());
  return reports;
}

bool TaskBook::Ended(const TaskId& id) const {
  const auto found = tasks_.find(id);
  return found == tasks_.end() || !IsLive(found->second.record);
}

bool TaskBook::Running(const TaskId& id) const {
  const auto found = tasks_.find(id);
  return found != tasks_.end() && found->second.record.phase() == TaskRecord::RUNNING;
}

const v1::TaskLaunch* TaskBook::ReportedLaunch(const TaskId& id) const {
  if (Ended(id) || tasks_.at(id).silent) return nullptr;
  return &tasks_.at(id).record.launch();
}

void TaskBook::Tick(Instant now) {
  if (unsaved_ > 0 && now.steady >= save_retry_) {
    save_retry_ = now.steady + kSaveRetry;
    for (auto& [id, entry] : tasks_) {
      if (!entry.unsaved || !Save(entry).ok()) continue;
      entry.unsaved = false;
      --unsaved_;
    }
  }
  // An unacknowledged one moves to the back: the server must receive its report first.
  for (size_t left = ended_.size(); left > 0; --left) {
    const auto [when, id] = ended_.front();
    if (when + options_.keep_ended > now.steady && ended_.size() <= kMaxEndedTasks) return;
    ended_.pop_front();
    if (!tasks_.at(id).record.acked()) {
      ended_.push_back({now.steady, id});
      continue;
    }
    Drop(id);
  }
}

void TaskBook::Drop(const TaskId& id) {
  runner_.Remove(id);
  agent::v1::JournalRecord record;
  *record.mutable_dropped() = ToKey(id);
  journal_.AppendLater(std::move(record));
  if (const auto found = tasks_.find(id); found->second.unsaved) --unsaved_;
  tasks_.erase(id);
}

absl::Duration TaskBook::NextWake() const {
  if (unsaved_ > 0) return save_retry_;
  if (ended_.empty()) return absl::InfiniteDuration();
  return ended_.front().first + options_.keep_ended;
}

}  // namespace berth
