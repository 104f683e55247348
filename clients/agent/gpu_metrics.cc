#include "clients/agent/gpu_metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/visible.h"

namespace berth {
namespace {

using discovery::GpuSample;
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr double kMebi = 1 << 20;

// One field of the samples: its DCGM name, and the factor for DCGM's unit.
struct Field {
  const char* name;
  const char* help;
  int64_t GpuSample::*value;
  double factor = 1;
  bool counter = false;
};

constexpr Field kFields[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", &GpuSample::gpu_percent},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", &GpuSample::memory_percent},
    {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", &GpuSample::memory_used_bytes,
     1 / kMebi},
    {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", &GpuSample::memory_free_bytes,
     1 / kMebi},
    {"DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved by the driver (in MiB).",
     &GpuSample::memory_reserved_bytes, 1 / kMebi},
    {"DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", &GpuSample::encoder_percent},
    {"DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", &GpuSample::decoder_percent},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", &GpuSample::celsius},
    {"DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", &GpuSample::memory_celsius},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", &GpuSample::milliwatts, 1e-3},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ).",
     &GpuSample::millijoules, 1, true},
    {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", &GpuSample::sm_mhz},
    {"DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", &GpuSample::memory_mhz},
    {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "Reasons for clock throttling (bits).",
     &GpuSample::throttle_reasons},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe retries.", &GpuSample::pcie_replays, 1, true},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Corrected memory errors since the driver was loaded.",
     &GpuSample::ecc_corrected, 1, true},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Uncorrected memory errors since the driver was loaded.",
     &GpuSample::ecc_uncorrected, 1, true},
    {"DCGM_FI_DEV_RETIRED_SBE", "Pages retired after corrected errors.",
     &GpuSample::retired_corrected, 1, true},
    {"DCGM_FI_DEV_RETIRED_DBE", "Pages retired after uncorrected errors.",
     &GpuSample::retired_uncorrected, 1, true},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Rows remapped after corrected errors.",
     &GpuSample::remapped_corrected, 1, true},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped after uncorrected errors.",
     &GpuSample::remapped_uncorrected, 1, true},
    {"DCGM_FI_DEV_ROW_REMAP_PENDING", "Whether bad memory is pending a reset.",
     &GpuSample::replace_pending},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.",
     &GpuSample::replace_failed},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLink CRC errors, of all links.",
     &GpuSample::nvlink_crc, 1, true},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLink retries, of all links.",
     &GpuSample::nvlink_replays, 1, true},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "NVLink recoveries, of all links.",
     &GpuSample::nvlink_recoveries, 1, true},
};

prometheus::MetricFamily Family(const char* name, const char* help, bool counter) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  return family;
}

void AddGauge(const Labels& labels, double value, prometheus::MetricFamily* family) {
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  for (const auto& [name, text] : labels) {
    auto& label = metric.label.emplace_back();
    label.name = name;
    label.value = Visible(text);
  }
  (family->type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) =
      value;
}

Labels LabelsOf(const GpuSample& gpu, const std::string& node, const std::string& driver) {
  Labels labels = {{"gpu", absl::StrCat(gpu.index)}, {"UUID", gpu.uuid}, {"kind", gpu.kind}};
  if (gpu.kind == "mig") {
    labels.emplace_back("GPU_I_PROFILE", gpu.model);
    labels.emplace_back("parent", gpu.parent);
  } else {
    labels.emplace_back("modelName", gpu.model);
  }
  labels.emplace_back("Hostname", node);
  labels.emplace_back("DCGM_FI_DRIVER_VERSION", driver);
  return labels;
}

using Families = std::vector<prometheus::MetricFamily>;

void AddGpus(const AgentMetrics& metrics, Families* families) {
  const discovery::GpuReport& report = *metrics.gpus;
  for (const Field& field : kFields) {
    prometheus::MetricFamily family = Family(field.name, field.help, field.counter);
    for (const GpuSample& gpu : report.gpus) {
      if (gpu.*field.value < 0) continue;
      AddGauge(LabelsOf(gpu, metrics.node, report.driver),
               static_cast<double>(gpu.*field.value) * field.factor, &family);
    }
    if (!family.metric.empty()) families->push_back(std::move(family));
  }
  if (!report.xids_supported) return;
  prometheus::MetricFamily xids =
      Family("DCGM_FI_DEV_XID_ERRORS", "The last XID, 0 if there was none.", false);
  for (const GpuSample& gpu : report.gpus) {
    if (gpu.kind != "gpu") continue;
    const auto last = metrics.last_xids.find(gpu.uuid);
    AddGauge(LabelsOf(gpu, metrics.node, report.driver),
             last == metrics.last_xids.end() ? 0 : static_cast<double>(last->second), &xids);
  }
  families->push_back(std::move(xids));
}

}  // namespace

std::string MetricsText(const AgentMetrics& metrics) {
  Families families;
  prometheus::MetricFamily healthy =
      Family("berth_agent_device_healthy", "Whether the device is schedulable.", false);
  for (const v1::Device& device : metrics.inventory.devices()) {
    AddGauge({{"UUID", device.uuid()}, {"kind", device.kind()}, {"node", metrics.node}},
             device.unhealthy() ? 0 : 1, &healthy);
  }
  if (!healthy.metric.empty()) families.push_back(std::move(healthy));
  if (metrics.gpus) AddGpus(metrics, &families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace berth
