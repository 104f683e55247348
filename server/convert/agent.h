// Agents' messages as core types. Only for messages that passed validation.
#ifndef BERTH_SERVER_CONVERT_AGENT_H_
#define BERTH_SERVER_CONVERT_AGENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "berth/v1/agent.pb.h"
#include "core/model/event.h"
#include "core/model/node.h"

namespace berth {

// Devices sorted by (kind, PCI bus id, uuid), lists by name. Without an address the name is used.
DeviceTopology DeviceTopologyFrom(const v1::DeviceTopology& topology);
NodeSpec ToNodeSpec(const v1::Hello& hello);

// A report as an event of a task and its attempt. INVALID_ARGUMENT for numbers out of range or an
// unknown state. The message is cut to kMaxReportMessageBytes.
inline constexpr size_t kMaxReportMessageBytes = 1024;
absl::StatusOr<TaskReported> ToTaskReported(const v1::TaskReport& report);

}  // namespace berth

#endif  // BERTH_SERVER_CONVERT_AGENT_H_
