// Exits that may be the fault of a device: they are reported only after a look at the GPUs, so that
// the report says so. The look is a round of health checks that begins after the exit; an exit is
// held for kLongestLook at most. If the agent ends in between, the next one finds the exit again.
//
//   00:00.0  worker exits with 134           held, until round 7 or 00:05
//   00:00.4  round 7: GPU-a has an XID 79    released, with cause DEVICE_FAULT if it had GPU-a
//
// No thread, clock or IO.
#ifndef BERTH_CLIENTS_AGENT_HELD_EXITS_H_
#define BERTH_CLIENTS_AGENT_HELD_EXITS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "clients/agent/interfaces.h"

namespace berth {

inline constexpr absl::Duration kLongestLook = absl::Seconds(5);

// The task ended badly, and nobody had told it to stop.
bool FailedByItself(const TaskEvent& event);

class HeldExits {
 public:
  // Why the device is bad; empty if it is not.
  using WhyBad = std::function<std::string(const std::string& uuid)>;

  // `devices`: those of the task. `round`: the first that begins after the exit.
  void Hold(TaskEvent event, std::vector<std::string> devices, uint64_t round, absl::Duration now);
  // The exits of which the round is over, or the time; those of tasks with a bad device say so.
  // `round`: the latest that is over.
  std::vector<TaskEvent> Take(uint64_t round, absl::Duration now, const WhyBad& why_bad);
  // When the first has been held long enough; infinite if there is none.
  absl::Duration NextWake() const;

 private:
  struct Held {
    TaskEvent event;
    std::vector<std::string> devices;
    uint64_t round;
    absl::Duration until;
  };
  std::deque<Held> held_;  // in order of `until`
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_HELD_EXITS_H_
