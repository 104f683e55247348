// Divides a GPU in MIG mode through NVML. Part of the probe: a driver may hang or crash.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NVML_DIVIDE_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NVML_DIVIDE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/agent/discovery/nvml_library.h"

namespace berth::discovery {

// One instance: "3g.40gb", starting at this memory slice.
struct GpuPart {
  std::string profile;
  int start = 0;
};
// "3g.40gb@4", and back. Returns false if the text is invalid.
std::string ToString(const GpuPart& part);
bool ParsePart(const std::string& text, GpuPart* part);

// Destroys all instances of the GPU and creates these, each with one compute instance of the full
// size. Everything that can be checked is checked before anything is destroyed: the GPU exists and
// is in MIG mode, the driver supports each profile and placement, and no process uses an instance.
// Errors name the cause; after a later error the GPU keeps the instances that remained or were
// created until then.
absl::Status DivideGpu(const NvmlLibrary& nvml, const std::string& uuid,
                       const std::vector<GpuPart>& parts);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NVML_DIVIDE_H_
