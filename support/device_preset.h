// How the devices of a node are connected, written as `nvidia-smi topo -m` shows it, and machines
// whose matrix is known by name: for scenarios and simulated nodes.
//
//   X    NV2  SYS  PIX        two GPUs with two NVLinks, one apart,
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

// A row for each device, in order; cells are X, NV and a number, XGMI, PIX, PXB, PHB, NODE, SYS, or
// ? for unknown. The matrix must be square and the same both ways, but for ?.
absl::StatusOr<v1::DeviceTopology> ParseDeviceMatrix(absl::Span<const std::string> rows);

struct DevicePreset {
  std::string name;
  int gpus = 0, nics = 0;
  std::vector<std::string> rows;  // GPUs, then NICs
  std::vector<int32_t> numa;      // by device
};

// NOT_FOUND, with the names that are known.
absl::StatusOr<DevicePreset> FindDevicePreset(const std::string& name);

// Of a node with so many GPUs and NICs; without NICs the GPUs alone. Its CPUs and memory are in
// equal parts in the NUMA nodes. INVALID_ARGUMENT if the preset has other numbers.
absl::StatusOr<v1::DeviceTopology> PresetTopology(const DevicePreset& preset, int gpus, int nics,
                                                  int64_t cpus, int64_t memory_bytes);

}  // namespace berth

#endif  // BERTH_SUPPORT_DEVICE_PRESET_H_
