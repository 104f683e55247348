// Queries the GPUs repeatedly through a separate process (berth-probe --watch). It keeps the driver
// library open, because XIDs are delivered only to processes that listen. A driver that hangs on a
// dead GPU, or crashes, takes down that process and not the agent.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_GPU_WATCH_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_GPU_WATCH_H_

#include <sys/types.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/agent/discovery/child.h"
#include "clients/agent/discovery/gpu_report.h"

namespace berth::discovery {

inline constexpr absl::Duration kGpuReportTimeout = absl::Seconds(30);

// Not thread-safe. The thread of the first call must outlive this object: when that thread ends,
// the process is killed.
class GpuWatch {
 public:
  // `program` is berth-probe; `nvml_library` "" = libnvidia-ml.so.1.
  GpuWatch(std::string program, std::string nvml_library);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Starts the process if there is none. NOT_FOUND: this machine has no such library;
  // FAILED_PRECONDITION: the driver is not loaded; DEADLINE_EXCEEDED: the driver hangs; any other
  // error: the driver does not start, or the process failed. The next call after an error starts a
  // new process. Returns early when `stop` becomes true.
  absl::StatusOr<GpuReport> Ask(absl::Duration timeout, const std::atomic<bool>& stop);

  // Ends the process: the next call lists the GPUs again.
  void Restart() { End(); }

 private:
  absl::Status Start();
  void Send();
  absl::Status Fill(size_t size, absl::Time deadline, const std::atomic<bool>& stop);
  absl::Status ExitError();
  void End();
  bool Reap();

  const std::string program_;
  const std::string library_;
  pid_t pid_ = -1;
  Pipe in_, out_;
  std::string answer_;
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_GPU_WATCH_H_
