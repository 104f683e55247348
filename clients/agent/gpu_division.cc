#include "clients/agent/gpu_division.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace berth {

absl::StatusOr<GpuDivision::Step> GpuDivision::On(const v1::DivideGpu& wish, const Node& node,
                                                  absl::Duration now) {
  if (const auto parts = PartsOf(wish); !parts.ok()) return parts.status();
  if (phase_ == Phase::kDividing || phase_ == Phase::kUnseen)
    return absl::UnavailableError(absl::StrCat("GPU ", gpu_, " is being divided"));
  const auto& devices = node.sent.devices();
  const bool offered = std::any_of(devices.begin(), devices.end(), [&](const v1::Device& device) {
    return device.kind() == kMigDevices && device.uuid() == wish.gpu() &&
           !node.instances.contains(device.uuid());
  });
  if (!offered)
    return absl::FailedPreconditionError(
        absl::StrCat("GPU ", wish.gpu(), " is not a GPU that this node may divide"));
  bool given_out = false;
  for (const v1::Device& device : devices) {
    const auto place = node.instances.find(device.uuid());
    if (place == node.instances.end() || place->second.gpu != wish.gpu()) continue;
    if (node.in_use(device.uuid()))
      return absl::FailedPreconditionError(
          absl::StrCat("instance ", device.uuid(), " of GPU ", wish.gpu(), " is in use"));
    given_out |= !device.unhealthy();
  }
  gpu_ = wish.gpu();
  phase_ = given_out ? Phase::kHeld : Phase::kDividing;
  until_ = now + kHoldGpu;
  return given_out ? Step::kHold : Step::kDivide;
}

bool GpuDivision::Expired(absl::Duration now) {
  if (phase_ != Phase::kHeld || now < until_) return false;
  phase_ = Phase::kNone;
  return true;
}

absl::Duration GpuDivision::NextWake() const {
  return phase_ == Phase::kHeld ? until_ : absl::InfiniteDuration();
}

void GpuDivision::Ended() { phase_ = Phase::kUnseen; }

void GpuDivision::Looked() {
  if (phase_ == Phase::kUnseen) phase_ = Phase::kNone;
}

absl::StatusOr<std::vector<discovery::GpuPart>> PartsOf(const v1::DivideGpu& wish) {
  std::vector<discovery::GpuPart> parts;
  for (const v1::GpuPart& part : wish.parts()) {
    if (part.profile().empty() || part.start() < 0)
      return absl::InvalidArgumentError("a part has no profile or a negative start");
    parts.push_back({part.profile(), part.start()});
  }
  if (parts.empty() || parts.size() > kMaxParts)
    return absl::InvalidArgumentError(absl::StrCat("a GPU must have 1 to ", kMaxParts, " parts"));
  return parts;
}

}  // namespace berth
