#include "core/engine/earliest_start.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/engine/leaving.h"
#include "core/model/transitions.h"
#include "core/topology/domain_bound.h"

namespace berth {
namespace {

// A task that is being released, or ends.
void Go(Cycle& cycle, TaskKey key) {
  const Task& task = cycle.state().jobs().At(key.job).tasks[key.task];
  if (task.state == TaskState::kReleasing) return cycle.transaction().LetGo(key);
  cycle.transaction().Vanish(key.job, {&key.task, 1});
}

class Search {
 public:
  Search(Cycle& cycle, Placer& placer, const Job& job)
      : cycle_(cycle),
        state_(cycle.state()),
        placer_(placer),
        job_(job),
        needs_(NeedsOf(job)),
        request_(RequestOf(state_, job, needs_)),
        bound_(cycle, job, needs_, placer.insists()) {
    for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
      chain_.push_back(id);
      if (id == kRootQueue) break;
    }
  }

  std::optional<Reservation> Run(Time before);

 private:
  struct Shape {
    ShapeId id;
    int64_t needed = 0;
    int64_t fit = 0;  // on all nodes, each counted up to `needed`
  };
  // A node from which something went.
  struct Left {
    Resources allocated;
    DeviceSet used;
    std::vector<TaskKey> gone;
    absl::InlinedVector<int64_t, 2> fit;  // by shape
  };

  bool Begin();
  void CountWhatFitsNow();
  void ReleasingGo();
  void JobEnds(const Job& job);
  void TaskGoes(const Job& job, uint32_t task);
  void QueuesLose(const Job& job, const QueueUse& use);
  int64_t FitIn(const Shape& shape, const Node& node, const Resources& allocated,
                const DeviceSet& used) const;
  bool EnoughFits() const;
  // The job's gang placed in that window; nullopt if it does not fit.
  std::optional<std::vector<Placement>> TryFrom(const Window& window);
  std::vector<Time> ClaimEnds() const;

  Cycle& cycle_;
  const ClusterState& state_;
  Placer& placer_;
  const Job& job_;
  const JobNeeds needs_;
  const Resources request_;
  std::vector<QueueId> chain_;         // the job's queue and those above
  std::vector<QueueUse> ended_;        // likewise: what has gone
  Reservations::GoneByQueue gone_of_;  // of all queues; kept where some have guarantees
  std::vector<Shape> shapes_;
  DomainBound bound_;                       // of topology
  absl::flat_hash_map<NodeId, Left> left_;  // looked up, and walked only into an ordered list
  int trials_ = 0;
};

bool Search::Begin() {
  if (!needs_.gang || needs_.groups.empty()) return false;
  for (const GroupNeed& need : needs_.groups) {
    const ShapeId id = job_.groups[need.group].shape;
    auto found = std::find_if(shapes_.begin(), shapes_.end(),
                              [&](const Shape& shape) { return shape.id == id; });
    if (found == shapes_.end()) found = shapes_.insert(shapes_.end(), Shape{.id = id});
    found->needed += need.count;
  }
  CountWhatFitsNow();
  return true;
}

void Search::CountWhatFitsNow() {
  for (Shape& shape : shapes_) {
    const ShapeEntry& entry = state_.interner().Shape(shape.id);
    state_.free().ForEach(
        entry.device_count, entry.resources[kCpu], [&](NodeId id, const Resources& free) {
          cycle_.CountWork(1);
          const Node& node = state_.nodes().At(id);
          shape.fit +=
              cycle_.search().FitsIn(shape.id, {node, free, TakenDevices(node)}, shape.needed);
          return true;
        });
  }
}

int64_t Search::FitIn(const Shape& shape, const Node& node, const Resources& allocated,
                      const DeviceSet& used) const {
  Resources free = node.capacity - allocated - node.reserved;
  for (int64_t& amount : free.amount) amount = std::max<int64_t>(amount, 0);
  DeviceSet taken = used;
  taken |= node.devices_reserved;
  for (const DeviceKindSet& kind : node.kinds) {
    DeviceSet unused = kind.devices;
    unused -= taken;
    free[kind.kind] = unused.Count();
  }
  return cycle_.search().FitsIn(shape.id, {node, free, taken}, shape.needed);
}

void Search::TaskGoes(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  cycle_.CountWork(1);
  if (!state_.free().Has(task.node)) return;
  const Node& node = state_.nodes().At(task.node);
  const auto [slot, fresh] = left_.try_emplace(task.node);
  Left& left = slot->second;
  if (fresh) {
    left.allocated = node.allocated;
    left.used = node.devices_used;
    for (const Shape& shape : shapes_) {
      left.fit.push_back(FitIn(shape, node, left.allocated, left.used));
    }
  }
  left.allocated -= state_.interner().Shape(job.groups[GroupOf(job, index)].shape).resources;
  left.used -= task.devices;
  left.gone.push_back({job.id, index});
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const int64_t fit = FitIn(shapes_[i], node, left.allocated, left.used);
    shapes_[i].fit += fit - std::exchange(left.fit[i], fit);
    bound_.Set(task.node, shapes_[i].id, fit);
  }
}

void Search::QueuesLose(const Job& job, const QueueUse& use) {
  for (size_t level = 0; level < chain_.size(); ++level) {
    if (IsAbove(state_, chain_[level], job.queue)) ended_[level] += use;
  }
  if (!cycle_.reservations().AnyGuarantee()) return;
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
    gone_of_[id] += use.all;
    if (id == kRootQueue) return;
  }
}

// But for the job's own tasks: one that is let go waits, and would be placed itself.
void Search::ReleasingGo() {
  for (const FreeIndex::Key& at : state_.free().soon()) {
    for (TaskKey key : state_.nodes().At(at.node).tasks) {
      const Job& job = state_.jobs().At(key.job);
      const bool goes = job.tasks[key.task].state == TaskState::kReleasing;
      if (goes && key.job != job_.id) TaskGoes(job, key.task);
    }
  }
  ended_ = LeavingOfQueues(state_, job_.queue);
  if (!cycle_.reservations().AnyGuarantee()) return;
  state_.queues().ForEach([&](QueueId id, const Queue& queue) { gone_of_[id] = queue.leaving; });
}

void Search::JobEnds(const Job& job) {
  if (job.id == job_.id) return;
  Resources held;
  bool any = false;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Occupies(task.state) || task.state == TaskState::kReleasing) continue;
    any = true;
    TaskGoes(job, i);
    held += state_.interner().Shape(job.groups[GroupOf(job, i)].shape).resources;
  }
  if (any) QueuesLose(job, UseOf(job, held, true));
}

bool Search::EnoughFits() const {
  return bound_.Enough() && std::all_of(shapes_.begin(), shapes_.end(), [](const Shape& shape) {
           return shape.fit >= shape.needed;
         });
}

std::optional<std::vector<Placement>> Search::TryFrom(const Window& window) {
  if (!EnoughFits() || window.end <= window.begin) return std::nullopt;
  const QueueUse use = UseOf(job_, request_, job_.occupying == 0);
  Reservations& reservations = cycle_.reservations();
  if (!reservations.WithinBoundsAfter(job_, use, ended_)) return std::nullopt;
  if (reservations.Outgrows(job_, use, window, ended_).has_value()) return std::nullopt;
  if (reservations.TakesGuarantee(job_, request_, window, /*once_released=*/true, &gone_of_)
          .has_value()) {
    return std::nullopt;
  }
  ++trials_;
  Transaction& transaction = cycle_.transaction();
  const Transaction::Mark mark = transaction.mark();
  std::vector<TaskKey> gone;
  for (const auto& [node, left] : left_) {
    const bool helps =
        std::any_of(left.fit.begin(), left.fit.end(), [](int64_t n) { return n > 0; });
    if (helps && bound_.Useful(node)) gone.insert(gone.end(), left.gone.begin(), left.gone.end());
  }
  std::sort(gone.begin(), gone.end());
  for (TaskKey key : gone) Go(cycle_, key);
  cycle_.CountWork(gone.size());
  std::optional<std::vector<Placement>> places;
  if (placer_.PlaceAll(job_, needs_, window) == TasksIn(needs_)) places = transaction.placed();
  transaction.RollbackTo(mark);
  return places;
}

// Reservations of others end as well; the places are free again then.
std::vector<Time> Search::ClaimEnds() const {
  std::vector<Time> ends;
  for (const auto& [id, reservation] : state_.reservations()) {
    const Time end = cycle_.reservations().WindowOf(reservation).end;
    if (id != job_.id && end != absl::InfiniteFuture()) ends.push_back(end);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

std::optional<Reservation> Search::Run(Time before) {
  if (!Begin()) return std::nullopt;
  ReleasingGo();
  const std::vector<Time> claim_ends = ClaimEnds();
  auto claim = claim_ends.begin();
  std::pair<Time, JobId> ended(absl::InfinitePast(), JobId{});  // trials move what iterators see
  for (Time at = cycle_.now(); at < before && trials_ < kMaxPlacingTrials;) {
    auto job = state_.planned_ends().upper_bound(ended);
    for (; job != state_.planned_ends().end() && job->first <= at; ++job) {
      JobEnds(state_.jobs().At(job->second));
      ended = *job;
    }
    const Time next = job == state_.planned_ends().end() ? absl::InfiniteFuture() : job->first;
    const Window window = WindowFrom(job_, at);
    if (auto places = TryFrom(window); places.has_value()) {
      return Reservation{.start = at, .end = window.end, .places = *std::move(places)};
    }
    claim = std::upper_bound(claim, claim_ends.end(), at);
    at = claim == claim_ends.end() ? next : std::min(next, *claim);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reservation> EarliestStart(Cycle& cycle, Placer& placer, const Job& job,
                                         Time before) {
  return Search(cycle, placer, job).Run(before);
}

bool StillPossible(Cycle& cycle, Placer& placer, const Job& job, const Reservation& reservation) {
  const ClusterState& state = cycle.state();
  const Window window = cycle.reservations().WindowOf(reservation);
  std::vector<TaskKey> gone;
  for (const Placement& place : reservation.places) {
    const Node* node = state.nodes().Find(place.node);
    if (node == nullptr) return false;
    for (TaskKey key : node->tasks) {
      const Job& other = state.jobs().At(key.job);
      const bool goes =
          other.tasks[key.task].state == TaskState::kReleasing || PlannedEnd(other) <= window.begin;
      if (goes && key.job != job.id) gone.push_back(key);
    }
  }
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  Transaction& transaction = cycle.transaction();
  const Transaction::Mark mark = transaction.mark();
  for (TaskKey key : gone) Go(cycle, key);
  const bool possible = placer.PlaceOn(job, reservation.places, window);
  transaction.RollbackTo(mark);
  cycle.CountWork(gone.size() + reservation.places.size());
  return possible;
}

}  // namespace berth
