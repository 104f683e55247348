#include "clients/agent/discovery/vendors.h"

#include <array>
#include <utility>

namespace berth::discovery {
namespace {

// Class 0380 display controller, 0302 3D controller, 0b40 co-processor, 1200 processing
// accelerator.
struct Row {
  int32_t vendor;
  Accelerator accelerator;
  std::array<int32_t, 4> classes;
};
constexpr std::array<Row, 6> kVendors = {{
    {kVendorNvidia, {"nvidia", "gpu"}, {0x0302, kClassVga}},
    {kVendorAmd, {"amd", "gpu"}, {0x0380, 0x1200}},
    {0x19e5, {"ascend", "npu"}, {0x1200}},
    {0xcabc, {"cambricon", "npu"}, {0x1200, 0x0b40}},
    {0x1d94, {"hygon", "gpu"}, {0x0380, 0x0b40, 0x1200}},
    {0x1e3e, {"iluvatar", "gpu"}, {0x0302, 0x1200}},
}};
constexpr Accelerator kOther = {"other", "gpu"};

constexpr std::array<std::pair<int32_t, const char*>, 15> kAmdModels = {{
    {0x6860, "Radeon Instinct MI25"},
    {0x66a0, "Radeon Instinct MI50/MI60"},
    {0x66a1, "Radeon Instinct MI50/MI60"},
    {0x738c, "Instinct MI100"},
    {0x7408, "Instinct MI250X"},
    {0x740c, "Instinct MI250X/MI250"},
    {0x740f, "Instinct MI210"},
    {0x74a0, "Instinct MI300A"},
    {0x74a1, "Instinct MI300X"},
    {0x74a2, "Instinct MI308X"},
    {0x74a5, "Instinct MI325X"},
    {0x74a9, "Instinct MI300X HF"},
    {0x74b5, "Instinct MI300X VF"},
    {0x75a0, "Instinct MI350X"},
    {0x75a3, "Instinct MI355X"},
}};

}  // namespace

const Accelerator* FindAccelerator(int32_t vendor, int32_t class_id) {
  for (const Row& row : kVendors) {
    if (row.vendor != vendor) continue;
    for (int32_t accepted : row.classes) {
      if (accepted != 0 && accepted == class_id) return &row.accelerator;
    }
  }
  return nullptr;
}

const Accelerator* AcceleratorOf(int32_t vendor) {
  for (const Row& row : kVendors) {
    if (row.vendor == vendor) return &row.accelerator;
  }
  return &kOther;
}

std::string AmdModel(int32_t device) {
  for (const auto& [id, name] : kAmdModels) {
    if (id == device) return name;
  }
  return "";
}

}  // namespace berth::discovery
