// What GPUs report while they run: plain values, read repeatedly by a separate process
// (gpu_watch.h). -1 = not reported by the driver, everywhere.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_GPU_REPORT_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_GPU_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "clients/agent/discovery/pci_address.h"

namespace berth::discovery {

struct GpuSample {
  int32_t index = -1;  // NVML's; for an instance, that of its GPU
  std::string kind{};  // "gpu", or "mig" for an instance, which reports only its memory
  std::string uuid{};
  std::string parent{};  // of an instance: the UUID of its GPU
  std::string model{};   // of an instance: its profile
  PciAddress pci{};
  std::string problem{};  // the driver's error text if it cannot be read

  int64_t gpu_percent = -1;
  int64_t memory_percent = -1;  // of the time when memory was read or written
  int64_t memory_used_bytes = -1;
  int64_t memory_free_bytes = -1;
  int64_t memory_reserved_bytes = -1;  // by the driver; if not reported, included in used
  int64_t encoder_percent = -1;
  int64_t decoder_percent = -1;
  int64_t celsius = -1;
  int64_t memory_celsius = -1;
  int64_t milliwatts = -1;
  int64_t millijoules = -1;  // since the driver was loaded
  int64_t sm_mhz = -1;
  int64_t memory_mhz = -1;
  int64_t throttle_reasons = -1;  // bits: nvmlClocksEventReasons
  int64_t pcie_replays = -1;

  int64_t ecc_corrected = -1;      // since the driver was loaded, or the GPU reset
  int64_t ecc_uncorrected = -1;    // likewise
  int64_t retired_corrected = -1;  // pages, of GPUs before Ampere
  int64_t retired_uncorrected = -1;
  int64_t remapped_corrected = -1;  // rows, since Ampere
  int64_t remapped_uncorrected = -1;
  int64_t replace_pending = -1;  // 1: pages or rows are pending a reset
  int64_t replace_failed = -1;   // 1: a row could not be replaced
  int64_t recovery_action =
      -1;  // the action that the driver requests: nvmlDeviceGpuRecoveryAction_t, 0 = nothing

  int64_t nvlink_replays = -1;  // summed over its links
  int64_t nvlink_recoveries = -1;
  int64_t nvlink_crc = -1;

  std::vector<int64_t> xids{};  // since the last report
};

struct GpuReport {
  std::string driver{};           // version
  bool xids_supported = false;    // the driver supports events
  std::vector<GpuSample> gpus{};  // by index; instances follow their GPU
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_GPU_REPORT_H_
