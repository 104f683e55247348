// StoreHealth: the health of a store, for operators. The store records it and the server shows it.
// Thread-safe.
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
  // For the store in that directory.
  explicit StoreHealth(const std::string& directory) : reserve_(directory) {}

  SpaceReserve& reserve() { return reserve_; }
  const SpaceReserve& reserve() const { return reserve_; }

  // DATA_LOSS means that a read met damage: counts it, and logs it at most once in kLogEvery.
  // Returns the status.
  absl::Status NoteRead(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  static constexpr absl::Duration kLogEvery = absl::Seconds(10);

  uint64_t read_errors() const ABSL_LOCKS_EXCLUDED(mutex_);
  // A sentence about the last damage met; "" if there was none.
  std::string Damage() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  SpaceReserve reserve_;
  mutable absl::Mutex mutex_;
  uint64_t read_errors_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string last_ ABSL_GUARDED_BY(mutex_);
  absl::Duration logged_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // steady time
};

}  // namespace berth

#endif  // BERTH_STORAGE_STORE_HEALTH_H_
