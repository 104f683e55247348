#include "core/engine/place/earliest_start.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/inlined_vector.h"
#include "core/engine/place/leaving.h"
#include "core/model/task_room.h"
#include "core/model/transitions.h"
#include "core/topology/domain_bound.h"

namespace berth {
namespace {

// The node's tasks that are gone by then, except those of the job itself.
void AddGoneBy(Time at, const ClusterState& state, NodeId node, JobId own,
               std::vector<TaskKey>* gone) {
  for (TaskKey key : state.nodes().At(node).tasks) {
    const Job& other = state.jobs().At(key.job);
    const bool goes =
        other.tasks[key.task].state == TaskState::kReleasing || PlannedEnd(other) <= at;
    if (goes && key.job != own) gone->push_back(key);
  }
}

class StartSearch {
 public:
  StartSearch(Cycle& cycle, Placer& placer, const Job& job, JobNeeds needs)
      : cycle_(cycle),
        state_(cycle.state()),
        placer_(placer),
        job_(job),
        needs_(std::move(needs)),
        request_(RequestOf(state_, job, needs_)),
        bound_(cycle, job, needs_, placer.hardens()) {
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
  // A node from which something was released.
  struct Left {
    NodeId node;
    Resources free;  // amounts; negative if others wait for what is being released
    DeviceSet well;
    DeviceUse used;
    DeviceUse kept;                       // reserved for others
    int64_t gone = 0;                     // tasks that are gone
    absl::InlinedVector<int64_t, 2> fit;  // by shape
  };

  using Ends = absl::btree_set<std::pair<Time, JobId>>;

  bool Begin();
  void CountWhatFitsNow();
  void ReleasingGo();
  void JobEnds(const Job& job);
  void TaskGoes(const Job& job, uint32_t task);
  void QueuesLose(const Job& job, const QueueUse& use);
  Left* LeftOf(NodeId node);
  int64_t FitIn(const Shape& shape, const Left& left) const;
  bool EnoughFits() const;
  void FetchAhead(Ends::const_iterator job);
  // The job's gang placed in that window; nullopt if it does not fit.
  std::optional<std::vector<Placement>> TryFrom(const Window& window);
  std::vector<Time> ClaimEnds() const;

  Cycle& cycle_;
  const ClusterState& state_;
  Placer& placer_;
  const Job& job_;
  const JobNeeds needs_;
  const Resources request_;
  std::vector<QueueId> chain_;         // the job's queue and its ancestors
  std::vector<QueueUse> ended_;        // likewise: what has ended, if bounds need it
  Reservations::GoneByQueue gone_of_;  // for all queues; counted if some have guarantees
  std::vector<Shape> shapes_;
  DomainBound bound_;           // of topology
  std::vector<Left> left_;      // in the order in which something was released
  std::vector<uint32_t> slot_;  // by node id: its index in left_, or one of these
  static constexpr uint32_t kNew = UINT32_MAX, kTakesNone = UINT32_MAX - 1;
  int trials_ = 0;
  int64_t ends_seen_ = 0;
};

bool StartSearch::Begin() {
  if (!needs_.gang || needs_.groups.empty()) return false;
  for (const GroupNeed& need : needs_.groups) {
    const ShapeId id = job_.groups[need.group].shape;
    auto found = std::find_if(shapes_.begin(), shapes_.end(),
                              [&](const Shape& shape) { return shape.id == id; });
    if (found == shapes_.end()) found = shapes_.insert(shapes_.end(), Shape{.id = id});
    found->needed += need.count;
  }
  slot_.assign(state_.next_node_id().value, kNew);
  left_.reserve(state_.nodes().size());
  CountWhatFitsNow();
  return true;
}

void StartSearch::CountWhatFitsNow() {
  for (Shape& shape : shapes_) {
    const ShapeEntry& entry = state_.interner().Shape(shape.id);
    state_.free().ForEach(
        static_cast<int>(entry.DevicesFor(1)), entry.resources[kCpu],
        [&](NodeId id, const Resources& free) {
          cycle_.CountWork(1);
          const Node& node = state_.nodes().At(id);
          const int64_t most = std::min(shape.needed, TaskRoom(node));
          shape.fit += cycle_.search().FitsIn(shape.id, {node, free, TakenDevices(node)}, most);
          return true;
        });
  }
}

// Null if the node takes no tasks.
StartSearch::Left* StartSearch::LeftOf(NodeId id) {
  uint32_t& slot = slot_[id.value];
  if (slot < left_.size()) return &left_[slot];
  const Node& node = state_.nodes().At(id);
  if (slot == kNew && !MayHaveTasks(state_, node)) slot = kTakesNone;
  if (slot == kTakesNone) return nullptr;
  slot = static_cast<uint32_t>(left_.size());
  Left& left = left_.emplace_back();
  left.node = id;
  left.free = node.capacity - node.allocated - node.reserved;
  left.well = node.healthy;
  left.used = node.devices_used;
  left.kept = ClaimedDevices(node);
  for (const Shape& shape : shapes_) left.fit.push_back(FitIn(shape, left));
  return &left;
}

// Usually devices are missing, so this avoids reading the node itself, which is far away in memory.
int64_t StartSearch::FitIn(const Shape& shape, const Left& left) const {
  const DeviceUse taken = left.used + left.kept;
  const int64_t some_left = Difference(left.well, taken.Full()).Count();
  if (some_left < state_.interner().Shape(shape.id).DevicesFor(1)) return 0;
  const Node& node = state_.nodes().At(left.node);
  Resources free = left.free;
  for (int64_t& amount : free.amount) amount = std::max<int64_t>(amount, 0);
  for (const DeviceKindSet& kind : node.kinds) free[kind.kind] = taken.FreeIn(kind.devices);
  const int64_t most = std::min(shape.needed, TaskRoomWithout(node, left.gone));
  return cycle_.search().FitsIn(shape.id, {node, free, taken}, most);
}

void StartSearch::TaskGoes(const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  cycle_.CountWork(1);
  Left* left = LeftOf(task.node);
  if (left == nullptr) return;
  const ShapeEntry& shape = state_.interner().Shape(job.groups[GroupOf(job, index)].shape);
  left->free += shape.resources;
  ++left->gone;
  left->used -= UseOf(state_.nodes().At(task.node), shape, DevicesHeld(task));
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const int64_t fit = FitIn(shapes_[i], *left);
    const int64_t before = std::exchange(left->fit[i], fit);
    if (fit == before) continue;
    shapes_[i].fit += fit - before;
    bound_.Set(task.node, shapes_[i].id, fit);
  }
}

void StartSearch::QueuesLose(const Job& job, const QueueUse& use) {
  for (size_t level = 0; level < chain_.size(); ++level) {
    if (!HasBounds(state_.queues().At(chain_[level]))) continue;
    if (IsAbove(state_, chain_[level], job.queue)) ended_[level] += use;
  }
  if (!cycle_.reservations().AnyGuarantee()) return;
  for (QueueId id = job.queue;; id = state_.queues().At(id).spec.parent) {
    gone_of_[id] += use.all;
    if (id == kRootQueue) return;
  }
}

// Except the job's own tasks: a released task would be pending, and would be placed itself.
void StartSearch::ReleasingGo() {
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

void StartSearch::JobEnds(const Job& job) {
  if (job.id == job_.id) return;
  Resources held, preemptible;
  bool any = false;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Occupies(task.state) || task.state == TaskState::kReleasing) continue;
    any = true;
    TaskGoes(job, i);
    const Group& group = job.groups[GroupOf(job, i)];
    const Resources& each = state_.interner().Shape(group.shape).resources;
    held += each;
    if (group.preemptible) preemptible += each;
  }
  if (any) QueuesLose(job, UseOf(job, held, true, preemptible));
}

bool StartSearch::EnoughFits() const {
  return bound_.Enough() && std::all_of(shapes_.begin(), shapes_.end(), [](const Shape& shape) {
           return shape.fit >= shape.needed;
         });
}

std::optional<std::vector<Placement>> StartSearch::TryFrom(const Window& window) {
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
  for (const Left& left : left_) {
    const bool helps =
        std::any_of(left.fit.begin(), left.fit.end(), [](int64_t n) { return n > 0; });
    if (helps && bound_.Useful(left.node)) {
      AddGoneBy(window.begin, state_, left.node, job_.id, &gone);
    }
  }
  std::sort(gone.begin(), gone.end());
  cycle_.transaction().Lift(gone);
  cycle_.CountWork(gone.size());
  std::optional<std::vector<Placement>> places;
  if (placer_.PlaceAll(job_, needs_, window) == TasksIn(needs_)) places = transaction.placed();
  transaction.RollbackTo(mark);
  return places;
}

// Reservations of other jobs also end; their places are free again then.
std::vector<Time> StartSearch::ClaimEnds() const {
  std::vector<Time> ends;
  for (const auto& [id, reservation] : state_.reservations()) {
    const Time end = cycle_.reservations().WindowOf(reservation).end;
    if (id != job_.id && end != absl::InfiniteFuture()) ends.push_back(end);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

// Jobs are far apart in memory, and so are the tasks that they release. Prefetches the jobs that
// end next, several at a time, and the nodes of the jobs that were prefetched last time.
void StartSearch::FetchAhead(Ends::const_iterator job) {
  constexpr int kAtOnce = 16;
  if (ends_seen_++ % kAtOnce != 0) return;
  for (int i = 0; i < 2 * kAtOnce && job != state_.planned_ends().end(); ++i, ++job) {
    if (i >= kAtOnce) {
      cycle_.transaction().editor().Prefetch(job->second);
      continue;
    }
    const NodeId node = state_.jobs().At(job->second).tasks[0].node;
    const uint32_t slot = slot_[node.value];
    if (slot == kNew) state_.nodes().Prefetch(node, sizeof(Node));
    if (slot >= left_.size()) continue;
    const auto* left = reinterpret_cast<const char*>(&left_[slot]);
    for (size_t at = 0; at < sizeof(Left); at += 64) __builtin_prefetch(left + at, 1);
  }
}

std::optional<Reservation> StartSearch::Run(Time before) {
  if (!Begin()) return std::nullopt;
  ReleasingGo();
  const std::vector<Time> claim_ends = ClaimEnds();
  auto claim = claim_ends.begin();
  const Ends& ends = state_.planned_ends();
  std::pair<Time, JobId> ended(absl::InfinitePast(), JobId{});
  auto job = ends.begin();
  for (Time at = cycle_.now(); at < before && trials_ < kMaxPlacingTrials;) {
    for (; job != ends.end() && job->first <= at; ++job) {
      FetchAhead(job);
      JobEnds(state_.jobs().At(job->second));
      ended = *job;
    }
    const Time next = job == ends.end() ? absl::InfiniteFuture() : job->first;
    const Window window = WindowFrom(job_, at);
    const int trials = trials_;
    if (auto places = TryFrom(window); places.has_value()) {
      return Reservation{.start = at, .end = window.end, .places = *std::move(places)};
    }
    if (trials_ > trials) job = ends.upper_bound(ended);  // a trial invalidates iterators
    claim = std::upper_bound(claim, claim_ends.end(), at);
    at = claim == claim_ends.end() ? next : std::min(next, *claim);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reservation> EarliestStart(Cycle& cycle, Placer& placer, const Job& job,
                                         Time before) {
  std::optional<Reservation> first;
  for (JobNeeds& needs : FewDivisionsOf(job)) {
    auto found = StartSearch(cycle, placer, job, std::move(needs)).Run(before);
    if (!found.has_value()) continue;
    before = found->start;
    first = std::move(found);
  }
  return first;
}

bool StillPossible(Cycle& cycle, Placer& placer, const Job& job, const Reservation& reservation) {
  const ClusterState& state = cycle.state();
  const Window window = cycle.reservations().WindowOf(reservation);
  std::vector<TaskKey> gone;
  for (const Placement& place : reservation.places) {
    if (state.nodes().Find(place.node) == nullptr) return false;
    AddGoneBy(window.begin, state, place.node, job.id, &gone);
  }
  std::sort(gone.begin(), gone.end());
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  Transaction& transaction = cycle.transaction();
  const Transaction::Mark mark = transaction.mark();
  transaction.Lift(gone);
  const bool possible = placer.PlaceOn(job, reservation.places, window);
  transaction.RollbackTo(mark);
  cycle.CountWork(gone.size() + reservation.places.size());
  return possible;
}

}  // namespace berth
