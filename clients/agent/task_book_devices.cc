// The devices that tasks have, wait for, and lend.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "clients/agent/task_book.h"

namespace berth {
namespace {

constexpr int kWholeDevice = 1000;  // thousandths

// As requested: a share of compute, or of memory only.
int ShareOf(const v1::TaskLaunch& launch, int device) {
  const auto at = [device](const google::protobuf::RepeatedField<int32_t>& shares) {
    const int share = device < shares.size() ? shares.Get(device) : 0;
    return share > 0 && share < kWholeDevice ? share : kWholeDevice;
  };
  const int share = at(launch.device_shares());
  return share < kWholeDevice ? share : at(launch.device_memory_shares());
}

}  // namespace

// A device may still be held by a task that the server has forgotten and that is being killed: wait
// for it (the server's prepare_timeout limits the wait). Any other holder is a contradiction that
// is reported to the server.
TaskBook::Devices TaskBook::CheckDevices(const TaskId& id, const Entry& entry,
                                         std::string* why) const {
  Devices result = Devices::kFree;
  const v1::TaskLaunch& launch = entry.record.launch();
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    const std::string& uuid = launch.device_uuids(i);
    const auto device = options_.devices.find(uuid);
    if (device == options_.devices.end()) {
      *why = absl::StrCat("device ", uuid, " is not on this node");
      return Devices::kRefused;
    }
    const auto holders = device_holders_.find(uuid);
    if (holders == device_holders_.end()) continue;
    const int bound = device->second;
    const auto takes = [bound](int share) { return share == kWholeDevice ? bound : share; };
    int wanted = takes(ShareOf(launch, i)), stopping = 0;
    for (const auto& [holder, share] : holders->second) {
      if (holder == id) continue;
      wanted += takes(share);
      if (tasks_.at(holder).stopping) stopping += takes(share);
      if (wanted - stopping > bound) {
        *why = absl::StrCat("device ", uuid, " is held by task ", ToString(holder));
        return Devices::kRefused;
      }
    }
    if (wanted > bound) result = Devices::kWait;
  }
  return result;
}

void TaskBook::TakeDevices(const TaskId& id, const Entry& entry) {
  const v1::TaskLaunch& launch = entry.record.launch();
  for (int i = 0; i < launch.device_uuids_size(); ++i) {
    device_holders_[launch.device_uuids(i)][id] = ShareOf(launch, i);
  }
}

bool TaskBook::DeviceInUse(const std::string& uuid) const {
  if (device_holders_.contains(uuid)) return true;
  const auto has = [&](const TaskId& id) {
    const auto& uuids = tasks_.at(id).record.launch().device_uuids();
    return std::find(uuids.begin(), uuids.end(), uuid) != uuids.end();
  };
  return std::any_of(waiting_.begin(), waiting_.end(), has) ||
         std::any_of(lending_.begin(), lending_.end(), has);
}

void TaskBook::ReleaseDevices(const TaskId& id) {
  for (auto held = device_holders_.begin(); held != device_holders_.end();) {
    held->second.erase(id);
    held = held->second.empty() ? device_holders_.erase(held) : std::next(held);
  }
}

}  // namespace berth
