#include "core/engine/place/nomination_stage.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/engine/place/fit_count.h"
#include "core/engine/place/leaving.h"
#include "core/engine/search/verdict.h"
#include "core/model/pauses.h"
#include "core/model/task_room.h"
#include "core/model/transitions.h"
#include "core/topology/domain_placer.h"
#include "core/topology/scope.h"

namespace berth {
namespace {

enum class Outlook : uint8_t { kFree, kLater, kNever };

bool Negative(const Resources& amounts, const Resources& asked) {
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    if (asked.amount[i] > 0 && amounts.amount[i] < 0) return true;
  }
  return false;
}

// A nominated place: free now, free once what is being released there is gone, or not even then.
Outlook OutlookOf(const ClusterState& state, const Job& job, uint32_t index) {
  const Task& task = job.tasks[index];
  const Node* node = state.nodes().Find(task.node);
  if (node == nullptr || !MayHaveTasks(state, *node)) return Outlook::kNever;
  // The task itself counts among those that will arrive.
  if (TaskRoomWithout(*node, node->leaving_tasks + 1) == 0) return Outlook::kNever;
  DeviceSet unhealthy = task.devices;
  unhealthy -= node->healthy;
  if (!unhealthy.Empty()) return Outlook::kNever;
  const ShapeEntry& shape = state.interner().Shape(job.groups[GroupOf(job, index)].shape);
  const DeviceUse use = UseOf(*node, shape, task.devices);
  DeviceUse others = node->devices_reserved - use;  // other jobs nominated here
  others.whole |= node->awaited;
  // Devices are individual, and one that others use may be unhealthy: amounts do not show that.
  const auto fits = [&](const Resources& allocated, const DeviceUse& used) {
    Resources left = node->capacity - allocated - node->reserved;
    for (const Device& device : node->spec.devices) {
      left[*state.interner().FindKind(device.kind)] = 0;
    }
    return HasRoom(*node, used + others, use) && !Negative(left, shape.resources);
  };
  const bool task_fits = TaskRoomWithout(*node, 1) > 0;
  if (task_fits && fits(node->allocated, node->devices_used)) return Outlook::kFree;
  Resources allocated = node->allocated;
  DeviceUse used = node->devices_used;
  for (TaskKey key : node->tasks) {
    const Job& other = state.jobs().At(key.job);
    const Task& leaves = other.tasks[key.task];
    const ShapeEntry& gone = state.interner().Shape(other.groups[GroupOf(other, key.task)].shape);
    const DeviceUse held = UseOf(*node, gone, DevicesHeld(leaves));
    if (BeingFrozen(leaves)) {
      const bool lends = LendsSoon(other, gone, leaves);
      allocated -= GivenBack(gone, lends);
      if (lends) used -= held;
    }
    if (!Releasing(leaves)) continue;
    allocated -= HeldBy(gone, held, Frozen(leaves));
    used -= held;
  }
  return fits(allocated, used) ? Outlook::kLater : Outlook::kNever;
}

std::vector<uint32_t> NominatedTasks(const Job& job) {
  std::vector<uint32_t> tasks;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state == TaskState::kNominated) tasks.push_back(i);
  }
  return tasks;
}

std::vector<Placement> PlacesOf(const Job& job, const std::vector<uint32_t>& tasks) {
  std::vector<Placement> places;
  for (uint32_t task : tasks)
    places.push_back({task, job.tasks[task].node, job.tasks[task].devices});
  return places;
}

// Some of its tasks have not left their old place.
bool StillMoving(const Job& job) {
  return std::any_of(job.tasks.begin(), job.tasks.end(),
                     [](const Task& task) { return task.moves; });
}

bool MayWaitThere(const JobStatus& status) {
  const bool waits = status.state == JobState::kPending || status.state == JobState::kBinding ||
                     status.state == JobState::kRunning || status.state == JobState::kRestarting;
  return waits && !status.suspended && !status.cancelled;
}

// A group that must wait for another again, because that one was restarted, needs no places.
bool AnyClosed(const Job& job) {
  for (uint32_t g = 0; g < job.groups.size(); ++g) {
    if (job.tallies[g].Nominated() > 0 && !GroupOpen(job, g)) return true;
  }
  return false;
}

// Nominations complete the minimums of the job and its groups, so they can start it.
bool WholeGang(const Job& job) {
  if (AnyClosed(job)) return false;
  if (job.status.state != JobState::kPending) return true;
  int32_t all = 0;
  for (size_t g = 0; g < job.groups.size(); ++g) {
    const GroupTally& tally = job.tallies[g];
    const int32_t present = tally.Nominated() + tally.In(TaskState::kSucceeded);
    const bool open = GroupOpen(job, static_cast<uint32_t>(g));
    if (open && present < job.groups[g].min_available) return false;
    all += open ? present : job.groups[g].min_available;
  }
  return all >= job.min_available;
}

// Whether its queues are over a limit because of the job and what is still being released there, or
// will be even after that.
Outlook LimitsOutlook(const ClusterState& state, const Job& job,
                      const std::vector<uint32_t>& nominated) {
  Resources asked;
  for (uint32_t task : nominated) {
    asked += state.interner().Shape(job.groups[GroupOf(job, task)].shape).resources;
  }
  Outlook outlook = Outlook::kFree;
  for (QueueId id = job.queue;; id = state.queues().At(id).spec.parent) {
    const Queue& queue = state.queues().At(id);
    const Resources occupied = queue.allocated - queue.nominated;
    if (Negative(queue.limit - HeldAfterRelease(queue), asked)) return Outlook::kNever;
    if (Negative(queue.limit - occupied - asked, asked)) outlook = Outlook::kLater;
    if (id == kRootQueue) return outlook;
  }
}

// The outlook of the whole job.
Outlook OutlookOf(const ClusterState& state, const Job& job, const std::vector<uint32_t>& nominated,
                  Time now) {
  if (!MayWaitThere(job.status)) return Outlook::kNever;
  Outlook worst = Outlook::kFree;
  for (uint32_t task : nominated) worst = std::max(worst, OutlookOf(state, job, task));
  if (worst == Outlook::kNever) return worst;
  if (StillMoving(job) || job.status.state == JobState::kRestarting) return Outlook::kLater;
  if (!WholeGang(job) && KeepsPlaces(job, now)) return Outlook::kLater;
  if (!WholeGang(job) || QueueVerdict(state, job, Use::kOnceReleased).has_value()) {
    return Outlook::kNever;
  }
  if (QueueVerdict(state, job).has_value()) worst = Outlook::kLater;
  return std::max(worst, LimitsOutlook(state, job, nominated));
}

void LookAt(Cycle& cycle, Placer& placer, const Job& job) {
  const std::vector<uint32_t> nominated = NominatedTasks(job);
  cycle.CountWork(nominated.size());
  Outlook outlook = OutlookOf(cycle.state(), job, nominated, cycle.now());
  if (!KeepsTopology(cycle.state(), TreesOf(cycle), job, PlacesOf(job, nominated))) {
    outlook = Outlook::kNever;
  }
  if (outlook == Outlook::kLater) return;
  if (outlook == Outlook::kNever) {
    cycle.transaction().Decide(TasksUnnominated{.job = job.id, .tasks = nominated});
    cycle.transaction().Sync();
    return;
  }
  for (const Placement& place : PlacesOf(job, nominated)) {
    cycle.transaction().Place(job.id, place);
  }
  placer.Bind(job);
}

}  // namespace

bool PlacesAreFree(const ClusterState& state, const Job& job) {
  const std::vector<uint32_t> nominated = NominatedTasks(job);
  return std::all_of(nominated.begin(), nominated.end(),
                     [&](uint32_t task) { return OutlookOf(state, job, task) == Outlook::kFree; });
}

void RunNominations(Cycle& cycle) {
  const std::vector<JobId> jobs(cycle.state().nominated_jobs().begin(),
                                cycle.state().nominated_jobs().end());
  Placer placer(cycle);
  for (JobId id : jobs) LookAt(cycle, placer, cycle.state().jobs().At(id));
}

namespace {

// Places for all of it after what is being released on those nodes has gone. Changes nothing.
std::optional<std::vector<Placement>> TryOn(Cycle& cycle, Placer& placer, const Job& job,
                                            const JobNeeds& needs,
                                            const std::vector<NodeId>& nodes) {
  Transaction& transaction = cycle.transaction();
  const Transaction::Mark mark = transaction.mark();
  LetGoOn(cycle, nodes, job.id);
  std::optional<std::vector<Placement>> places;
  if (placer.PlaceAll(job, needs) == TasksIn(needs)) places = transaction.placed();
  transaction.RollbackTo(mark);
  return places;
}

// First with the nodes that suffice by the counts; if something else blocks the job there, with
// all.
std::optional<std::vector<Placement>> PlacesOnReleasing(Cycle& cycle, Placer& placer,
                                                        const Job& job, const JobNeeds& needs) {
  const ClusterState& state = cycle.state();
  if (state.free().soon().empty() || !needs.gang || needs.empty()) return std::nullopt;
  FitCount count(cycle, job, needs, LimitsAbove(state, job.queue));
  if (!count.Enough() || placer.Gates(job, needs, Use::kOnceReleased).has_value()) {
    return std::nullopt;
  }
  const Resources request = RequestOf(state, job, needs);
  const QueueUse use = UseOf(job, request, job.occupying == 0);
  const Window window = WindowFrom(job, cycle.now());
  Reservations& reservations = cycle.reservations();
  const bool barred =
      reservations.Outgrows(job, use, window, LeavingOfQueues(state, job.queue)).has_value() ||
      reservations.TakesGuarantee(job, request, window, /*once_released=*/true).has_value();
  if (barred) return std::nullopt;
  const std::vector<NodeId> some = count.RoomOnceReleased();
  auto places = TryOn(cycle, placer, job, needs, some);
  if (places.has_value()) return places;
  count.CountAllReleased();
  const std::vector<NodeId> all = count.RoomOnceReleased();
  return all == some ? std::nullopt : TryOn(cycle, placer, job, needs, all);
}

}  // namespace

bool NominateOnReleasing(Cycle& cycle, Placer& placer, const Job& job, const JobNeeds& needs) {
  std::optional<std::vector<Placement>> places = PlacesOnReleasing(cycle, placer, job, needs);
  if (!places.has_value()) return false;
  cycle.transaction().Decide(TasksNominated{.job = job.id, .placements = *std::move(places)});
  if (cycle.state().reservations().contains(job.id)) {
    cycle.transaction().Decide(JobReserved{.job = job.id, .reservation = {}});
  }
  cycle.transaction().Sync();
  return true;
}

}  // namespace berth
