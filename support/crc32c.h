// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in iSCSI. Crc32c(0, "123456789") ==
// 0xe3069283.
#ifndef BERTH_SUPPORT_CRC32C_H_
#define BERTH_SUPPORT_CRC32C_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace berth {

inline constexpr std::array<uint32_t, 256> kCrc32cTable = [] {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
    table[i] = value;
  }
  return table;
}();

// Extends `crc` (initially 0) by `data`.
inline uint32_t Crc32c(uint32_t crc, absl::string_view data) {
  crc = ~crc;
  for (const char c : data) crc = crc >> 8 ^ kCrc32cTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

}  // namespace berth

#endif  // BERTH_SUPPORT_CRC32C_H_
