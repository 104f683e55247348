// Looks at the machine's devices again while the agent runs, in a thread of its own: a driver that
// hangs holds up nobody.
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
    bool asked = false;                      // for, by LookNow
    std::optional<DividedGpu> divided = {};  // before the look
  };
  using Tell = absl::AnyInvocable<void(Look)>;

  // Calls what it is given, at once, with whatever must not be meanwhile put aside.
  using Around = std::function<void(absl::FunctionRef<void()>)>;

  // `declared`: the configuration before discovery added to it. Looks for the first time after an
  // interval; `tell` is called on the thread. GPUs are divided within `around`, if there is one.
  DeviceScout(config::v1::Agent declared, std::string probe, Tell tell, Around around = nullptr);
  ~DeviceScout();  // a look in progress is cut short

  // Thread-safe; does not wait for it.
  void LookNow();
  // Divides the GPU, and then looks. Likewise. Not before the last division was told.
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
