// The result of discovery on one machine: plain values, no behaviour.
//
// Packages, NUMA nodes and devices are sorted by number or PCI address, so that two runs on the
// same machine give equal values. Indexes point into the vectors of the same Machine; -1 = none or
// unknown, everywhere.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_MACHINE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "clients/agent/discovery/pci_address.h"

namespace berth::discovery {

struct Package {
  int32_t os_index = -1;
  std::string model{};
  std::string cpus{};  // "0-15,32-47"
};

struct NumaNode {
  int32_t os_index = -1;
  int32_t package = -1;  // os index
  std::string cpus{};
  int64_t memory_bytes = 0;
  bool gpu_memory = false;  // GPU memory that the kernel presents as a node: not host memory
};

enum class PciKind : uint8_t { kHostBridge, kBridge, kDevice };

// One node of the PCI tree. Only nodes that lead to a GPU, a NIC or an NVSwitch are kept.
struct PciNode {
  PciKind kind = PciKind::kDevice;
  int32_t parent = -1;   // an earlier index; -1 for host bridges
  PciAddress address{};  // of a host bridge: domain and first bus
  int32_t class_id = 0;  // base class and subclass, 0x0302
  int32_t vendor = 0;
  int32_t device = 0;
  std::string name{};
  std::vector<int32_t> numa_nodes{};  // os indexes; empty = unknown
  int32_t package = -1;
  int64_t link_mb_per_s = 0;  // 0 = unknown
};

enum class FabricKind : uint8_t { kNone, kNvlink, kXgmi };
enum class PeerKind : uint8_t { kGpu, kSwitch, kCpu, kUnknown };

// Links of one GPU that end at the same peer.
struct FabricLink {
  FabricKind fabric = FabricKind::kNvlink;
  PeerKind peer = PeerKind::kUnknown;
  PciAddress address{};    // of a peer that is a GPU or a visible switch
  int32_t partition = -1;  // of a peer that is one of several GPUs on one PCI function
  int32_t count = 0;       // active links; 0 = only the bandwidth is known
  int64_t mb_per_s = 0;    // one direction, all links; 0 = unknown
};

struct MigInstance {
  std::string uuid{};
  std::string profile{};  // "1g.10gb"
  int64_t memory_bytes = 0;
  int32_t gpu_instance = -1;
  int32_t compute_instance = -1;
  int32_t slices = 0;  // of compute
};

struct Gpu {
  std::string kind = "gpu";  // or "npu"
  std::string vendor{};      // "nvidia", "amd", ...
  std::string uuid{};        // PCI-ADDRESS[-pPARTITION] if the GPU has none
  std::string model{};
  int64_t memory_bytes = 0;
  std::string compute_capability{};  // "9.0": NVIDIA's; empty = unknown
  PciAddress pci{};
  int32_t partition = -1;  // number among the GPUs of this PCI function, if there are several
  int32_t pci_node = -1;
  int32_t numa_node = -1;                 // os index
  int32_t package = -1;                   // os index
  std::vector<std::string> os_devices{};  // "nvml0", "cuda0": one GPU under several names
  int32_t render_minor = -1;              // AMD: its file is /dev/dri/renderDN
  int32_t compute_index = -1;  // AMD: its index among the GPUs of the compute driver (kfd)
  std::vector<FabricLink> links{};
  bool mig_enabled = false;
  std::vector<MigInstance> mig{};
  std::string fabric_cluster{};  // UUID of the multi-host NVLink fabric
  int64_t fabric_clique = -1;
  std::string fabric_state{};  // "completed", "in progress", ...; empty = no such fabric
  int32_t ecc_enabled = -1;
  int64_t ecc_corrected = -1;  // since the driver was loaded
  int64_t ecc_uncorrected = -1;
  int32_t remap_pending = -1;  // a row or page is pending replacement by a reset
  std::string problem{};       // why it is unusable
};

enum class NicKind : uint8_t { kOpenFabrics, kSlingshot };

struct Nic {
  std::string name{};  // "mlx5_0": as in NCCL_IB_HCA
  NicKind kind = NicKind::kOpenFabrics;
  std::vector<std::string> net_devices{};  // "ib0"
  std::string model{};
  PciAddress pci{};
  int32_t pci_node = -1;
  int32_t numa_node = -1;
  int32_t package = -1;
  std::string guid{};
  std::string port_state{};    // of the first port, "active"; empty = unknown
  int64_t megabits_per_s = 0;  // 0 = unknown
};

// nvidia-smi's terms, best first.
enum class LinkClass : uint8_t { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys, kUnknown };

// The path between two devices.
struct Distance {
  LinkClass pci = LinkClass::kUnknown;  // by PCI and NUMA alone, never kNvlink
  FabricKind fabric = FabricKind::kNone;
  int32_t links = 0;          // of that fabric; 0 = unknown
  int64_t mb_per_s = 0;       // of that fabric, one direction; 0 = unknown
  bool same_package = false;  // SYS within one socket is better than between two
};

struct Machine {
  std::string source{};         // "this machine", a file or a folder
  std::string nvidia_driver{};  // version
  std::vector<Package> packages{};
  std::vector<NumaNode> numa_nodes{};
  int64_t host_memory_bytes = 0;  // without GPU memory
  std::vector<PciNode> pci{};
  std::vector<Gpu> gpus{};
  std::vector<Nic> nics{};
  std::vector<std::vector<Distance>> gpu_gpu{};  // [gpu][gpu]
  std::vector<std::vector<Distance>> gpu_nic{};  // [gpu][nic]
  std::vector<std::string> warnings{};
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_MACHINE_H_
