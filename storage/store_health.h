// StoreHealth: what an operator must know of a store beside the answers of its calls. Shared by the
// store, which notes, and the server, which shows it. Thread-safe.
#ifndef BERTH_STORAGE_STORE_HEALTH_H_
#define BERTH_STORAGE_STORE_HEALTH_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/space_reserve.h"

namespace berth {

class StoreHealth {
 public:
  // Of the store in that directory.
  explicit StoreHealth(const std::string& directory) : reserve_(directory) {}

  SpaceReserve& reserve() { return reserve_; }
  const SpaceReserve& reserve() const { return reserve_; }

  // A read met what is damaged, if the status is DATA_LOSS: counts it, and logs it at most once in
  // kLogEvery. Gives the status back.
  absl::Status NoteRead(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  static constexpr absl::Duration kLogEvery = absl::Seconds(10);

  uint64_t read_errors() const ABSL_LOCKS_EXCLUDED(mutex_);
  // A sentence for people about the damage that was met last; "" = none was.
  std::string Damage() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  SpaceReserve reserve_;
  mutable absl::Mutex mutex_;
  uint64_t read_errors_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_ ABSL_GUARDED_BY(mutex_);
  absl::Duration logged_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // steady
};

}  // namespace berth

#endif  // BERTH_STORAGE_STORE_HEALTH_H_
