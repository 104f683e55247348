#include "core/engine/search/reservations.h"

#include <algorithm>
#include <utility>

#include "core/engine/search/device_choice.h"
#include "core/engine/search/verdict.h"
#include "core/model/transitions.h"

namespace berth {
namespace {

constexpr Duration kLateStep = absl::Seconds(10);

// Devices may be shared, or still are from an earlier configuration.
bool MayBeShared(const Node& node) { return node.shareable || !node.devices_used.shared.empty(); }

// As queues count it.
Resources RequestOfTask(const ClusterState& state, const Job& job, uint32_t task) {
  return state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources;
}

// The amounts that it takes of the node, which may no longer exist.
Resources AmountsOn(const Node* node, const ShapeEntry& shape, const DeviceSet& devices) {
  if (node == nullptr || !shape.share_varies) return shape.resources;
  return AmountsOf(shape, UseOf(*node, shape, devices));
}

// Checks only requested resources.
bool FitsWhereAsked(const Resources& use, const Resources& asked, const Resources& bound) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (asked.amount[i] > 0 && use.amount[i] > bound.amount[i]) return false;
  }
  return true;
}

bool WithinBounds(const Queue& queue, const QueueUse& use, const QueueUse& asked) {
  if (asked.running_jobs > 0 && queue.spec.max_running_jobs > 0 &&
      use.running_jobs > queue.spec.max_running_jobs) {
    return false;
  }
  return FitsWhereAsked(use.all, asked.all, queue.limit) &&
         FitsWhereAsked(use.nonpreemptible, asked.nonpreemptible, queue.deserved_bound);
}

QueueUse UseNow(const Queue& queue) {
  return {.all = queue.allocated,
          .nonpreemptible = queue.nonpreemptible,
          .running_jobs = queue.running_jobs};
}

}  // namespace

bool HasBounds(const Queue& queue) {
  return !queue.spec.limit.empty() || !queue.spec.deserved.empty() ||
         queue.spec.max_running_jobs > 0;
}

Window WindowFrom(const Job& job, Time begin) {
  const bool runs =
      job.status.state == JobState::kBinding || job.status.state == JobState::kRunning;
  return {begin, runs ? PlannedEnd(job) : begin + job.walltime};
}

QueueUse& QueueUse::operator+=(const QueueUse& other) {
  all += other.all;
  nonpreemptible += other.nonpreemptible;
  running_jobs += other.running_jobs;
  return *this;
}

QueueUse& QueueUse::operator-=(const QueueUse& other) {
  all -= other.all;
  nonpreemptible -= other.nonpreemptible;
  running_jobs -= other.running_jobs;
  return *this;
}

QueueUse UseOf(const Job& job, const Resources& request, bool starts,
               const Resources& preemptible) {
  QueueUse use{.all = request, .nonpreemptible = {}, .running_jobs = starts ? 1 : 0};
  if (!job.preemptible) use.nonpreemptible = request - preemptible;
  return use;
}

bool IsAbove(const ClusterState& state, QueueId queue, QueueId below) {
  for (QueueId id = below;; id = state.queues().At(id).spec.parent) {
    if (id == queue) return true;
    if (id == kRootQueue) return false;
  }
}

Reservations::Reservations(const ClusterState& state, const Transaction& transaction, Time now)
    : state_(state), transaction_(transaction), now_(now) {}

Window Reservations::WindowOf(const Reservation& reservation) const {
  if (reservation.start >= now_) return {reservation.start, reservation.end};
  // In steps: otherwise, while it waits for something that is slow to end, each cycle would move
  // all later reservations a little, which causes another cycle.
  const Duration late = absl::Ceil(now_ - reservation.start, kLateStep);
  return {now_, reservation.start + late + (reservation.end - reservation.start)};
}

void Reservations::Follow() {
  if (seen_ == transaction_.reservation_version()) return;
  seen_ = transaction_.reservation_version();
  indexed_ = false;
  claims_.clear();
  uses_.clear();
  ended_.clear();
}

void Reservations::Index() {
  if (indexed_) return;
  indexed_ = true;
  for (const auto& [id, reservation] : state_.reservations()) {
    const Job& job = state_.jobs().At(id);
    uses_[id] = ClaimOf(job, reservation);
    for (const Placement& place : reservation.places) {
      std::vector<Claim>& claims = claims_[place.node];
      if (claims.empty() || claims.back().job != id) {
        Claim& claim = claims.emplace_back();
        claim.job = id;
        claim.window = WindowOf(reservation);
      }
      const ShapeId shape = job.groups[GroupOf(job, place.task)].shape;
      const Node* node = state_.nodes().Find(place.node);
      const ShapeEntry& entry = state_.interner().Shape(shape);
      // If devices may be shared, amounts do not show whether one is wholly free.
      const bool picky =
          node != nullptr && (MayBeShared(*node) || !AnyDevicesDo(*node, entry.shape));
      if (picky) {
        claims.back().devices += UseOf(*node, entry, place.devices);
      }
      claims.back().amounts += AmountsOn(node, entry, place.devices);
    }
  }
}

bool Reservations::TaskGoneBy(Time at, TaskKey key, const Job& asking) const {
  const Job& job = state_.jobs().At(key.job);
  return at > now_ && key.job != asking.id &&
         (Releasing(job.tasks[key.task]) || PlannedEnd(job) <= at);
}

// Other jobs' tasks that will still run; all of this job's, because the window is for it.
Resources Reservations::RunningAt(const Node& node, const Job& job, Time at) const {
  Resources sum = node.reserved;  // starts are unknown, so ends are too
  for (TaskKey key : node.tasks) {
    if (TaskGoneBy(at, key, job)) continue;
    const Job& other = state_.jobs().At(key.job);
    const ShapeEntry& shape = state_.interner().Shape(other.groups[GroupOf(other, key.task)].shape);
    sum += AmountsOn(&node, shape, other.tasks[key.task].devices);
  }
  return sum;
}

DeviceUse Reservations::DevicesAt(const Node& node, const std::vector<Claim>& claims,
                                  const Job& job, Time at) const {
  DeviceUse use = ClaimedDevices(node);
  for (TaskKey key : node.tasks) {
    if (TaskGoneBy(at, key, job)) continue;
    const Job& other = state_.jobs().At(key.job);
    const ShapeEntry& shape = state_.interner().Shape(other.groups[GroupOf(other, key.task)].shape);
    use += UseOf(node, shape, other.tasks[key.task].devices);
  }
  for (const Claim& claim : claims) {
    if (claim.job != job.id && claim.window.Holds(at)) use += claim.devices;
  }
  return use;
}

Resources Reservations::ClaimedAt(const std::vector<Claim>& claims, const Job& job, Time at) const {
  Resources sum;
  for (const Claim& claim : claims) {
    if (claim.job != job.id && claim.window.Holds(at)) sum += claim.amounts;
  }
  return sum;
}

std::optional<JobId> Reservations::Withhold(const Node& node, const Job& job, const Window& window,
                                            Resources* free, DeviceUse* used) {
  if (!any()) return std::nullopt;
  Follow();
  Index();
  const auto found = claims_.find(node.id);
  if (found == claims_.end()) return std::nullopt;
  std::optional<JobId> first;
  for (const Claim& claim : found->second) {
    if (claim.job == job.id || !claim.window.Overlaps(window)) continue;
    if (!first.has_value()) first = claim.job;
    const Time at = std::max(claim.window.begin, window.begin);
    if (MayBeShared(node)) {
      used->Widen(DevicesAt(node, found->second, job, at));
    } else {
      *used += claim.devices;
    }
    const Resources left =
        node.capacity - RunningAt(node, job, at) - ClaimedAt(found->second, job, at);
    for (size_t i = 0; i < kMaxResourceKinds; ++i) {
      free->amount[i] = std::min(free->amount[i], std::max<int64_t>(left.amount[i], 0));
    }
  }
  if (!first.has_value()) return std::nullopt;
  for (const DeviceKindSet& kind : node.kinds) {
    (*free)[kind.kind] = std::min((*free)[kind.kind], used->FreeIn(kind.devices));
  }
  return first;
}

std::optional<JobId> Reservations::FirstOn(NodeId node, const Job& job, const Window& window) {
  if (!any()) return std::nullopt;
  Follow();
  Index();
  const auto found = claims_.find(node);
  if (found == claims_.end()) return std::nullopt;
  for (const Claim& claim : found->second) {
    if (claim.job != job.id && claim.window.Overlaps(window)) return claim.job;
  }
  return std::nullopt;
}

const Reservations::EndedUse& Reservations::EndedBy(Time at) {
  const auto [slot, fresh] = ended_.try_emplace(at);
  EndedUse& ended = slot->second;
  if (!fresh) return ended;
  for (auto it = state_.planned_ends().begin();
       it != state_.planned_ends().end() && it->first <= at; ++it) {
    const Job& job = state_.jobs().At(it->second);
    Resources held, preemptible;
    for (size_t g = 0; g < job.groups.size(); ++g) {
      const Resources& each = state_.interner().Shape(job.groups[g].shape).resources;
      const Resources here = each.Times(job.tallies[g].Occupying());
      held += here;
      if (job.groups[g].preemptible) preemptible += here;
    }
    const QueueUse use = UseOf(job, held, true, preemptible);
    for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
      ended[id] += use;
      if (id == kRootQueue) break;
    }
  }
  return ended;
}

QueueUse Reservations::ClaimOf(const Job& job, const Reservation& reservation) const {
  Resources sum;
  for (const Placement& place : reservation.places) sum += RequestOfTask(state_, job, place.task);
  return UseOf(job, sum, job.occupying == 0);
}

QueueUse Reservations::ClaimsBelow(QueueId queue, JobId except, Time at) const {
  QueueUse sum;
  for (const auto& [id, reservation] : state_.reservations()) {
    if (id == except || !WindowOf(reservation).Holds(at)) continue;
    if (!IsAbove(state_, queue, state_.jobs().At(id).queue)) continue;
    sum += uses_.at(id);
  }
  return sum;
}

std::optional<QueueBar> Reservations::Outgrows(const Job& job, const QueueUse& use,
                                               const Window& window,
                                               const std::vector<QueueUse>& ended) {
  Follow();
  Index();
  size_t level = 0;
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent, ++level) {
    const Queue& queue = state_.queues().At(id);
    const bool bounded = HasBounds(queue);
    for (auto it = state_.reservations().begin(); bounded && it != state_.reservations().end();
         ++it) {
      const Window claim = WindowOf(it->second);
      if (it->first == job.id || !claim.Overlaps(window)) continue;
      if (!IsAbove(state_, id, state_.jobs().At(it->first).queue)) continue;
      const Time at = std::max(claim.begin, window.begin);
      QueueUse then = UseNow(queue);
      if (at > window.begin) {
        const EndedUse& gone = EndedBy(at);
        if (const auto of = gone.find(id); of != gone.end()) then -= of->second;
      } else if (!ended.empty()) {
        then -= ended[level];
      }
      then += ClaimsBelow(id, job.id, at);
      then += use;
      if (!WithinBounds(queue, then, use)) return QueueBar{it->first, id};
    }
    if (id == kRootQueue) return std::nullopt;
  }
}

bool Reservations::WithinBoundsAfter(const Job& job, const QueueUse& use,
                                     const std::vector<QueueUse>& ended) const {
  size_t level = 0;
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent, ++level) {
    const Queue& queue = state_.queues().At(id);
    QueueUse then = UseNow(queue);
    then -= ended[level];
    then += use;
    if (!WithinBounds(queue, then, use)) return false;
    if (id == kRootQueue) return true;
  }
}

bool Reservations::AnyGuarantee() {
  if (any_guarantee_.has_value()) return *any_guarantee_;
  any_guarantee_ = false;
  state_.queues().ForEach(
      [&](QueueId, const Queue& queue) { *any_guarantee_ = *any_guarantee_ || queue.guarantees; });
  return *any_guarantee_;
}

// For each queue, from what it holds now. What has ended was counted whole, so of what is being
// released only tasks that would otherwise continue count.
Reservations::GoneByQueue Reservations::GoneBy(Time at, bool once_released) {
  GoneByQueue gone;
  if (at > now_) {
    for (const auto& [id, use] : EndedBy(at)) gone[id] = use.all;
  }
  if (at == now_ && !once_released) return gone;
  for (TaskKey key : state_.releasing()) {
    const Job& job = state_.jobs().At(key.job);
    const bool counted = at > now_ && PlannedEnd(job) <= at;
    if (counted || job.tasks[key.task].moves) continue;
    for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
      gone[id] += RequestOfTask(state_, job, key.task);
      if (id == kRootQueue) break;
    }
  }
  return gone;
}

// Of other jobs: use that returns.
void Reservations::AddClaims(const Job& job, Time at, GoneByQueue* gone) const {
  for (const auto& [id, reservation] : state_.reservations()) {
    if (id == job.id || !WindowOf(reservation).Holds(at)) continue;
    for (QueueId up = state_.jobs().At(id).queue;; up = state_.queues().At(up).spec.parent) {
      (*gone)[up] -= uses_.at(id).all;
      if (up == kRootQueue) break;
    }
  }
}

std::optional<QueueBar> Reservations::TakesGuarantee(const Job& job, const Resources& request,
                                                     const Window& window, bool once_released,
                                                     const GoneByQueue* gone_at_begin) {
  if (!AnyGuarantee()) return std::nullopt;
  Follow();
  Index();
  std::map<Time, JobId> moments;  // and the job of the reservation
  for (const auto& [id, reservation] : state_.reservations()) {
    const Window claim = WindowOf(reservation);
    if (id != job.id && claim.Overlaps(window)) {
      moments.try_emplace(std::max(claim.begin, window.begin), id);
    }
  }
  if (gone_at_begin != nullptr) moments.try_emplace(window.begin, job.id);
  for (const auto& [at, whose] : moments) {
    const bool given = gone_at_begin != nullptr && at == window.begin;
    GoneByQueue gone = given ? *gone_at_begin : GoneBy(at, once_released);
    AddClaims(job, at, &gone);
    const auto verdict = GuaranteeVerdictAfter(state_, job.queue, request, [&](QueueId id) {
      const auto found = gone.find(id);
      return found == gone.end() ? Resources{} : found->second;
    });
    if (verdict.has_value()) return QueueBar{whose, verdict->queue};
  }
  return std::nullopt;
}

void Reservations::Started(const Job& job, const QueueUse& use, Time end) {
  Follow();
  for (auto& [at, ended] : ended_) {
    if (end > at) continue;
    for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
      ended[id] += use;
      if (id == kRootQueue) break;
    }
  }
}

}  // namespace berth
