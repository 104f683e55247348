// The single list of the fields of machine.h and gpu_report.h. JSON and the probe's wire format
// visit it: visitor("name", value) for each field, in order.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_FIELDS_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_FIELDS_H_

#include <type_traits>

#include "clients/agent/discovery/gpu_report.h"
#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

// T or const T: readers visit to fill in values, writers to read them.
template <class M, class T>
concept Of = std::is_same_v<std::remove_const_t<M>, T>;

template <class V, Of<Package> M>
void Fields(V& v, M& m) {
  v("osIndex", m.os_index), v("model", m.model), v("cpus", m.cpus);
}

template <class V, Of<NumaNode> M>
void Fields(V& v, M& m) {
  v("osIndex", m.os_index), v("package", m.package), v("cpus", m.cpus);
  v("memoryBytes", m.memory_bytes), v("gpuMemory", m.gpu_memory);
}

template <class V, Of<PciNode> M>
void Fields(V& v, M& m) {
  v("kind", m.kind), v("parent", m.parent), v("address", m.address), v("class", m.class_id);
  v("vendor", m.vendor), v("device", m.device), v("name", m.name), v("numaNodes", m.numa_nodes);
  v("package", m.package), v("linkMbPerS", m.link_mb_per_s);
}

template <class V, Of<FabricLink> M>
void Fields(V& v, M& m) {
  v("fabric", m.fabric), v("peer", m.peer), v("address", m.address), v("partition", m.partition);
  v("count", m.count), v("mbPerS", m.mb_per_s);
}

template <class V, Of<MigInstance> M>
void Fields(V& v, M& m) {
  v("uuid", m.uuid), v("profile", m.profile), v("memoryBytes", m.memory_bytes);
  v("gpuInstance", m.gpu_instance), v("computeInstance", m.compute_instance);
  v("slices", m.slices);
}

template <class V, Of<Gpu> M>
void Fields(V& v, M& m) {
  v("kind", m.kind), v("vendor", m.vendor), v("uuid", m.uuid), v("model", m.model);
  v("memoryBytes", m.memory_bytes), v("computeCapability", m.compute_capability);
  v("pci", m.pci), v("partition", m.partition);
  v("pciNode", m.pci_node), v("numaNode", m.numa_node), v("package", m.package);
  v("osDevices", m.os_devices), v("links", m.links), v("migEnabled", m.mig_enabled);
  v("mig", m.mig), v("fabricCluster", m.fabric_cluster), v("fabricClique", m.fabric_clique);
  v("fabricState", m.fabric_state), v("eccEnabled", m.ecc_enabled);
  v("eccCorrected", m.ecc_corrected), v("eccUncorrected", m.ecc_uncorrected);
  v("remapPending", m.remap_pending), v("problem", m.problem);
  v("renderMinor", m.render_minor), v("computeIndex", m.compute_index);
}

template <class V, Of<Nic> M>
void Fields(V& v, M& m) {
  v("name", m.name), v("kind", m.kind), v("netDevices", m.net_devices), v("model", m.model);
  v("pci", m.pci), v("pciNode", m.pci_node), v("numaNode", m.numa_node), v("package", m.package);
  v("guid", m.guid), v("portState", m.port_state), v("megabitsPerS", m.megabits_per_s);
}

template <class V, Of<Distance> M>
void Fields(V& v, M& m) {
  v("pci", m.pci), v("fabric", m.fabric), v("links", m.links), v("mbPerS", m.mb_per_s);
  v("samePackage", m.same_package);
}

template <class V, Of<Machine> M>
void Fields(V& v, M& m) {
  v("source", m.source), v("nvidiaDriver", m.nvidia_driver), v("packages", m.packages);
  v("numaNodes", m.numa_nodes), v("hostMemoryBytes", m.host_memory_bytes), v("pci", m.pci);
  v("gpus", m.gpus), v("nics", m.nics), v("gpuGpu", m.gpu_gpu), v("gpuNic", m.gpu_nic);
  v("warnings", m.warnings);
}

template <class V, Of<GpuSample> M>
void Fields(V& v, M& m) {
  v("index", m.index), v("kind", m.kind), v("uuid", m.uuid), v("parent", m.parent);
  v("model", m.model), v("pci", m.pci), v("problem", m.problem);
  v("gpuPercent", m.gpu_percent), v("memoryPercent", m.memory_percent);
  v("memoryUsedBytes", m.memory_used_bytes), v("memoryFreeBytes", m.memory_free_bytes);
  v("memoryReservedBytes", m.memory_reserved_bytes);
  v("encoderPercent", m.encoder_percent), v("decoderPercent", m.decoder_percent);
  v("celsius", m.celsius), v("memoryCelsius", m.memory_celsius);
  v("milliwatts", m.milliwatts), v("millijoules", m.millijoules);
  v("smMhz", m.sm_mhz), v("memoryMhz", m.memory_mhz), v("throttleReasons", m.throttle_reasons);
  v("pcieReplays", m.pcie_replays);
  v("eccCorrected", m.ecc_corrected), v("eccUncorrected", m.ecc_uncorrected);
  v("retiredCorrected", m.retired_corrected), v("retiredUncorrected", m.retired_uncorrected);
  v("remappedCorrected", m.remapped_corrected), v("remappedUncorrected", m.remapped_uncorrected);
  v("replacePending", m.replace_pending), v("replaceFailed", m.replace_failed);
  v("recoveryAction", m.recovery_action), v("nvlinkReplays", m.nvlink_replays);
  v("nvlinkRecoveries", m.nvlink_recoveries), v("nvlinkCrc", m.nvlink_crc), v("xids", m.xids);
}

template <class V, Of<GpuReport> M>
void Fields(V& v, M& m) {
  v("driver", m.driver), v("xidsAreTold", m.xids_supported), v("gpus", m.gpus);
}

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_FIELDS_H_
