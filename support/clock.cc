#include "support/clock.h"

#include <time.h>

#include "absl/time/clock.h"

namespace berth {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Steady() override {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }
};

}  // namespace

Clock& SystemClock() {
  static RealClock clock;
  return clock;
}

}  // namespace berth
