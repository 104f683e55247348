// LoopThread: drives a Loop in production. Sleeps until there is work; the first command after
// idleness runs at once. After a turn it waits until that turn is on disk, but at most the
// coalescing window, so that bursts share a cycle and a sync. The wait grows with the load, up to
// the window.
#ifndef BERTH_SERVER_LOOP_LOOP_THREAD_H_
#define BERTH_SERVER_LOOP_LOOP_THREAD_H_

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/loop/loop.h"
#include "support/clock.h"

namespace berth {

class LoopThread {
 public:
  // `window` 0..100 ms. The loop and the clock outlive the thread object.
  LoopThread(Loop* loop, Clock* clock, absl::Duration window);
  ~LoopThread();  // Stop()

  // Registers a function that is called about every `period` on the loop thread, between turns:
  // lease ticks, housekeeping. It must be short. Before Start.
  void AddPeriodic(absl::Duration period, std::function<void()> call);

  void Start();
  // Ends after the current turn; queued commands are dropped without a response. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Periodic {
    absl::Duration period;
    absl::Duration due;  // steady
    std::function<void()> call;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  void Notify() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns false when stopped.
  bool Sleep(absl::Duration at_most) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Coalesce() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunPeriodic();
  absl::Duration UntilNextCall() const;
  bool ShouldGoOn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return notified_ || stopping_; }

  Loop* const loop_;
  Clock* const clock_;
  const absl::Duration window_;
  std::vector<Periodic> periodic_;

  absl::Mutex mutex_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_LOOP_THREAD_H_
