#include "server/controllers/progress_book.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/model/pauses.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "support/log.h"

namespace berth {
namespace {

// The task that the message is about, if it is the current attempt of one that runs on the node, or
// is being prepared there.
const Task* TaskThere(const ClusterState& state, NodeId node, const v1::TaskKey& key) {
  const Job* job = state.jobs().Find(JobId{key.job_uid()});
  if (job == nullptr || key.task() >= job->tasks.size()) return nullptr;
  const Task& task = job->tasks[key.task()];
  const bool there = task.state == TaskState::kRunning || task.state == TaskState::kReleasing ||
                     task.state == TaskState::kBound;
  return there && task.attempt == key.attempt() && task.node == node ? &task : nullptr;
}

v1::TaskProgress OnlyStatus(const v1::TaskProgress& told) {
  v1::TaskProgress status;
  *status.mutable_key() = told.key();
  status.set_status(told.status());
  return status;
}

// Of a gang, the same checkpoint is told by each member.
bool IsNewCheckpoint(const Job& job, uint32_t index, const v1::Checkpoint& told, Time now) {
  const Task& task = job.tasks[index];
  if (RunsAlone(job, index)) return now >= task.saved + ProgressBook::kRecordEvery;
  const Checkpoint& known = job.status.checkpoint;
  const bool same = known.time >= task.start && known.step == told.step() &&
                    static_cast<int>(known.place) == static_cast<int>(told.where());
  return !same && now >= known.time + ProgressBook::kRecordEvery;
}

// The events of a turn that end attempts, or that follow from it.
JobId JobOf(const Event& event) {
  if (const auto* reported = std::get_if<TaskReported>(&event.body)) return reported->task.job;
  if (const auto* changed = std::get_if<JobStatusChanged>(&event.body)) return changed->job;
  if (const auto* requeued = std::get_if<TasksRequeued>(&event.body)) return requeued->job;
  if (const auto* bound = std::get_if<TasksBound>(&event.body)) return bound->job;
  if (const auto* deleted = std::get_if<JobDeleted>(&event.body)) return deleted->id;
  return JobId{};
}

void EmitFact(Turn& turn, EventBody fact, const Job& job) {
  const absl::Status status = turn.Emit(std::move(fact));
  if (!status.ok()) {
    LogWarn("what a task told was not recorded", {{"job", job.name}, {"error", status}});
  }
}

absl::Status ValidateOne(const v1::TaskProgress& progress) {
  const v1::Checkpoint& checkpoint = progress.checkpoint();
  if (progress.status().size() > kMaxToldStatus) {
    return absl::InvalidArgumentError(absl::StrCat(
        "progress: a status of ", progress.status().size(), " bytes, at most ", kMaxToldStatus));
  }
  if (progress.step() < 0 || progress.step_time_us() < 0 || checkpoint.step() < 0 ||
      checkpoint.bytes() < 0) {
    return absl::InvalidArgumentError("progress: a number below 0");
  }
  if (!v1::Checkpoint::Where_IsValid(checkpoint.where())) {
    return absl::InvalidArgumentError("progress: a checkpoint at an unknown place");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateProgress(const v1::Progress& progress) {
  if (progress.tasks_size() > kMaxToldTasks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "progress: ", progress.tasks_size(), " tasks in one message, at most ", kMaxToldTasks));
  }
  for (const v1::TaskProgress& one : progress.tasks()) {
    if (absl::Status status = ValidateOne(one); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void ProgressBook::Note(Turn& turn, NodeId node, const v1::Progress& progress) {
  ++counters_.messages;
  std::set<JobId> watched, idle;
  std::map<JobId, v1::Interactive::Action> unused;
  for (const v1::TaskProgress& one : progress.tasks()) {
    ++counters_.tasks;
    const Task* task = TaskThere(turn.state(), node, one.key());
    if (task == nullptr) {
      ++counters_.stale;
      continue;
    }
    const bool prepares = task->state == TaskState::kBound;
    const TaskKey key{JobId{one.key().job_uid()}, one.key().task()};
    const Job& job = turn.state().jobs().At(key.job);
    {
      absl::MutexLock lock(&mutex_);
      Keep(job, key, prepares ? OnlyStatus(one) : one, turn.now());
      jobs_[key.job].tasks[key.task].prepares = prepares;
    }
    if (prepares) continue;
    if (facts_()) Record(turn, key, one);
    if (job.watchdog != absl::InfiniteDuration()) watched.insert(key.job);
    if (job.suspends_idle && one.has_idle()) idle.insert(key.job);
    if (one.has_unused()) unused.emplace(key.job, one.unused_action());
  }
  for (JobId id : watched) Judge(turn, id);
  for (JobId id : idle) SuspendIdle(turn, id);
  for (const auto& [id, action] : unused) EndUnused(turn, id, action);
}

void ProgressBook::Keep(const Job& job, TaskKey key, const v1::TaskProgress& progress, Time now) {
  OfJob& of_job = jobs_[key.job];
  Told& told = of_job.tasks[key.task];
  const uint32_t attempt = progress.key().attempt();
  const uint64_t before = told.attempt == attempt ? told.dropped : 0;
  if (progress.dropped() > before) counters_.dropped_datagrams += progress.dropped() - before;
  told.attempt = attempt;
  told.hung = progress.hung();
  told.still = progress.has_still() ? DurationFrom(progress.still()) : absl::ZeroDuration();
  told.step = progress.has_step() ? progress.step() : -1;
  told.step_time_us = progress.step_time_us();
  told.dropped = progress.dropped();
  told.status = progress.status();
  told.idle = progress.has_idle() ? DurationFrom(progress.idle()) : absl::ZeroDuration();
  told.unused = progress.has_unused() ? DurationFrom(progress.unused()) : absl::ZeroDuration();
  if (told.step_time_us == 0 || RunsAlone(job, key.task)) return;
  of_job.stragglers.Note(GroupOf(job, key.task), job.tasks[key.task].node, told.step_time_us, now);
}

void ProgressBook::Record(Turn& turn, TaskKey key, const v1::TaskProgress& progress) {
  const Job& job = turn.state().jobs().At(key.job);
  const uint32_t attempt = progress.key().attempt();
  if (progress.ready() && !job.tasks[key.task].ready) {
    EmitFact(turn, TaskReady{.task = key, .attempt = attempt}, job);
  }
  if (!progress.has_checkpoint() ||
      !IsNewCheckpoint(job, key.task, progress.checkpoint(), turn.now())) {
    return;
  }
  EmitFact(turn,
           CheckpointRecorded{.task = key,
                              .attempt = attempt,
                              .step = progress.checkpoint().step(),
                              .bytes = progress.checkpoint().bytes(),
                              .place = static_cast<CheckpointPlace>(progress.checkpoint().where())},
           job);
}

void ProgressBook::Judge(Turn& turn, JobId id) {
  const Job& job = turn.state().jobs().At(id);
  std::optional<TaskHung> event;
  {
    absl::MutexLock lock(&mutex_);
    const OfJob& of_job = jobs_[id];
    event = JudgeHang(job, [&](uint32_t task) -> const ToldProgress* {
      const auto told = of_job.tasks.find(task);
      const bool current =
          told != of_job.tasks.end() && told->second.attempt == job.tasks[task].attempt;
      return current ? &told->second : nullptr;
    });
  }
  if (event.has_value()) EmitFact(turn, *event, job);
}

std::optional<Duration> ProgressBook::IdleTime(const Job& job, const OfJob& of_job) {
  if (job.status.state != JobState::kRunning) return std::nullopt;
  std::optional<Duration> least;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Occupies(task.state) || task.devices.Empty()) continue;
    if (IsSpare(job.groups[GroupOf(job, i)])) continue;
    const auto told = of_job.tasks.find(i);
    const bool idles = task.state == TaskState::kRunning && told != of_job.tasks.end() &&
                       told->second.attempt == task.attempt &&
                       told->second.idle > absl::ZeroDuration();
    if (!idles) return std::nullopt;
    least = std::min(least.value_or(told->second.idle), told->second.idle);
  }
  return least;
}

void ProgressBook::SuspendIdle(Turn& turn, JobId id) {
  const Job& job = turn.state().jobs().At(id);
  std::optional<Duration> time;
  {
    absl::MutexLock lock(&mutex_);
    time = IdleTime(job, jobs_[id]);
  }
  if (!time.has_value() || job.status.suspended || IsPaused(job.status)) return;
  const std::string why = absl::StrCat("suspended: its devices were idle for ",
                                       absl::FormatDuration(absl::Trunc(*time, absl::Seconds(1))));
  EmitFact(turn, JobSuspended{.id = id, .suspended = true, .why = why}, job);
}

std::optional<Duration> ProgressBook::UnusedTime(const Job& job, const OfJob& of_job) {
  if (job.status.state != JobState::kRunning) return std::nullopt;
  std::optional<Duration> least;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Occupies(task.state) || IsSpare(job.groups[GroupOf(job, i)])) continue;
    const auto told = of_job.tasks.find(i);
    const bool unused = task.state == TaskState::kRunning && told != of_job.tasks.end() &&
                        told->second.attempt == task.attempt &&
                        told->second.unused > absl::ZeroDuration();
    if (!unused) return std::nullopt;
    least = std::min(least.value_or(told->second.unused), told->second.unused);
  }
  return least;
}

void ProgressBook::EndUnused(Turn& turn, JobId id, v1::Interactive::Action action) {
  const Job& job = turn.state().jobs().At(id);
  std::optional<Duration> time;
  {
    absl::MutexLock lock(&mutex_);
    time = UnusedTime(job, jobs_[id]);
  }
  if (!time.has_value() || job.status.suspended || job.status.cancelled || IsPaused(job.status)) {
    return;
  }
  const bool freezes =
      action == v1::Interactive::PAUSE && NodeWithoutFreezer(turn.state(), job) == nullptr;
  const bool suspends = action == v1::Interactive::SUSPEND || action == v1::Interactive::PAUSE;
  const std::string why =
      absl::StrCat(freezes    ? "paused: "
                   : suspends ? "suspended: "
                              : "",
                   "nobody has used this interactive job, and it has done nothing, for ",
                   absl::FormatDuration(absl::Trunc(*time, absl::Seconds(1))));
  if (suspends) {
    return EmitFact(turn, JobSuspended{.id = id, .suspended = true, .why = why, .freeze = freezes},
                    job);
  }
  EmitFact(turn, JobCancelled{.id = id, .reason = why}, job);
}

Effect ProgressBook::OnTurnApplied(const ClusterState& state, absl::Span<const Event> events,
                                   const ColdParts&) {
  absl::MutexLock lock(&mutex_);
  if (jobs_.empty()) return nullptr;
  for (const Event& event : events) {
    if (const JobId id = JobOf(event); jobs_.contains(id)) Forget(state, id);
  }
  return nullptr;
}

void ProgressBook::Forget(const ClusterState& state, JobId id) {
  const Job* job = state.jobs().Find(id);
  const auto found = jobs_.find(id);
  if (job == nullptr || Ended(job->status.state)) {
    jobs_.erase(found);
    return;
  }
  absl::erase_if(found->second.tasks, [&](const auto& entry) {
    const Task& task = job->tasks[entry.first];
    const bool prepared = entry.second.prepares && task.state != TaskState::kBound;
    return !Occupies(task.state) || task.attempt != entry.second.attempt || prepared;
  });
  if (found->second.tasks.empty()) jobs_.erase(found);
}

std::optional<std::pair<uint32_t, int64_t>> ProgressBook::OfJob::Behind() const {
  std::optional<std::pair<uint32_t, int64_t>> behind;
  for (const auto& [task, told] : tasks) {
    if (told.step < 0) continue;
    const bool first = !behind.has_value() || told.step < behind->second ||
                       (told.step == behind->second && task < behind->first);
    if (first) behind = {task, told.step};
  }
  return behind;
}

v1::JobProgress ProgressBook::Sum(const Job& job, const OfJob& of_job) {
  v1::JobProgress sum;
  std::vector<int64_t> step_times;
  for (const auto& [task, told] : of_job.tasks) {
    sum.set_dropped(sum.dropped() + told.dropped);
    if (told.step_time_us > 0) step_times.push_back(told.step_time_us);
    // While the gang is prepared, any task may be the one that the others wait for.
    if (told.prepares) {
      sum.set_status(absl::StrCat(TaskNameOf(job, task), ": ", told.status));
    } else if (job.tasks[task].rank == 0) {
      sum.set_status(told.status);
    }
  }
  if (const auto behind = of_job.Behind(); behind.has_value()) {
    sum.set_task(TaskNameOf(job, behind->first));
    sum.set_step(behind->second);
  }
  if (!step_times.empty()) {
    ToProto(absl::Microseconds(MedianOf(std::move(step_times))), sum.mutable_step_time());
  }
  for (const Task& task : job.tasks) {
    if (task.ready && task.state == TaskState::kRunning) sum.set_ready(sum.ready() + 1);
  }
  return sum;
}

void ProgressBook::Render(const ClusterState& state, const Job& job, v1::JobStatus* out) const {
  absl::MutexLock lock(&mutex_);
  const auto found = jobs_.find(job.id);
  if (found == jobs_.end()) return;
  v1::JobProgress& progress = *out->mutable_progress();
  progress = Sum(job, found->second);
  for (NodeId id : found->second.stragglers.Slow()) {
    const Node* node = state.nodes().Find(id);
    if (node != nullptr) progress.add_slow_nodes(node->spec.name);
  }
  if (const auto idle = IdleTime(job, found->second); idle.has_value()) {
    v1::JobCondition* condition = out->add_conditions();
    condition->set_kind(v1::JobCondition::IDLE_DEVICES);
    condition->set_count(static_cast<int32_t>(found->second.tasks.size()));
    condition->set_detail(absl::StrCat("all its devices have been idle for ",
                                       absl::FormatDuration(absl::Trunc(*idle, absl::Seconds(1)))));
  }
  const std::string slow = absl::StrJoin(progress.slow_nodes(), ", ");
  const int slow_nodes = progress.slow_nodes_size();
  if (progress.ByteSizeLong() == 0) out->clear_progress();  // its tasks told nothing themselves
  if (slow_nodes == 0) return;
  v1::JobCondition* condition = out->add_conditions();
  condition->set_kind(v1::JobCondition::SLOW_NODE);
  condition->set_count(slow_nodes);
  condition->set_detail(absl::StrCat("steps take much longer on ", slow));
}

std::vector<std::pair<JobId, int64_t>> ProgressBook::Steps(size_t most) const {
  std::vector<std::pair<JobId, int64_t>> steps;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, of_job] : jobs_) {
    if (steps.size() >= most) break;
    if (const auto behind = of_job.Behind(); behind.has_value()) {
      steps.emplace_back(id, behind->second);
    }
  }
  return steps;
}

int64_t ProgressBook::SlowNodes() const {
  std::set<NodeId> slow;
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, of_job] : jobs_) {
    for (NodeId node : of_job.stragglers.Slow()) slow.insert(node);
  }
  return static_cast<int64_t>(slow.size());
}

int64_t ProgressBook::SlowJobs() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(jobs_.begin(), jobs_.end(),
                       [](const auto& entry) { return !entry.second.stragglers.Slow().empty(); });
}

int64_t ProgressBook::IdleJobs() const {
  absl::MutexLock lock(&mutex_);
  return std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    const auto& tasks = entry.second.tasks;
    return std::any_of(tasks.begin(), tasks.end(),
                       [](const auto& task) { return task.second.idle > absl::ZeroDuration(); });
  });
}

}  // namespace berth
