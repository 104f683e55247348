// Bit by bit: with x = 2^n * m, 1 <= m < 2, each squaring of m doubles its logarithm, whose next
// binary digit is 1 if the square is 2 or more.
//
//   x = 10: n = 3, m = 1.25;  1.5625 -> 0;  2.4414 -> 1, m = 1.2207;  1.4901 -> 0 ...  3.01..b
#include "core/base/fixed_log.h"

#include <bit>

namespace berth {

int64_t FixedLog2(uint64_t x) {
  if (x <= 1) return 0;
  constexpr int kFraction = 31;  // of m
  const int whole = static_cast<int>(std::bit_width(x)) - 1;
  uint64_t m = whole >= kFraction ? x >> (whole - kFraction) : x << (kFraction - whole);
  int64_t log = whole;
  for (int bit = 0; bit < kLogBits; ++bit) {
    m = (m * m) >> kFraction;
    log <<= 1;
    if (m >> (kFraction + 1) == 0) continue;
    log |= 1;
    m >>= 1;
  }
  return log;
}

}  // namespace berth
