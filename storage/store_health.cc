#include "storage/store_health.h"

#include "absl/strings/str_cat.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {

absl::Status StoreHealth::NoteRead(absl::Status status) {
  if (!absl::IsDataLoss(status)) return status;
  absl::MutexLock lock(&mutex_);
  ++read_errors_;
  last_ = std::string(status.message());
  const absl::Duration now = SystemClock().Steady();
  if (now - logged_ < kLogEvery) return status;
  logged_ = now;
  LogError("the store is damaged: a read failed",
           {{"error", status}, {"read_errors", read_errors_}});
  return status;
}

uint64_t StoreHealth::read_errors() const {
  absl::MutexLock lock(&mutex_);
  return read_errors_;
}

std::string StoreHealth::Damage() const {
  absl::MutexLock lock(&mutex_);
  if (read_errors_ == 0) return "";
  return absl::StrCat("the store is damaged, ", read_errors_,
                      read_errors_ == 1 ? " read has failed: " : " reads have failed: ", last_);
}

}  // namespace berth
