#include "core/engine/fit_count.h"

#include <algorithm>

#include "core/engine/verdict.h"

namespace berth {
namespace {

bool IsShort(const Resources& room, const Resources& request) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0 && room.amount[i] < 0) return true;
  }
  return false;
}

}  // namespace

FitCount::FitCount(Cycle& cycle, const Job& job, const JobNeeds& needs,
                   std::optional<DomainIndex> only)
    : cycle_(cycle),
      state_(cycle.state()),
      job_(job.id),
      slot_(state_.next_node_id().value, 0),
      request_(RequestOf(state_, job, needs)),
      bound_(cycle, job, needs, /*insist=*/false, only) {
  for (const GroupNeed& need : needs.groups) {
    const ShapeId id = job.groups[need.group].shape;
    const auto same = [id](const Shape& shape) { return shape.id == id; };
    const auto known = std::find_if(shapes_.begin(), shapes_.end(), same);
    if (known != shapes_.end()) {
      known->needed += need.count;
    } else {
      shapes_.push_back({.id = id, .needed = need.count});
    }
  }
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
    const Queue& queue = state_.queues().At(id);
    Level level{.queue = id, .room = queue.limit};
    level.room -= queue.allocated;
    level.room -= request_;
    level.is_short = IsShort(level.room, request_);
    if (level.is_short) ++short_levels_;
    levels_.push_back(level);
    if (id == kRootQueue) break;
  }
  limited_ = short_levels_ > 0;
  short_shapes_ = static_cast<int>(shapes_.size());
  CountFree();
  CountReleasing();
}

void FitCount::CountFree() {
  for (size_t s = 0; s < shapes_.size(); ++s) {
    const ShapeEntry& entry = state_.interner().Shape(shapes_[s].id);
    state_.free().ForEach(entry.device_count, entry.resources[kCpu],
                          [&](NodeId id, const Resources& free) {
                            cycle_.CountWork(1);
                            if (entry.resources.FitsIn(free)) Touch(id);
                            return shapes_[s].fits < shapes_[s].needed;
                          });
  }
}

void FitCount::CountReleasing() {
  for (TaskKey key : state_.releasing()) {
    if (key.job == job_) continue;  // see VictimPlan::VanishAll
    const Job& job = state_.jobs().At(key.job);
    const Task& task = job.tasks[key.task];
    if (task.moves) continue;
    const ShapeId shape = job.groups[GroupOf(job, key.task)].shape;
    const Resources& request = state_.interner().Shape(shape).resources;
    ChangeTask(task, request, 1);
    if (limited_) ChangeLevels(job.queue, request, 1);
  }
}

// Null if the node takes no tasks.
FitCount::AtNode* FitCount::Touch(NodeId id) {
  if (!state_.free().Has(id)) return nullptr;
  uint32_t& slot = slot_[id.value];
  if (slot != 0) return &touched_[slot - 1];
  const Node& node = state_.nodes().At(id);
  touched_.push_back({.id = id, .left = node.capacity, .used = TakenDevices(node), .fits = {}});
  slot = static_cast<uint32_t>(touched_.size());
  AtNode& at = touched_.back();
  at.left -= node.allocated;
  at.left -= node.reserved;
  at.fits.resize(shapes_.size());
  Recount(at);
  return &at;
}

void FitCount::Recount(AtNode& at) {
  const Node& node = state_.nodes().At(at.id);
  Resources free = at.left;
  for (const DeviceKindSet& kind : node.kinds) {
    DeviceSet unused = kind.devices;
    unused -= at.used;
    free[kind.kind] = unused.Count();
  }
  for (size_t s = 0; s < shapes_.size(); ++s) {
    Shape& shape = shapes_[s];
    const bool room = state_.interner().Shape(shape.id).resources.FitsIn(free);
    const int64_t now =
        room ? cycle_.search().FitsIn(shape.id, {node, free, at.used}, shape.needed) : 0;
    const bool was_short = shape.fits < shape.needed;
    shape.fits += now - at.fits[s];
    at.fits[s] = now;
    bound_.Set(at.id, shape.id, now);
    const bool is_short = shape.fits < shape.needed;
    short_shapes_ += (is_short ? 1 : 0) - (was_short ? 1 : 0);
  }
}

void FitCount::ChangeTask(const Task& task, const Resources& request, int sign) {
  AtNode* at = Touch(task.node);
  if (at == nullptr) return;
  // Of what is given up, others may wait for some.
  DeviceSet devices = task.devices;
  devices -= state_.nodes().At(task.node).devices_reserved;
  if (sign > 0) {
    at->left += request;
    at->used -= devices;
  } else {
    at->left -= request;
    at->used |= devices;
  }
  Recount(*at);
}

void FitCount::ChangeLevels(QueueId leaf, const Resources& request, int sign) {
  for (QueueId id = leaf;; id = state_.queues().At(id).spec.parent) {
    for (Level& level : levels_) {
      if (level.queue != id) continue;
      if (sign > 0) level.room += request;
      if (sign < 0) level.room -= request;
      const bool is_short = IsShort(level.room, request_);
      short_levels_ += (is_short ? 1 : 0) - (level.is_short ? 1 : 0);
      level.is_short = is_short;
    }
    if (id == kRootQueue) return;
  }
}

void FitCount::Change(const VictimUnit& unit, int sign) {
  const Job& job = state_.jobs().At(unit.job);
  cycle_.CountWork(1);
  for (uint32_t index : unit.tasks) {
    const ShapeId shape = job.groups[GroupOf(job, index)].shape;
    const Resources& request = state_.interner().Shape(shape).resources;
    ChangeTask(job.tasks[index], request, sign);
    if (limited_) ChangeLevels(job.queue, request, sign);
  }
}

}  // namespace berth
