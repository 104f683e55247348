// SpaceReserve: blocks that the store keeps for when the disk is full, in a file RESERVE of its
// directory. A store cannot be opened on a full disk, since opening writes a few blocks; nor can an
// agent register while nothing can be written, and its strict tasks die when its lease lapses. So
// parts of the reserve are given up then, and it is made anew when there is room.
//
//   starting, no space     one step after another, all of it if need be
//   running, no space      steps down to kKeptForStarts
//
// While some of it is missing new work must wait, so that what was given up serves registrations
// and reports. How much is left is the file's size, so that it is known after a restart, too. A
// store whose disk never had room for a reserve goes on without.
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
  // Free space that must be left beside it when it is made.
  static constexpr uint64_t kRoomBytes = uint64_t{16} << 20;

  // Looks at what is there and changes nothing. The directory need not be there yet.
  explicit SpaceReserve(std::string directory);

  // Makes it whole if there is room for that; else leaves it as it is.
  void Fill() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up a step. False: no more than `keep` is left.
  bool GiveUp(uint64_t keep) ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Why new work must wait: some of it was given up. "": it need not.
  std::string LowSpace() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_, path_;
  mutable absl::Mutex mutex_;
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool made_ ABSL_GUARDED_BY(mutex_) = false;  // there is or was one
};

}  // namespace berth

#endif  // BERTH_STORAGE_SPACE_RESERVE_H_
