// The planning budget: how much counted work (PlanCounters::work) one cycle may do, so that it
// takes about the target time on this machine. Measured time only tunes the number. The number is
// an input of the cycle and recorded with it, so that a replay stops where the original did.
#ifndef BERTH_SERVER_LOOP_CYCLE_BUDGET_H_
#define BERTH_SERVER_LOOP_CYCLE_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace berth {

class CycleBudget {
 public:
  static constexpr uint64_t kFirst = 50'000;
  static constexpr uint64_t kLeast = 1'000;
  static constexpr uint64_t kMost = 50'000'000;

  explicit CycleBudget(absl::Duration target) : target_(target) {}

  uint64_t Get() const { return budget_; }

  // Only cycles long enough to measure count. Moves half of the way, and at most doubles or
  // quarters.
  void Note(uint64_t work, absl::Duration elapsed) {
    if (elapsed < absl::Milliseconds(1) || work == 0) return;
    const double fitting = static_cast<double>(work) * absl::FDivDuration(target_, elapsed);
    const double before = static_cast<double>(budget_);
    const double next = std::clamp((before + fitting) / 2, before / 4, before * 2);
    budget_ = std::clamp(static_cast<uint64_t>(next), kLeast, kMost);
  }

 private:
  const absl::Duration target_;
  uint64_t budget_ = kFirst;
};

}  // namespace berth

#endif  // BERTH_SERVER_LOOP_CYCLE_BUDGET_H_
