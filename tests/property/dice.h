// Random numbers that are the same on every platform, unlike std::uniform_int_distribution.
#ifndef BERTH_TESTS_PROPERTY_DICE_H_
#define BERTH_TESTS_PROPERTY_DICE_H_

#include <cstdint>
#include <cstdlib>
#include <random>

#include "absl/strings/numbers.h"

namespace berth {

// The number of seeds: BERTH_SEEDS in the environment, otherwise `usual`.
inline uint32_t Seeds(uint32_t usual) {
  const char* asked = std::getenv("BERTH_SEEDS");
  uint32_t seeds = 0;
  return asked != nullptr && absl::SimpleAtoi(asked, &seeds) ? seeds : usual;
}

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int Below(int bound) { return static_cast<int>(engine_() % static_cast<uint32_t>(bound)); }
  int Between(int low, int high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }

 private:
  std::mt19937 engine_;
};

}  // namespace berth

#endif  // BERTH_TESTS_PROPERTY_DICE_H_
