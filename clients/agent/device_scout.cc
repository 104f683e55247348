#include "clients/agent/device_scout.h"

#include <utility>

#include "clients/agent/agent_config.h"
#include "clients/agent/discovery/probe.h"

namespace berth {

DeviceScout::DeviceScout(config::v1::Agent declared, std::string probe, Tell tell, Around around)
    : declared_(std::move(declared)),
      probe_(std::move(probe)),
      tell_(std::move(tell)),
      around_(std::move(around)) {
  thread_ = std::thread([this] { Run(); });
}

DeviceScout::~DeviceScout() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void DeviceScout::ScanNow() {
  absl::MutexLock lock(&mutex_);
  asked_ = true;
}

void DeviceScout::Divide(const v1::DivideGpu& wish) {
  absl::MutexLock lock(&mutex_);
  wish_ = wish;
}

absl::Status DeviceScout::RunDivision(const v1::DivideGpu& wish) const {
  const auto parts = PartsOf(wish);
  if (!parts.ok()) return parts.status();
  absl::Status status;
  const auto divide = [&] {
    status = discovery::RunDivision(probe_, declared_.discovery().nvml_library(), wish.gpu(),
                                    *parts, ProbeTimeout(declared_.discovery()), &stopping_);
  };
  around_ == nullptr ? divide() : around_(divide);
  return status;
}

void DeviceScout::Run() {
  const absl::Duration interval = DiscoveryInterval(declared_.discovery());
  for (;;) {
    Look look;
    std::optional<v1::DivideGpu> wish;
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_.load() || asked_ || wish_.has_value();
      };
      mutex_.AwaitWithTimeout(absl::Condition(&due), interval);
      if (stopping_) return;
      look.asked = std::exchange(asked_, false);
      wish.swap(wish_);
    }
    if (wish) look.divided = DividedGpu{wish->gpu(), RunDivision(*wish)};
    config::v1::Agent config = declared_;
    look.found = DiscoverInto(probe_, &config, &stopping_);
    v1::NodeInventory inventory = MakeInventory(config);
    look.devices.Swap(inventory.mutable_devices());
    look.labels.swap(*inventory.mutable_labels());
    if (!stopping_) tell_(std::move(look));
  }
}

}  // namespace berth
