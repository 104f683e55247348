// The two clocks that the server, the agent and the clients may read. Simulation has its own implementation.
#ifndef BERTH_SUPPORT_CLOCK_H_
#define BERTH_SUPPORT_CLOCK_H_

#include "absl/time/time.h"

namespace berth {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time: may jump. For people, records and orders.
  virtual absl::Time Now() = 0;
  // Time since some fixed instant; never jumps and never goes back. For leases, time-outs and delays.
  virtual absl::Duration Steady() = 0;
};

// The machine's clocks. Steady time counts suspended time too (CLOCK_BOOTTIME), so that a machine that slept knows.
Clock& SystemClock();

}  // namespace berth

#endif  // BERTH_SUPPORT_CLOCK_H_
