// Finds NVIDIA's cuda-checkpoint, which saves what a process has on GPUs in its memory
// (docs/developers/pauses.md, "Devices").
#ifndef BERTH_CLIENTS_AGENT_CUDA_CHECKPOINT_H_
#define BERTH_CLIENTS_AGENT_CUDA_CHECKPOINT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "berth/config/v1/config.pb.h"

namespace berth {

// As Agent.cuda_checkpoint: none shall be used.
inline constexpr char kNoCudaCheckpoint[] = "none";

// The program, by its absolute path: `configured`, else the first in PATH (`path`) and in the usual
// places; empty: there is none. FAILED_PRECONDITION if it does not know the commands that are used
// (those of NVIDIA's driver 570).
absl::StatusOr<std::string> FindCudaCheckpoint(const std::string& configured,
                                               const std::string& path);

// How the names of files begin that a process with GPUs has open (SupervisorSpec::gpu_files).
std::vector<std::string> GpuFiles(const config::v1::Agent& config);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_CUDA_CHECKPOINT_H_
