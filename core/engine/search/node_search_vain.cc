// NodeSearch: requests that find no place, without a search.
#include <algorithm>

#include "core/engine/search/neighbours.h"
#include "core/engine/search/node_search.h"

namespace berth {

bool NodeSearch::OnlyAmountsMatter(const Seeker& seeker) const {
  const Job& job = seeker.job;
  const Group& group = job.groups[seeker.group];
  const JobStatus& status = job.status;
  if (!amounts_decide_ || state_.affinity().any() || state_.shareable_nodes() > 0) return false;
  if (!status.refusals.nodes.empty() || !status.avoided.empty() || job.occupying > 0) return false;
  if (seeker.last != NodeId{} || group.spread.Any() || HasNearOrApartGroups(job)) return false;
  if (state_.reservations().contains(job.id)) return false;
  const ShapeEntry& entry = state_.interner().Shape(group.shape);
  const auto links = [](const DeviceRequest& one) { return one.AsksForLinks(); };
  const std::vector<DeviceRequest>& devices = entry.shape.devices;
  return devices.size() <= 1 && entry.share == 0 && !entry.resources.IsZero() &&
         std::none_of(devices.begin(), devices.end(), links) &&
         StrategyFor(seeker) == Strategy::kBinpack;
}

VainSearches::Request NodeSearch::RequestOf(const Seeker& seeker) {
  const ShapeId shape = seeker.job.groups[seeker.group].shape;
  return {.fixed = &marks_.TestOf(policies_, shape, state_.interner()),
          .least = state_.interner().Shape(shape).least,
          .window = seeker.window,
          .ignore_reservations = seeker.ignore_reservations};
}

// A smaller request found no place. Has the effects that a search would have.
bool NodeSearch::IsVain(const Seeker& seeker, uint64_t* work) {
  const uint64_t version = reservations_->version();
  if (!vain_.Any(version)) return false;
  const VainSearches::Request request = RequestOf(seeker);
  const VainSearches::Visited* visited = vain_.Find(version, request);
  if (visited == nullptr) return false;
  const ShapeEntry& entry = state_.interner().Shape(seeker.job.groups[seeker.group].shape);
  const int64_t devices = entry.DevicesFor(1), cpu_millis = entry.resources[kCpu];
  for (const FreeIndex::Key& key : *visited) {
    const bool visits =
        FreeIndex::Devices(key.room) >= devices && FreeIndex::CpuMillis(key.room) >= cpu_millis;
    *work += visits ? 1 : 0;
  }
  if (request.ignore_reservations || !reservations_->any()) return true;
  for (auto key = visited->rbegin(); key != visited->rend(); ++key) {
    if (!request.least.FitsIn(state_.free().FreeOf(key->node))) continue;
    const auto kept_for = reservations_->FirstOn(key->node, seeker.job, seeker.window);
    if (!kept_for.has_value()) continue;
    blocked_by_ = kept_for;
    break;
  }
  return true;
}

bool NodeSearch::NoneHasRoom(ShapeId shape) const {
  const ShapeEntry& entry = state_.interner().Shape(shape);
  bool room = false;
  state_.free().ForEach(static_cast<int>(entry.DevicesFor(1)), entry.resources[kCpu],
                        [&](NodeId, const Resources& free) {
                          room = entry.least.FitsIn(free);
                          return !room;
                        });
  return !room;
}

}  // namespace berth
