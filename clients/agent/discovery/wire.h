// The wire format of a machine, from the probe to the agent. Both sides are of the same build, but
// a malicious file may have taken over the probe, so the reader trusts nothing.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_WIRE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_WIRE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/agent/discovery/gpu_report.h"
#include "clients/agent/discovery/machine.h"

namespace berth::discovery {

inline constexpr size_t kMaxWireBytes = size_t{16} << 20;

std::string EncodeMachine(const Machine& machine);
// INTERNAL for bytes that EncodeMachine cannot produce: too short, too long, counts beyond the
// data, unknown enum values, dangling indexes.
absl::StatusOr<Machine> DecodeMachine(absl::string_view bytes);

// The same for the watch (gpu_watch.h).
std::string EncodeReport(const GpuReport& report);
absl::StatusOr<GpuReport> DecodeReport(absl::string_view bytes);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_WIRE_H_
