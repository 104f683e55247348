#include "core/model/node.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/model/event.h"
#include "core/model/interner.h"
#include "core/model/task_room.h"

namespace berth {
namespace {

using DeviceName = std::pair<absl::string_view, absl::string_view>;  // kind, uuid

absl::flat_hash_map<DeviceName, int> IndexDevices(const NodeSpec& spec) {
  absl::flat_hash_map<DeviceName, int> index;
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    index.emplace(DeviceName(spec.devices[i].kind, spec.devices[i].uuid), static_cast<int>(i));
  }
  return index;
}

// `thousandths` of an amount, and the reverse: the thousandths, rounded up, that a smaller amount
// is. Both amounts are at most kMaxAmount.
int64_t PartOf(int64_t amount, int64_t thousandths) { return amount * thousandths / kWhole; }
int64_t PartFor(int64_t part, int64_t amount) { return (part * kWhole + amount - 1) / amount; }

Resources FreeBeside(const Node& node, const Resources& held, const DeviceUse& taken) {
  Resources free = node.capacity - held;
  for (int64_t& amount : free.amount) amount = std::max<int64_t>(amount, 0);
  for (const DeviceKindSet& kind : node.kinds) {
    free[kind.kind] = taken.FreeIn(kind.devices);
  }
  return free;
}

}  // namespace

Resources FreeOf(const Node& node) {
  return FreeBeside(node, node.allocated + node.reserved, TakenDevices(node));
}

Resources FreeAfterRelease(const Node& node) {
  const Resources held = node.allocated - node.leaving + node.reserved;
  return FreeBeside(node, held, TakenAfterRelease(node));
}

DeviceUse ClaimedDevices(const Node& node) {
  DeviceUse claimed = node.devices_reserved;
  claimed.whole |= node.awaited;
  return claimed;
}

DeviceUse TakenAfterRelease(const Node& node) {
  DeviceUse taken = node.devices_used;
  taken -= node.devices_leaving;
  return taken += ClaimedDevices(node);
}

DeviceUse TakenDevices(const Node& node) {
  DeviceUse taken = node.devices_used;
  return taken += ClaimedDevices(node);
}

DeviceUse UseOf(const Node& node, const ShapeEntry& shape, const DeviceSet& devices) {
  DeviceUse use{.whole = devices, .shared = {}};
  if (shape.share == 0) return use;
  const DeviceRequest& request = shape.shape.devices[shape.share_at];
  for (size_t i = 0; i < node.spec.devices.size(); ++i) {
    const Device& device = node.spec.devices[i];
    if (!devices.Has(i) || device.kind != request.kind) continue;
    use.whole -= DeviceSet::Of(i);
    use.shared.push_back(
        {.device = static_cast<uint8_t>(i), .tasks = 1, .share = ShareOn(device, request)});
  }
  return use;
}

Resources GivenBack(const ShapeEntry& shape, bool lends) {
  Resources amounts;
  amounts[kCpu] = shape.resources[kCpu];
  return lends ? amounts + shape.devices : amounts;
}

Resources HeldBy(const ShapeEntry& shape, const DeviceUse& use, bool frozen) {
  Resources amounts = AmountsOf(shape, use);
  if (!frozen) return amounts;
  return amounts - GivenBack(shape, /*lends=*/use.whole.Empty() && use.shared.empty());
}

Resources LentBy(const Node& node, const ShapeEntry& shape, const Task& task) {
  return AmountsOf(shape, UseOf(node, shape, task.devices)) -
         HeldBy(shape, UseOf(node, shape, DevicesHeld(task)), true);
}

Resources AmountsOf(const ShapeEntry& shape, const DeviceUse& use) {
  Resources amounts = shape.resources;
  if (!shape.share_varies) return amounts;
  amounts[shape.share_kind] -= shape.share;
  for (const SharedDevice& one : use.shared) amounts[shape.share_kind] += one.share;
  return amounts;
}

std::optional<int32_t> ComputeCapabilityFrom(absl::string_view text) {
  if (text.empty()) return 0;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  int32_t number[2] = {0, 0};
  if (parts.size() > 2) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool digits = std::all_of(parts[i].begin(), parts[i].end(), absl::ascii_isdigit);
    if (!digits || parts[i].empty() || parts[i].size() > 2) return std::nullopt;
    if (!absl::SimpleAtoi(parts[i], &number[i])) return std::nullopt;
  }
  return number[0] * 100 + number[1];
}

std::string ComputeCapabilityText(int32_t capability) {
  return capability == 0 ? "" : absl::StrCat(capability / 100, ".", capability % 100);
}

bool Interchangeable(const Device& a, const Device& b) {
  const auto make = [](const Device& d) {
    return std::tie(d.kind, d.model, d.memory_bytes, d.max_tasks, d.oversubscription,
                    d.compute_capability);
  };
  return make(a) == make(b);
}

bool MatchesMake(const Device& device, const DeviceRequest& request) {
  const auto is_among = [&](const std::vector<std::string>& models) {
    return std::find(models.begin(), models.end(), device.model) != models.end();
  };
  if (request.share > 0 && device.max_tasks <= 1) return false;  // exclusive device
  const bool part = request.share > 0 && !request.by_memory;
  const int64_t memory = part ? PartOf(device.memory_bytes, request.share) : device.memory_bytes;
  return memory >= request.min_memory_bytes &&
         device.compute_capability >= request.min_compute_capability &&
         (request.models.empty() || is_among(request.models)) && !is_among(request.deny_models);
}

int32_t ShareOn(const Device& device, const DeviceRequest& request) {
  if (!request.by_memory && !(request.oversubscribe && device.oversubscription > 100)) {
    return request.share;
  }
  // Devices that do not report their memory suit only requests for no memory.
  const int64_t memory =
      device.memory_bytes == 0 ? 0 : PartFor(request.min_memory_bytes, device.memory_bytes);
  const int64_t less =
      (int64_t{request.share} * 100 + device.oversubscription - 1) / device.oversubscription;
  const int64_t share = request.by_memory ? memory : std::max(memory, less);
  return static_cast<int32_t>(std::clamp<int64_t>(share, 1, kWhole));
}

bool HasRoom(const Node& node, const DeviceUse& taken, const DeviceUse& more) {
  if (!taken.HasRoomFor(more)) return false;
  return std::all_of(more.shared.begin(), more.shared.end(), [&](const SharedDevice& one) {
    const SharedDevice* others = taken.SharesOf(one.device);
    const int tasks = one.tasks + (others == nullptr ? 0 : others->tasks);
    const int32_t most = node.spec.devices[one.device].max_tasks;
    return most > 1 && tasks <= most;
  });
}

DrainMode DrainModeOf(const NodeStatus& status) {
  const bool only_devices = !status.drain.devices.Empty();
  return status.draining && only_devices ? DrainMode::kNow : status.drain.mode;
}

Time DrainDeadline(const NodeStatus& status) {
  const bool drains = status.draining || !status.drain.devices.Empty();
  if (!drains || DrainModeOf(status) == DrainMode::kNow) return absl::InfiniteFuture();
  return status.drain.deadline;
}

bool MustLeave(const NodeStatus& status, const DeviceSet& devices) {
  return status.draining || devices.Overlaps(status.drain.devices);
}

bool TakesTasks(const NodeStatus& status) {
  return status.state == NodeState::kReady && !status.cordoned && !status.draining;
}

namespace {

// spec.topology refers to the first `connected` devices.
void SortDevices(NodeSpec& spec, size_t connected) {
  std::vector<int> from(spec.devices.size());
  std::iota(from.begin(), from.end(), 0);
  std::sort(from.begin(), from.end(), [&](int i, int j) {
    const Device& a = spec.devices[static_cast<size_t>(i)];
    const Device& b = spec.devices[static_cast<size_t>(j)];
    return std::tie(a.kind, a.pci_bus_id, a.uuid, i) < std::tie(b.kind, b.pci_bus_id, b.uuid, j);
  });
  std::vector<Device> sorted;
  sorted.reserve(from.size());
  for (int i : from) sorted.push_back(std::move(spec.devices[static_cast<size_t>(i)]));
  spec.devices = std::move(sorted);
  for (int& i : from) i = i < static_cast<int>(connected) ? i : -1;
  spec.topology = Reordered(spec.topology, connected, from);
}

}  // namespace

NodeSpec WithUsedDevices(const Node& node, NodeSpec fresh) {
  const std::vector<int> moves = DeviceMoves(node.spec, fresh);
  DeviceSet in_use = TakenDevices(node).InUse();
  in_use |= node.lent;
  const size_t listed = fresh.devices.size();
  for (size_t i = 0; i < moves.size(); ++i) {
    if (moves[i] >= 0 || !in_use.Has(i)) continue;
    fresh.devices.push_back(node.spec.devices[i]);
    fresh.devices.back().unhealthy = true;
  }
  for (size_t i = 0; i < moves.size() && fresh.devices.size() < kMaxDevicesPerNode; ++i) {
    if (moves[i] >= 0 || in_use.Has(i) || !node.status.drain.devices.Has(i)) continue;
    fresh.devices.push_back(node.spec.devices[i]);
    fresh.devices.back().unhealthy = true;
  }
  if (fresh.devices.size() > listed) SortDevices(fresh, listed);
  return fresh;
}

void SortDevices(NodeSpec& spec) { SortDevices(spec, spec.devices.size()); }

std::vector<int> DeviceMoves(const NodeSpec& before, const NodeSpec& after) {
  const absl::flat_hash_map<DeviceName, int> index = IndexDevices(after);
  std::vector<int> moves;
  moves.reserve(before.devices.size());
  for (const Device& device : before.devices) {
    const auto found = index.find(DeviceName(device.kind, device.uuid));
    moves.push_back(found == index.end() ? -1 : found->second);
  }
  return moves;
}

std::vector<ImageId> ImagesAfter(const std::vector<ImageId>& before,
                                 const std::vector<ImageId>& gained,
                                 const std::vector<ImageId>& lost) {
  std::vector<ImageId> kept, after;
  std::set_difference(before.begin(), before.end(), lost.begin(), lost.end(),
                      std::back_inserter(kept));
  std::set_union(kept.begin(), kept.end(), gained.begin(), gained.end(), std::back_inserter(after));
  return after;
}

int64_t TaskRoomIfEmpty(const Node& node) {
  return node.spec.max_tasks > 0 ? node.spec.max_tasks : std::numeric_limits<int64_t>::max();
}

int64_t TaskRoom(const Node& node) { return TaskRoomWithout(node, 0); }

// An incident may refuse many jobs but counts one of them: one that was not counted yet, if
// possible.
int32_t RefusedJobs(const NodeStatus& status, JobId job) {
  if (status.refused_jobs == 0) return 1;
  const auto& before = status.refused_before;
  const bool again = std::find(before.begin(), before.end(), job) != before.end();
  return status.refused_jobs + (!again && status.refused_jobs < status.refusals ? 1 : 0);
}

NodeStatus AfterRefusal(NodeStatus status, const NodeRefused& event, Time now) {
  status.refusals = event.refusals;
  if (status.refused_jobs == 0) status.refused_before.clear();
  const int32_t jobs = RefusedJobs(status, event.job);
  if (jobs != status.refused_jobs) {
    status.refused_before.push_back(event.job);
    if (event.counts_faults) status.faults = WithFault(status.faults, now);
  }
  if (status.refused_before.size() > kMaxRefusedBefore) {
    status.refused_before.erase(status.refused_before.begin());
  }
  status.refused_jobs = jobs;
  status.last_refused = event.job;
  status.backoff_until = event.backoff_until;
  status.refusal = event.message;
  return status;
}

}  // namespace berth
