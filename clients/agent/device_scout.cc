#include "clients/agent/device_scout.h"

#include <utility>

namespace berth {

DeviceScout::DeviceScout(config::v1::Agent declared, std::string probe, Tell tell)
    : declared_(std::move(declared)), probe_(std::move(probe)), tell_(std::move(tell)) {
  thread_ = std::thread([this] { Run(); });
}

DeviceScout::~DeviceScout() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void DeviceScout::LookNow() {
  absl::MutexLock lock(&mutex_);
  asked_ = true;
}

void DeviceScout::Run() {
  const absl::Duration interval = DiscoveryInterval(declared_.discovery());
  for (;;) {
    Look look;
    {
      absl::MutexLock lock(&mutex_);
      const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_.load() || asked_;
      };
      mutex_.AwaitWithTimeout(absl::Condition(&due), interval);
      if (stopping_) return;
      look.asked = std::exchange(asked_, false);
    }
    config::v1::Agent config = declared_;
    look.found = DiscoverInto(probe_, &config, &stopping_);
    look.devices.Swap(config.mutable_devices());
    if (!stopping_) tell_(std::move(look));
  }
}

}  // namespace berth
