#include "core/engine/victims/put_back.h"

#include "core/engine/engine_cache.h"
#include "core/engine/search/job_affinity.h"
#include "core/engine/search/reservations.h"

namespace berth {
namespace {

// What one task of the unit takes again; devices are looked at one by one.
Resources Kept(const ShapeEntry& shape, const VictimUnit& unit) {
  Resources amounts = shape.resources;
  if (unit.frozen) amounts -= GivenBack(shape, /*lends=*/false);
  return amounts;
}

}  // namespace

bool PutBack::Try(const VictimUnit& unit) {
  const Job& job = state_.jobs().At(unit.job);
  const Resources request = RequestOf(state_, unit);
  if (!room_.Fits(job.queue, request) || !Fits(job, unit) || KeepsAway(job, unit)) {
    return false;
  }
  room_.Take(job.queue, request);
  for (uint32_t task : unit.tasks) Take(job, unit, task);
  return true;
}

bool PutBack::KeepsAway(const Job& job, const VictimUnit& unit) const {
  if (!state_.affinity().any()) return false;
  return KeepApart(state_, CacheOf(cycle_.transaction().editor()).trees, job_, job, unit.tasks);
}

// Devices are compared one by one; other amounts of tasks on one node are added up.
bool PutBack::Fits(const Job& job, const VictimUnit& unit) const {
  absl::flat_hash_map<NodeId, Taken> own;
  for (uint32_t index : unit.tasks) {
    const Task& task = job.tasks[index];
    const Node& node = state_.nodes().At(task.node);
    const ShapeEntry& shape = ShapeOf(job, index);
    Taken& mine = own[task.node];
    DeviceUse used = TakenDevices(node) + mine.devices;
    Resources needed = mine.amounts += Kept(shape, unit);
    if (const auto taken = taken_.find(task.node); taken != taken_.end()) {
      needed += taken->second.amounts;
      used += taken->second.devices;
    }
    const DeviceUse use = UseOf(node, shape, DevicesHeld(task));
    mine.devices += use;
    for (const DeviceKindSet& kind : node.kinds) needed[kind.kind] = 0;
    Resources left = node.capacity - node.allocated;
    left -= node.reserved;
    if (!HasRoom(node, used, use)) return false;
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      if (needed.amount[i] > 0 && needed.amount[i] > left.amount[i]) return false;
    }
  }
  return true;
}

void PutBack::Take(const Job& job, const VictimUnit& unit, uint32_t index) {
  const Task& task = job.tasks[index];
  Taken& taken = taken_[task.node];
  const ShapeEntry& shape = ShapeOf(job, index);
  taken.amounts += Kept(shape, unit);
  taken.devices += UseOf(state_.nodes().At(task.node), shape, DevicesHeld(task));
}

}  // namespace berth
