#include "clients/agent/discovery/names.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace berth::discovery {
namespace {

template <size_t N, class E>
const char* Pick(const std::array<const char*, N>& names, E value) {
  const size_t at = static_cast<size_t>(value);
  return at < N ? names[at] : "?";
}

}  // namespace

const char* Name(PciKind kind) { return Pick(std::array{"host-bridge", "bridge", "device"}, kind); }
const char* Name(FabricKind kind) { return Pick(std::array{"none", "nvlink", "xgmi"}, kind); }
const char* Name(PeerKind kind) {
  return Pick(std::array{"gpu", "switch", "cpu", "unknown"}, kind);
}
const char* Name(NicKind kind) { return Pick(std::array{"openfabrics", "slingshot"}, kind); }
const char* Name(LinkClass link_class) {
  return Pick(std::array{"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "?"}, link_class);
}

std::string Label(const Distance& distance) {
  if (distance.fabric == FabricKind::kXgmi) return "XGMI";
  if (distance.fabric == FabricKind::kNone) return Name(distance.pci);
  return distance.links > 0 ? absl::StrCat("NV", distance.links) : "NV";
}

}  // namespace berth::discovery
