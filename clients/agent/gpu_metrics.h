// The GPUs' reports as metrics, by the names that dcgm-exporter gives them.
#ifndef BERTH_CLIENTS_AGENT_GPU_METRICS_H_
#define BERTH_CLIENTS_AGENT_GPU_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "berth/v1/node.pb.h"
#include "clients/discovery/gpu_report.h"

namespace berth {

struct AgentMetrics {
  std::string node;
  v1::NodeInventory inventory = {};               // as the server was told it
  std::optional<discovery::GpuReport> gpus = {};  // the last one; none: no driver, or no answer
  std::map<std::string, int64_t> last_xids = {};  // by UUID
};

// In Prometheus' text format. What the driver does not tell is left out.
std::string MetricsText(const AgentMetrics& metrics);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GPU_METRICS_H_
