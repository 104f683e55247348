#include "tests/bench/gang_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace berth::bench {
namespace {

constexpr auto kTimeout = std::chrono::seconds(180);

absl::Time TimeOf(const v1::ChangeEvent& event) {
  return absl::FromUnixSeconds(event.time().seconds()) + absl::Nanoseconds(event.time().nanos());
}

}  // namespace

GangWatch::GangWatch(BenchCluster& cluster) {
  v1::WatchRequest request;
  request.set_nodes(true);
  reader_ = cluster.watch().Watch(&context_, request);
  v1::WatchResponse initial;
  if (!reader_->Read(&initial)) Check(reader_->Finish(), "Watch");
  thread_ = std::thread([this] { Read(); });
}

GangWatch::~GangWatch() {
  context_.TryCancel();
  thread_.join();
}

void GangWatch::Read() {
  v1::WatchResponse response;
  while (reader_->Read(&response)) {
    const std::lock_guard lock(mutex_);
    for (const v1::ChangeEvent& event : response.events()) Take(event);
    changed_.notify_all();
  }
  (void)reader_->Finish();
}

void GangWatch::Take(const v1::ChangeEvent& event) {
  const absl::Time time = TimeOf(event);
  if (event.type() == v1::ChangeEvent::NODE_CHANGED) {
    if (event.node_state() == v1::NODE_SILENT) {
      if (seen_.suspect == absl::InfinitePast()) seen_.suspect = time;
      seen_.silent = time;
    }
    if (event.node_state() == v1::NODE_LOST) seen_.lost = time;
    return;
  }
  if (event.type() != v1::ChangeEvent::TASK_CHANGED) return;
  TaskSeen& task = seen_.tasks[event.task()];
  task.state = event.task_state();
  if (event.attempt() > 0) task.attempt = event.attempt();
  if (task.state == v1::TASK_BOUND) {
    task.bound = time;
    task.node = event.node();
  }
  if (task.state == v1::TASK_RUNNING) task.running = time;
  const bool waits = task.state == v1::TASK_PENDING || task.state == v1::TASK_NOMINATED;
  if (waits && seen_.lost == absl::InfinitePast()) seen_.stopped = time;
  if (task.state == v1::TASK_FAILED && seen_.failed == absl::InfinitePast()) seen_.failed = time;
}

void GangWatch::Mark() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, task] : seen_.tasks) before_[name] = task.attempt;
  seen_.suspect = seen_.silent = seen_.lost = seen_.failed = seen_.stopped = absl::InfinitePast();
}

bool GangWatch::AllRestarted(size_t tasks) const {
  size_t running = 0;
  for (const auto& [name, task] : seen_.tasks) {
    const auto before = before_.find(name);
    const bool fresh = before == before_.end() || task.attempt > before->second;
    running += fresh && task.state == v1::TASK_RUNNING ? 1 : 0;
  }
  return running == tasks;
}

RecoverySeen GangWatch::WaitRestarted(size_t tasks) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kTimeout, [&] { return AllRestarted(tasks); })) {
    Fail(absl::StrCat("the gang of ", tasks, " does not run again"));
  }
  RecoverySeen seen = seen_;
  seen.bound = seen.running = absl::InfinitePast();
  for (const auto& [name, task] : seen.tasks) {
    seen.bound = std::max(seen.bound, task.bound);
    seen.running = std::max(seen.running, task.running);
  }
  return seen;
}

}  // namespace berth::bench
