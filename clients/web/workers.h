// A few threads for work that blocks: sign-ins, which ask other servers.
#ifndef BERTH_CLIENTS_WEB_WORKERS_H_
#define BERTH_CLIENTS_WEB_WORKERS_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace berth::web {

class Workers {
 public:
  Workers(int threads, size_t most_waiting);
  // Runs what waits, then ends.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // False: too much waits. Thread-safe.
  bool Add(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Ready() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ || !work_.empty(); }

  const size_t most_waiting_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace berth::web

#endif  // BERTH_CLIENTS_WEB_WORKERS_H_
