// The two clocks that the server, the agent and the clients read. The simulation implements its
// own.
#ifndef BERTH_SUPPORT_CLOCK_H_
#define BERTH_SUPPORT_CLOCK_H_

#include "absl/time/time.h"

namespace berth {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time: may jump. For people, records and ordering.
  virtual absl::Time Now() = 0;
  // Time since a fixed instant. Never jumps or goes back. For leases, timeouts and delays.
  virtual absl::Duration Steady() = 0;
};

// The machine's clocks. Steady time includes time in suspend (CLOCK_BOOTTIME).
Clock& SystemClock();

}  // namespace berth

#endif  // BERTH_SUPPORT_CLOCK_H_
