// Divides a GPU that is in MIG mode anew, by NVML. Part of the probe: a driver may hang or crash.
#ifndef BERTH_CLIENTS_DISCOVERY_NVML_DIVIDE_H_
#define BERTH_CLIENTS_DISCOVERY_NVML_DIVIDE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "clients/discovery/nvml_library.h"

namespace berth::discovery {

// One instance: "3g.40gb", from this slice of memory on.
struct GpuPart {
  std::string profile;
  int start = 0;
};
// "3g.40gb@4", and back. False: it is none.
std::string ToString(const GpuPart& part);
bool ParsePart(const std::string& text, GpuPart* part);

// Destroys all instances of the GPU, and makes these, each with one compute instance as large as
// itself. Whatever can be seen to be in the way is looked for before anything is destroyed: no such
// GPU, no MIG mode, a profile or place that the driver does not have for it, a process that uses an
// instance. Errors say what was in the way; after a later one the GPU holds what was left or made
// until then.
absl::Status DivideGpu(const NvmlLibrary& nvml, const std::string& uuid,
                       const std::vector<GpuPart>& parts);

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_NVML_DIVIDE_H_
