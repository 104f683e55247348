#include "core/model/resources.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace berth {

std::string AmountText(int64_t amount, int64_t unit) {
  const bool minus = amount < 0 && amount / unit == 0;  // because "-0" has no sign
  std::string text = absl::StrCat(minus ? "-" : "", amount / unit);
  int64_t rest = amount % unit < 0 ? -(amount % unit) : amount % unit;
  if (rest > 0) text += '.';
  for (; rest > 0; rest %= unit) text += static_cast<char>('0' + (rest *= 10) / unit);
  return text;
}

void DeviceUse::AddShares(const DeviceUse& other, int sign) {
  for (const SharedDevice& more : other.shared) {
    auto at = std::find_if(shared.begin(), shared.end(),
                           [&](const SharedDevice& one) { return one.device >= more.device; });
    if (at == shared.end() || at->device != more.device) {
      at = shared.insert(at, {.device = more.device});
    }
    BERTH_CHECK(sign > 0 || at->tasks >= more.tasks);
    at->tasks = static_cast<uint16_t>(at->tasks + sign * more.tasks);
    at->share += sign * more.share;
    if (at->tasks == 0) shared.erase(at);
  }
}

void DeviceUse::Widen(const DeviceUse& other) {
  whole |= other.whole;
  for (const SharedDevice& one : other.shared) {
    const SharedDevice* mine = SharesOf(one.device);
    const SharedDevice had = mine == nullptr ? SharedDevice{.device = one.device} : *mine;
    const auto tasks = static_cast<uint16_t>(std::max<int>(one.tasks - had.tasks, 0));
    const int32_t share = std::max(one.share - had.share, 0);
    if (tasks == 0 && share == 0) continue;
    AddShares({.whole = {}, .shared = {{one.device, tasks, share}}}, 1);
  }
}

DeviceSet DeviceUse::InUse() const {
  DeviceSet some = whole;
  for (const SharedDevice& one : shared) some.Add(one.device);
  return some;
}

DeviceSet DeviceUse::Full() const {
  DeviceSet full = whole;
  for (const SharedDevice& one : shared) {
    if (one.share >= kWhole) full.Add(one.device);
  }
  return full;
}

const SharedDevice* DeviceUse::SharesOf(size_t device) const {
  for (const SharedDevice& one : shared) {
    if (one.device == device) return &one;
  }
  return nullptr;
}

int64_t DeviceUse::FreeOf(size_t device) const {
  if (whole.Has(device)) return 0;
  const SharedDevice* shares = SharesOf(device);
  return shares == nullptr ? kWhole : std::max<int64_t>(kWhole - shares->share, 0);
}

int64_t DeviceUse::FreeIn(const DeviceSet& devices) const {
  int64_t free = kWhole * Difference(devices, InUse()).Count();
  for (const SharedDevice& one : shared) {
    if (devices.Has(one.device)) free += FreeOf(one.device);
  }
  return free;
}

bool DeviceUse::Clashes(const DeviceUse& more) const {
  return more.whole.Overlaps(InUse()) || whole.Overlaps(more.InUse());
}

bool DeviceUse::HasRoomFor(const DeviceUse& more) const {
  if (more.whole.Overlaps(InUse())) return false;
  return std::all_of(more.shared.begin(), more.shared.end(),
                     [&](const SharedDevice& one) { return one.share <= FreeOf(one.device); });
}

}  // namespace berth
