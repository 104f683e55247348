// ColdCache: cold parts of jobs just submitted, evicted oldest first, so that a burst of
// submissions launches without reading them back. Bounded in bytes. Thread-safe.
#ifndef BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_
#define BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/model/ids.h"
#include "server/loop/turn.h"

namespace berth {

class ColdCache {
 public:
  explicit ColdCache(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // Job ids grow: ids that are not above all previous ones are skipped.
  void Insert(const ColdParts& parts) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (parts.empty()) return;
    absl::MutexLock lock(&mutex_);
    for (const auto& part : parts) {
      if (!parts_.empty() && part.first <= parts_.back().first) continue;
      parts_.push_back(part);
      bytes_ += Cost(part.second);
    }
    while (bytes_ > capacity_bytes_) {
      bytes_ -= Cost(parts_.front().second);
      parts_.pop_front();
    }
  }

  // Null if it is not cached.
  ColdPart Find(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::lower_bound(parts_.begin(), parts_.end(), job,
                         [](const auto& part, JobId wanted) { return part.first < wanted; });
    return found == parts_.end() || found->first != job ? nullptr : found->second;
  }

 private:
  static size_t Cost(const ColdPart& part) { return part->size() + 128; }  // including its entry

  const size_t capacity_bytes_;
  mutable absl::Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<JobId, ColdPart>> parts_ ABSL_GUARDED_BY(mutex_);  // by id
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_
