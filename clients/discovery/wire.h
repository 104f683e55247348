// A machine as bytes, from the probe to the agent: same build on both sides, but the probe may have
// been taken over by the file that it read, so the reader trusts nothing.
#ifndef BERTH_CLIENTS_DISCOVERY_WIRE_H_
#define BERTH_CLIENTS_DISCOVERY_WIRE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/discovery/gpu_report.h"
#include "clients/discovery/machine.h"

namespace berth::discovery {

inline constexpr size_t kMaxWireBytes = size_t{16} << 20;

std::string EncodeMachine(const Machine& machine);
// INTERNAL for bytes that EncodeMachine does not give: too short, too long, counts beyond what is
// there, unknown enum values, indexes that point nowhere.
absl::StatusOr<Machine> DecodeMachine(absl::string_view bytes);

// Likewise, from the watch (gpu_watch.h).
std::string EncodeReport(const GpuReport& report);
absl::StatusOr<GpuReport> DecodeReport(absl::string_view bytes);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_WIRE_H_
