// Exports GPU reports as metrics, with the names of dcgm-exporter.
#ifndef BERTH_CLIENTS_AGENT_GPU_METRICS_H_
#define BERTH_CLIENTS_AGENT_GPU_METRICS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "berth/v1/node.pb.h"
#include "clients/agent/discovery/gpu_report.h"

namespace berth {

struct AgentMetrics {
  std::string node;
  v1::NodeInventory inventory = {};               // as last sent to the server
  std::optional<discovery::GpuReport> gpus = {};  // the last one; none: no driver, or no response
  std::map<std::string, int64_t> last_xids = {};  // by UUID
};

// In Prometheus' text format. Values that the driver does not report are omitted.
std::string MetricsText(const AgentMetrics& metrics);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GPU_METRICS_H_
