// Decides whether and when this node divides a GPU (MIG) for the server
// (docs/operators/devices.md).
//
//   DivideGpu, and its instances are schedulable: hold the GPU, and register that
//   DivideGpu, and the server has them as held: divide, scan, register the result
//
// The server repeats the request after each registration, as long as it needs it and no task holds
// the instances. So no task can start there in between without both sides knowing. A GPU that is
// held in vain becomes schedulable again after kHoldGpu. No thread, clock or IO.
#ifndef BERTH_CLIENTS_AGENT_GPU_DIVISION_H_
#define BERTH_CLIENTS_AGENT_GPU_DIVISION_H_

#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "berth/v1/agent.pb.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/discovery/nvml_divide.h"

namespace berth {

inline constexpr absl::Duration kHoldGpu = absl::Seconds(30);
inline constexpr char kMigCheck[] = "mig";  // the condition: a GPU could not be divided
inline constexpr int kMaxParts = 16;        // per GPU; more than any model supports

// A scan of the devices that first divided a GPU.
struct DividedGpu {
  std::string gpu;  // UUID
  absl::Status status;
};

class GpuDivision {
 public:
  struct Node {
    const v1::NodeInventory& sent;  // last sent to the server
    const std::map<std::string, MigPlace>& instances;
    absl::FunctionRef<bool(const std::string& uuid)> in_use;  // by a task of this node
  };
  enum class Step { kHold, kDivide };

  // Decides on a request; an error is the reason for doing nothing. After kHold and kDivide, the
  // node registers again if Holds changes what it last sent.
  absl::StatusOr<Step> On(const v1::DivideGpu& wish, const Node& node, absl::Duration now);
  // The GPU's instances must not be scheduled.
  bool Holds(const std::string& gpu) const { return phase_ != Phase::kNone && gpu == gpu_; }
  // True once, after a GPU was held in vain.
  bool Expired(absl::Duration now);
  absl::Duration NextWake() const;  // on the steady clock
  // The division has ended or failed. The result must be scanned before it is reported.
  void Ended();
  // A scan of the devices has finished.
  void Looked();
  bool dividing() const { return phase_ == Phase::kDividing; }

 private:
  enum class Phase { kNone, kHeld, kDividing, kUnseen };
  Phase phase_ = Phase::kNone;
  std::string gpu_;
  absl::Duration until_;
};

// INVALID_ARGUMENT for impossible parts.
absl::StatusOr<std::vector<discovery::GpuPart>> PartsOf(const v1::DivideGpu& wish);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GPU_DIVISION_H_
