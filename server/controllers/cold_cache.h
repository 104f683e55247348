// ColdCache: cold parts of jobs just submitted, oldest out first, so that a burst of submissions
// launches without reading them back. Bounded in bytes. Thread-safe.
#ifndef BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_
#define BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_

#include <cstddef>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "core/model/ids.h"
#include "server/turn.h"

namespace berth {

class ColdCache {
 public:
  explicit ColdCache(size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  void Insert(const ColdParts& parts) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (parts.empty()) return;
    absl::MutexLock lock(&mutex_);
    for (const auto& [job, part] : parts) {
      if (!parts_.try_emplace(job, part).second) continue;
      order_.push_back(job);
      bytes_ += Cost(part);
    }
    while (bytes_ > capacity_bytes_) {
      auto oldest = parts_.find(order_.front());
      bytes_ -= Cost(oldest->second);
      parts_.erase(oldest);
      order_.pop_front();
    }
  }

  // Null if it is not kept.
  ColdPart Find(JobId job) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    auto found = parts_.find(job);
    return found == parts_.end() ? nullptr : found->second;
  }

 private:
  static size_t Cost(const ColdPart& part) { return part->size() + 128; }  // with its entry

  const size_t capacity_bytes_;
  mutable absl::Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<JobId> order_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<JobId, ColdPart> parts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace berth

#endif  // BERTH_SERVER_CONTROLLERS_COLD_CACHE_H_
