#include "core/engine/place/fit_count.h"

#include <algorithm>

#include "core/engine/search/verdict.h"
#include "core/model/pauses.h"
#include "core/model/task_room.h"

namespace berth {
namespace {

bool IsShort(const Resources& room, const Resources& request) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (request.amount[i] > 0 && room.amount[i] < 0) return true;
  }
  return false;
}

}  // namespace

QueuesShort ShortOf(const ClusterState& state, const QueueBounds& bounds,
                    const Resources& request) {
  QueuesShort result = QueuesShort::kNone;
  for (const QueueBound& bound : bounds) {
    const Queue& queue = state.queues().At(bound.queue);
    const Resources held = HeldAfterRelease(queue);
    if (!IsShort(bound.most - held - request, request)) continue;
    if (IsShort(queue.limit - held - request, request)) return QueuesShort::kLimits;
    result = QueuesShort::kShares;
  }
  return result;
}

FitCount::FitCount(Cycle& cycle, const Job& job, const JobNeeds& needs, const QueueBounds& bounds,
                   std::optional<DomainIndex> only)
    : cycle_(cycle),
      state_(cycle.state()),
      request_(RequestOf(state_, job, needs)),
      bound_(cycle, job, needs, /*harden=*/false, only) {
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
  for (const QueueBound& bound : bounds) {
    const Queue& queue = state_.queues().At(bound.queue);
    Level level{.queue = bound.queue,
                .room = bound.most - HeldAfterRelease(queue),
                .below_limit = queue.limit - bound.most};
    level.room -= request_;
    level.is_short = IsShort(level.room, request_);
    if (level.is_short) ++short_levels_;
    levels_.push_back(level);
  }
  limited_ = short_levels_ > 0;
  short_shapes_ = static_cast<int>(shapes_.size());
  CountFree();
  CountReleased(/*all=*/bound_.any());  // the bound decides which of them help
  LeaveOutOwn(job);
}

bool FitCount::OnlySharesShort() const {
  if (short_shapes_ > 0 || short_levels_ == 0 || !bound_.Enough()) return false;
  return std::none_of(levels_.begin(), levels_.end(), [this](const Level& level) {
    return IsShort(level.room + level.below_limit, request_);
  });
}

void FitCount::CountFree() {
  for (Shape& shape : shapes_) {
    cycle_.search().ForEachWithRoom(shape.id, [&](NodeId id) {
      if (shape.fits >= shape.needed) return false;
      cycle_.CountWork(1);
      Touch(id);
      return true;
    });
  }
}

void FitCount::CountReleased(bool all) {
  for (Shape& shape : shapes_) {
    cycle_.search().ForEachOnceReleased(shape.id, [&](NodeId id) {
      if (!all && shape.fits >= shape.needed) return false;
      cycle_.CountWork(1);
      Touch(id);
      return true;
    });
  }
}

void FitCount::CountAllReleased() { CountReleased(/*all=*/true); }

void FitCount::LeaveOutOwn(const Job& job) {
  if (TallyOf(job).In(TaskState::kReleasing) == 0) return;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state != TaskState::kReleasing) continue;
    const ShapeId shape = job.groups[GroupOf(job, i)].shape;
    ChangeTask(job.tasks[i], state_.interner().Shape(shape), -1);
  }
}

std::vector<NodeId> FitCount::RoomOnceReleased() const {
  std::vector<NodeId> nodes;
  for (const AtNode& at : touched_) {
    const bool room = std::any_of(at.fits.begin(), at.fits.end(), [](int64_t n) { return n > 0; });
    if (room && AnyLeaves(state_.nodes().At(at.id))) nodes.push_back(at.id);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// Null if the node takes no tasks.
FitCount::AtNode* FitCount::Touch(NodeId id) {
  if (!MayHaveTasks(state_, state_.nodes().At(id))) return nullptr;
  const auto [slot, fresh] = slots_.try_emplace(id, static_cast<uint32_t>(touched_.size()));
  if (!fresh) return &touched_[slot->second];
  const Node& node = state_.nodes().At(id);
  touched_.push_back({.id = id,
                      .left = node.capacity,
                      .used = TakenAfterRelease(node),
                      .gone = node.leaving_tasks,
                      .fits = {}});
  AtNode& at = touched_.back();
  at.left -= node.allocated;
  at.left += node.leaving;
  at.left -= node.reserved;
  at.fits.resize(shapes_.size());
  Recount(at);
  return &at;
}

void FitCount::Recount(AtNode& at) {
  const Node& node = state_.nodes().At(at.id);
  Resources free = at.left;
  for (const DeviceKindSet& kind : node.kinds) {
    free[kind.kind] = at.used.FreeIn(kind.devices);
  }
  const int64_t task_room = TaskRoomWithout(node, at.gone);
  for (size_t s = 0; s < shapes_.size(); ++s) {
    Shape& shape = shapes_[s];
    const bool room = state_.interner().Shape(shape.id).least.FitsIn(free);
    const int64_t most = std::min(shape.needed, task_room);
    const int64_t now = room ? cycle_.search().FitsIn(shape.id, {node, free, at.used}, most) : 0;
    const bool was_short = shape.fits < shape.needed;
    shape.fits += now - at.fits[s];
    at.fits[s] = now;
    bound_.Set(at.id, shape.id, now);
    const bool is_short = shape.fits < shape.needed;
    short_shapes_ += (is_short ? 1 : 0) - (was_short ? 1 : 0);
  }
}

void FitCount::ChangeTask(const Task& task, const ShapeEntry& shape, int sign) {
  AtNode* at = Touch(task.node);
  if (at == nullptr) return;
  const Node& node = state_.nodes().At(task.node);
  // Others may wait for some of what is released.
  DeviceUse use = UseOf(node, shape, DevicesHeld(task));
  use.whole -= ClaimedDevices(node).whole;
  const Resources freed = FreedBy(node, shape, task);
  at->gone += sign;
  if (sign > 0) {
    at->left += freed;
    at->used -= use;
  } else {
    at->left -= freed;
    at->used += use;
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

void FitCount::Change(JobId id, absl::Span<const uint32_t> tasks, int sign) {
  const Job& job = state_.jobs().At(id);
  cycle_.CountWork(1);
  for (uint32_t index : tasks) {
    const ShapeId shape = job.groups[GroupOf(job, index)].shape;
    const ShapeEntry& entry = state_.interner().Shape(shape);
    ChangeTask(job.tasks[index], entry, sign);
    if (limited_) ChangeLevels(job.queue, entry.resources, sign);
  }
}

}  // namespace berth
