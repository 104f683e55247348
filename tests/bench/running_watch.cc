#include "tests/bench/running_watch.h"

namespace berth::bench {

RunningWatch::RunningWatch(BenchCluster& cluster) {
  reader_ = cluster.watch().Watch(&context_, {});
  v1::WatchResponse initial;
  if (!reader_->Read(&initial)) Check(reader_->Finish(), "Watch");
  thread_ = std::thread([this] { Read(); });
}

RunningWatch::~RunningWatch() {
  context_.TryCancel();
  thread_.join();
}

void RunningWatch::Read() {
  v1::WatchResponse response;
  while (reader_->Read(&response)) {
    std::unique_lock lock(mutex_);
    for (const v1::ChangeEvent& event : response.events()) {
      if (event.type() == v1::ChangeEvent::TASK_CHANGED) ++seen_[event.task_state()];
    }
    changed_.notify_all();
  }
  (void)reader_->Finish();
}

std::optional<Clock::time_point> RunningWatch::Wait(v1::TaskState state, int64_t count,
                                                    std::chrono::seconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return seen_[state] >= count; })) return std::nullopt;
  return Clock::now();
}

std::optional<Clock::time_point> RunningWatch::WaitRunning(int64_t count,
                                                           std::chrono::seconds timeout) {
  return Wait(v1::TASK_RUNNING, count, timeout);
}
std::optional<Clock::time_point> RunningWatch::WaitBound(int64_t count,
                                                         std::chrono::seconds timeout) {
  return Wait(v1::TASK_BOUND, count, timeout);
}
bool RunningWatch::WaitEnded(int64_t count, std::chrono::seconds timeout) {
  return Wait(v1::TASK_SUCCEEDED, count, timeout).has_value();
}

}  // namespace berth::bench
