// Decides which PCI functions are accelerators: by vendor and class together, never by class alone,
// as consoles and virtual displays also have the class of a GPU.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_VENDORS_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_VENDORS_H_

#include <cstdint>
#include <string>

namespace berth::discovery {

inline constexpr int32_t kVendorNvidia = 0x10de;
inline constexpr int32_t kVendorAmd = 0x1002;
inline constexpr int32_t kVendorIbm = 0x1014;
inline constexpr int32_t kClassVga = 0x0300;
inline constexpr int32_t kClassNvSwitch = 0x0680;

struct Accelerator {
  const char* vendor;  // "nvidia"
  const char* kind;    // "gpu" or "npu"
};

// Null for any other function.
//   10de:0302 NVIDIA 3D controller -> gpu     1002:0300 -> nothing (a display; one with a ROCm name
//   19e5:1200 Ascend               -> npu                 counts, see assemble.h)
const Accelerator* FindAccelerator(int32_t vendor, int32_t class_id);
// By vendor alone: for a function that a driver or an operator declares a GPU. Never null.
const Accelerator* AcceleratorOf(int32_t vendor);

// AMD's name of the device, for machines without ROCm; empty if unknown.
std::string AmdModel(int32_t device);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_VENDORS_H_
