// Scans the machine's devices repeatedly while the agent runs, in a separate thread, so that a
// driver that hangs blocks nothing else.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_SCOUT_H_
#define BERTH_CLIENTS_AGENT_DEVICE_SCOUT_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/gpu_division.h"

namespace berth {

class DeviceScout {
 public:
  struct Look {
    google::protobuf::RepeatedPtrField<v1::Device> devices;
    google::protobuf::Map<std::string, std::string> labels;  // of the node
    DiscoveredDevices found;
    bool asked = false;                      // requested by ScanNow
    std::optional<DividedGpu> divided = {};  // before the scan
  };
  using Tell = absl::AnyInvocable<void(Look)>;

  // Calls its argument at once, after pausing everything that must not run at the same time.
  using Around = std::function<void(absl::FunctionRef<void()>)>;

  // `declared`: the configuration before discovery added to it. The first scan is after one
  // interval; `tell` is called on the thread. GPUs are divided inside `around`, if given.
  DeviceScout(config::v1::Agent declared, std::string probe, Tell tell, Around around = nullptr);
  ~DeviceScout();  // aborts a scan in progress

  // Thread-safe; does not wait for the scan.
  void ScanNow();
  // Divides the GPU, then scans. Thread-safe. Only after the result of the last division was
  // reported.
  void Divide(const v1::DivideGpu& wish);

 private:
  absl::Status RunDivision(const v1::DivideGpu& wish) const;
  void Run();

  const config::v1::Agent declared_;
  const std::string probe_;
  Tell tell_;
  const Around around_;
  absl::Mutex mutex_;
  std::atomic<bool> stopping_ = false;  // set under the mutex
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<v1::DivideGpu> wish_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_SCOUT_H_
