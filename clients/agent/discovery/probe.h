// Runs discovery in a separate process, berth-probe: a crash in hwloc or in a vendor's driver, a
// driver that hangs on a dead GPU, or a malicious file ends the probe and not the agent.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/agent/discovery/discover.h"
#include "clients/agent/discovery/machine.h"
#include "clients/agent/discovery/nvml_divide.h"

namespace berth::discovery {

inline constexpr absl::Duration kProbeTimeout = absl::Seconds(60);

// Runs `program` and waits for it. Errors name the file that was read: those of Discover; INTERNAL
// if the probe crashed or returned an invalid response, DEADLINE_EXCEEDED if it was killed after
// `timeout`, UNAVAILABLE if it could not be started, CANCELLED if it was killed because `stop`
// became true.
absl::StatusOr<Machine> RunProbe(const std::string& program, const DiscoverOptions& options,
                                 absl::Duration timeout, const std::atomic<bool>* stop = nullptr);

// Divides a GPU through `nvml_library` (empty: libnvidia-ml.so.1) in the same way. Errors: those of
// DivideGpu, of a driver that does not start, and of the probe as above. After an error of the
// probe, discovery must find out which instances exist.
absl::Status RunDivision(const std::string& program, const std::string& nvml_library,
                         const std::string& uuid, const std::vector<GpuPart>& parts,
                         absl::Duration timeout, const std::atomic<bool>* stop = nullptr);

// The probe's side: main of berth-probe. Writes the machine or message to standard output;
// libraries may write to standard error.
int ProbeMain(int argc, char** argv);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_PROBE_H_
