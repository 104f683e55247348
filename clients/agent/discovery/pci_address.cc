#include "clients/agent/discovery/pci_address.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace berth::discovery {
namespace {

// At most eight digits.
bool ReadHex(absl::string_view text, uint32_t most, uint32_t* value) {
  return text.size() <= 8 && absl::SimpleHexAtoi(text, value) && *value <= most &&
         text.find_first_of("xX+- ") == absl::string_view::npos;
}

}  // namespace

std::string ToString(const PciAddress& address) {
  return absl::StrFormat("%04x:%02x:%02x.%x", address.domain, address.bus, address.device,
                         address.function);
}

absl::optional<PciAddress> ParsePciAddress(absl::string_view text) {
  std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() == 2 && !absl::StrContains(parts[1], '.')) return absl::nullopt;
  if (parts.size() == 2) parts.insert(parts.begin(), "0");
  if (parts.size() != 3) return absl::nullopt;
  const std::pair<absl::string_view, absl::string_view> slot =
      absl::StrSplit(parts[2], absl::MaxSplits('.', 1));
  uint32_t domain = 0;
  uint32_t bus = 0;
  uint32_t device = 0;
  uint32_t function = 0;
  if (!ReadHex(parts[0], UINT32_MAX, &domain) || !ReadHex(parts[1], 0xff, &bus) ||
      !ReadHex(slot.first, 0xff, &device) ||
      (!slot.second.empty() && !ReadHex(slot.second, 7, &function))) {
    return absl::nullopt;
  }
  return PciAddress{domain, static_cast<uint8_t>(bus), static_cast<uint8_t>(device),
                    static_cast<uint8_t>(function)};
}

}  // namespace berth::discovery
