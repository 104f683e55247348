// Integer logarithms, the same on every machine.
#ifndef BERTH_CORE_BASE_FIXED_LOG_H_
#define BERTH_CORE_BASE_FIXED_LOG_H_

#include <cstdint>

namespace berth {

inline constexpr int kLogBits = 16;

// log2(x) in 1/2^16, rounded down; for x = 0 that of 1. At most 64 * 2^16.
int64_t FixedLog2(uint64_t x);

}  // namespace berth

#endif  // BERTH_CORE_BASE_FIXED_LOG_H_
