// Randomness with a separate stream for each actor: the draws of one do not change those of
// another.
#ifndef BERTH_TESTS_SIMULATION_DICE_H_
#define BERTH_TESTS_SIMULATION_DICE_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/time/time.h"
#include "support/random.h"

namespace berth::simulation {

class Dice {
 public:
  Dice(uint64_t seed, uint64_t stream) : random_(Random(seed).Next() ^ Random(~stream).Next()) {}

  bool Chance(double p) { return random_.Unit() < p; }
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most - least) + 1));
  }
  double Unit() { return random_.Unit(); }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least +
           absl::Nanoseconds(static_cast<int64_t>(
               random_.Unit() * static_cast<double>(absl::ToInt64Nanoseconds(most - least))));
  }
  // Mostly short, sometimes many times the mean, at most 20 times.
  absl::Duration Around(absl::Duration mean) {
    const double factor = std::min(20.0, -std::log1p(-random_.Unit()));
    return absl::Nanoseconds(
        static_cast<int64_t>(factor * static_cast<double>(absl::ToInt64Nanoseconds(mean))));
  }
  uint64_t Seed() { return random_.Next(); }
  Random& random() { return random_; }

 private:
  Random random_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_DICE_H_
