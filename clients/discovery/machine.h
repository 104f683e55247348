// What discovery finds in one machine: plain values, no behaviour.
//
// Order: packages, NUMA nodes and devices stand by number or PCI address, so that two runs on the
// same machine give the same value. Indexes point into the vectors of the same Machine; -1 = none
// or unknown, everywhere.
#ifndef BERTH_CLIENTS_DISCOVERY_MACHINE_H_
#define BERTH_CLIENTS_DISCOVERY_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "clients/discovery/pci_address.h"

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
  bool gpu_memory = false;  // a GPU's own memory that the kernel shows as a node: not host memory
};

enum class PciKind : uint8_t { kHostBridge, kBridge, kDevice };

// One node of the PCI tree. Only what leads to a GPU, a NIC or an NVSwitch is kept.
struct PciNode {
  PciKind kind = PciKind::kDevice;
  int32_t parent = -1;   // an earlier one; -1 for host bridges
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
  PciAddress address{};    // of a peer that is a GPU or a switch that can be seen
  int32_t partition = -1;  // of a peer that is one of several GPUs on one PCI function
  int32_t count = 0;       // active links; 0 = only the bandwidth is known
  int64_t mb_per_s = 0;    // one direction, all of them; 0 = unknown
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
  std::string uuid{};        // PCI-ADDRESS[-pPARTITION] where there is no other
  std::string model{};
  int64_t memory_bytes = 0;
  std::string compute_capability{};  // "9.0": NVIDIA's; empty = unknown
  PciAddress pci{};
  int32_t partition = -1;  // number among the GPUs of this PCI function, if there are several
  int32_t pci_node = -1;
  int32_t numa_node = -1;                 // os index
  int32_t package = -1;                   // os index
  std::vector<std::string> os_devices{};  // "nvml0", "cuda0": one GPU under several names
  int32_t render_minor = -1;              // of AMD's: its file is /dev/dri/renderDN
  int32_t compute_index = -1;  // likewise: its number among the GPUs of the compute driver (kfd)
  std::vector<FabricLink> links{};
  bool mig_enabled = false;
  std::vector<MigInstance> mig{};
  std::string fabric_cluster{};  // UUID of the NVLink fabric that spans hosts
  int64_t fabric_clique = -1;
  std::string fabric_state{};  // "completed", "in progress", ...; empty = no such fabric
  int32_t ecc_enabled = -1;
  int64_t ecc_corrected = -1;  // since the driver was loaded
  int64_t ecc_uncorrected = -1;
  int32_t remap_pending = -1;  // a row or page waits for a reset to be replaced
  std::string problem{};       // why it cannot be used
};

enum class NicKind : uint8_t { kOpenFabrics, kSlingshot };

struct Nic {
  std::string name{};  // "mlx5_0": what NCCL_IB_HCA takes
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

// nvidia-smi's words, best first.
enum class LinkClass : uint8_t { kSelf, kNvlink, kPix, kPxb, kPhb, kNode, kSys, kUnknown };

// The way between two devices.
struct Distance {
  LinkClass pci = LinkClass::kUnknown;  // by PCI and NUMA alone, never kNvlink
  FabricKind fabric = FabricKind::kNone;
  int32_t links = 0;          // of that fabric; 0 = not known how many
  int64_t mb_per_s = 0;       // of that fabric, one direction; 0 = unknown
  bool same_package = false;  // SYS inside one socket is better than between two
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

#endif  // BERTH_CLIENTS_DISCOVERY_MACHINE_H_
