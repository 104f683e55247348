#include "clients/web/workers.h"

#include <utility>

namespace berth::web {

Workers::Workers(int threads, size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Workers::Add(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (work_.size() >= most_waiting_) return false;
  work_.push_back(std::move(work));
  return true;
}

void Workers::Run() {
  for (;;) {
    std::function<void()> work;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Workers::Ready));
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace berth::web
