// `nvidia-smi topo -m`: distances as NVIDIA's own tool reports them, to check ours against.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_TOPO_MATRIX_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_TOPO_MATRIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

inline constexpr size_t kMaxTopoDevices = 256;

struct TopoDevice {
  std::string name{};  // "GPU0"; NICs have the name from the legend, if it has one
  bool is_gpu = false;
  std::string cpus{};
  int32_t numa_node = -1;
};

// `pci` or, for NV#, `fabric` and `links` of each cell.
struct TopoMatrix {
  std::vector<TopoDevice> devices{};
  std::vector<std::vector<Distance>> cells{};  // square
};

// INVALID_ARGUMENT "line N: reason" for text that is not such a table, is truncated, or is not
// symmetric.
absl::StatusOr<TopoMatrix> ParseTopoMatrix(absl::string_view text);

// One line for each pair of common devices whose distances differ, and for each device that only
// one side has. GPU n is the n-th NVIDIA GPU by PCI address, as nvidia-smi counts. Empty = they
// agree.
std::vector<std::string> CompareWithTopo(const Machine& machine, const TopoMatrix& matrix);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_TOPO_MATRIX_H_
