// How the devices of a node are connected, in the notation of `nvidia-smi topo -m`, and known
// machines with their matrices. For scenarios and simulated nodes.
//
//   X    NV2  SYS  PIX        two GPUs with two NVLinks, one GPU without,
//   NV2  X    SYS  PHB        and a NIC
//   SYS  SYS  X    SYS
//   PIX  PHB  SYS  X
#ifndef BERTH_SUPPORT_DEVICE_PRESET_H_
#define BERTH_SUPPORT_DEVICE_PRESET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "berth/v1/node.pb.h"

namespace berth {

// One row per device, in order. Cells are X, NV and a number, XGMI, PIX, PXB, PHB, NODE, SYS, or ?
// for unknown. The matrix must be square and, except for ?, symmetric.
absl::StatusOr<v1::DeviceTopology> ParseDeviceMatrix(absl::Span<const std::string> rows);

struct DevicePreset {
  std::string name;
  int gpus = 0, nics = 0;
  std::vector<std::string> rows;  // GPUs, then NICs
  std::vector<int32_t> numa;      // by device
};

// NOT_FOUND, listing the known names.
absl::StatusOr<DevicePreset> FindDevicePreset(const std::string& name);

// The topology of a node with these numbers of GPUs and NICs; 0 NICs leaves them out. CPUs and
// memory are divided equally among the NUMA nodes. INVALID_ARGUMENT if the preset has other
// numbers.
absl::StatusOr<v1::DeviceTopology> PresetTopology(const DevicePreset& preset, int gpus, int nics,
                                                  int64_t cpus, int64_t memory_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_DEVICE_PRESET_H_
