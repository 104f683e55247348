// Whether and when this node divides a GPU (MIG) anew, as the server asks it to (docs/devices.md).
//
//   DivideGpu, and its instances are given out: hold the GPU, and register it so
//   DivideGpu, and the server knows them as not given out: divide, look, register what there is
//
// The server asks anew after each registration, as long as it wants it and nothing has the
// instances: so between the two nothing can come to run there that either side does not know of. A
// GPU that is held in vain is given out again after kHoldGpu. No thread, clock or IO.
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
#include "clients/discovery/nvml_divide.h"

namespace berth {

inline constexpr absl::Duration kHoldGpu = absl::Seconds(30);
inline constexpr char kMigCheck[] = "mig";  // the condition: a GPU could not be divided
inline constexpr int kMaxParts = 16;        // of one GPU; more than any has

// A look at the devices that was made to divide a GPU first.
struct DividedGpu {
  std::string gpu;  // UUID
  absl::Status status;
};

class GpuDivision {
 public:
  struct Node {
    const v1::NodeInventory& told;  // what the server was told last
    const std::map<std::string, MigPlace>& instances;
    absl::FunctionRef<bool(const std::string& uuid)> in_use;  // by a task of this node
  };
  enum class Step { kHold, kDivide };

  // What follows from the wish; an error says why nothing does. After kHold and kDivide the node
  // registers anew if Holds makes a difference to what it told.
  absl::StatusOr<Step> On(const v1::DivideGpu& wish, const Node& node, absl::Duration now);
  // The GPU's instances are not to be given out.
  bool Holds(const std::string& gpu) const { return phase_ != Phase::kNone && gpu == gpu_; }
  // True once, when a GPU was held in vain.
  bool Expired(absl::Duration now);
  absl::Duration NextWake() const;  // on the steady clock
  // The division has ended, or failed. What there is now must be seen before it is told.
  void Ended();
  // The devices were looked at.
  void Looked();
  bool dividing() const { return phase_ == Phase::kDividing; }

 private:
  enum class Phase { kNone, kHeld, kDividing, kUnseen };
  Phase phase_ = Phase::kNone;
  std::string gpu_;
  absl::Duration until_;
};

// INVALID_ARGUMENT for parts that cannot be.
absl::StatusOr<std::vector<discovery::GpuPart>> PartsOf(const v1::DivideGpu& wish);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_GPU_DIVISION_H_
