// Runs work that must keep its order but must not delay the caller.
#ifndef BERTH_SERVER_CONTROLLERS_EXECUTOR_H_
#define BERTH_SERVER_CONTROLLERS_EXECUTOR_H_

#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace berth {

// Runs calls one after the other, in order, not necessarily on the caller's thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Run(absl::AnyInvocable<void() &&> call) = 0;
};

// Runs calls at once: for simulations and tests.
class InlineExecutor final : public Executor {
 public:
  void Run(absl::AnyInvocable<void() &&> call) override { std::move(call)(); }
};

// Runs calls on one thread. Thread-safe. The destructor runs the calls that are queued.
class ThreadExecutor final : public Executor {
 public:
  ThreadExecutor() : thread_([this] { Work(); }) {}
  ~ThreadExecutor() override {
    {
      absl::MutexLock lock(&mutex_);
      stopping_ = true;
    }
    thread_.join();
  }

  void Run(absl::AnyInvocable<void() &&> call) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }

 private:
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !calls_.empty(); }

  void Work() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      std::deque<absl::AnyInvocable<void() &&>> calls;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(this, &ThreadExecutor::Awake));
        if (calls_.empty()) return;
        calls.swap(calls_);
      }
      for (auto& call : calls) std::move(call)();
    }
  }

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void() &&>> calls_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_EXECUTOR_H_
