// SpaceReserve: blocks that the store keeps for a full disk, in the file RESERVE of its directory.
// Opening a store writes a few blocks, which fails on a full disk. While nothing can be written,
// agents cannot register either, and their strict tasks die when the lease expires. Parts of the
// reserve are released then, and it is refilled when there is space.
//
//   starting, no space     one step after another, all of it if necessary
//   running, no space      steps down to kKeptForStarts
//
// While a part is missing, new work must wait, so that the released space serves registrations and
// reports. The file's size is what remains, so it is known after a restart too. A store whose disk
// never had room for a reserve runs without one.
#ifndef BERTH_STORAGE_SPACE_RESERVE_H_
#define BERTH_STORAGE_SPACE_RESERVE_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace berth {

// Thread-safe.
class SpaceReserve {
 public:
  static constexpr uint64_t kBytes = uint64_t{32} << 20;
  static constexpr uint64_t kStepBytes = uint64_t{8} << 20;
  static constexpr uint64_t kKeptForStartsBytes = uint64_t{16} << 20;
  // Free space that must remain after it is filled.
  static constexpr uint64_t kRoomBytes = uint64_t{16} << 20;

  // Reads the current size and changes nothing. The directory need not exist yet.
  explicit SpaceReserve(std::string directory);

  // Fills it if there is enough space; else leaves it unchanged.
  void Fill() ABSL_LOCKS_EXCLUDED(mutex_);
  // Releases a step. False: no more than `keep` remains.
  bool GiveUp(uint64_t keep) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why new work must wait: a part was released. "": it need not.
  std::string LowSpace() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_, path_;
  mutable absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool made_ ABSL_GUARDED_BY(mutex_) = false;  // there is, or was, a reserve
};

}  // namespace berth

#endif  // BERTH_STORAGE_SPACE_RESERVE_H_
