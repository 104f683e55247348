// A value that is replaced occasionally while other threads read it.
#ifndef BERTH_SERVER_CONFIG_LIVE_H_
#define BERTH_SERVER_CONFIG_LIVE_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace berth {

// Thread-safe.
template <class Value>
class Live {
 public:
  Live() = default;
  explicit Live(Value value) : value_(std::move(value)) {}

  Value Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::ReaderMutexLock lock(&mutex_);
    return value_;
  }
  void Set(Value value) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    value_ = std::move(value);
  }

 private:
  mutable absl::Mutex mutex_;
  Value value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONFIG_LIVE_H_
