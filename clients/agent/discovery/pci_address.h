// The address of a function on the PCI bus. The kernel and hwloc write 0000:1a:00.0, NVML writes
// 00000000:1A:00.0; both are read, the first is written.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_PCI_ADDRESS_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_PCI_ADDRESS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace berth::discovery {

struct PciAddress {
  uint32_t domain = 0;
  uint8_t bus = 0;
  uint8_t device = 0;    // below 32
  uint8_t function = 0;  // below 8
  auto operator<=>(const PciAddress&) const = default;
};

std::string ToString(const PciAddress& address);
// [DOMAIN:]BUS:DEVICE.FUNCTION in hexadecimal; the default domain is 0. A missing function is 0, as
// in NVML's PCI record. Returns nothing for any other text.
absl::optional<PciAddress> ParsePciAddress(absl::string_view text);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_PCI_ADDRESS_H_
