#include "core/engine/place/placer.h"

#include <algorithm>
#include <utility>

#include "core/engine/place/nomination_stage.h"
#include "core/engine/place/patience.h"
#include "core/model/divisions.h"
#include "core/topology/domain_placer.h"
#include "core/topology/topology_verdict.h"

namespace berth {
namespace {

// How soon to retry if a limit blocks one division of a gang and a lack of room another.
constexpr Duration kTriedAgain = absl::Seconds(10);

// There are as many places in each group as it requests, for tasks that are still pending.
bool ServesNeeds(const Job& job, const JobNeeds& needs, const std::vector<Placement>& places) {
  std::vector<int32_t> missing(job.groups.size(), 0);
  for (const GroupNeed& need : needs.groups) missing[need.group] = need.count;
  for (const Placement& place : places) {
    if (place.task >= job.tasks.size() || job.tasks[place.task].state != TaskState::kPending) {
      return false;
    }
    --missing[GroupOf(job, place.task)];
  }
  return std::all_of(missing.begin(), missing.end(), [](int32_t count) { return count == 0; });
}

bool SaysNever(const BlockedVerdict& verdict) {
  const auto code = static_cast<WaitCode>(verdict.code);
  if (code == WaitCode::kQueueLimit) return verdict.needed > verdict.limit;
  return code == WaitCode::kNoMatchingNode || code == WaitCode::kNeverFits;
}

// When two divisions of a gang are blocked, keeps the verdict of the first, unless that one can
// never fit. If they wait for different things, the job is retried after a while.
void KeepBetterVerdict(Time now, BlockedVerdict other, BlockedVerdict* verdict) {
  const bool same = verdict->wake == other.wake && verdict->queue == other.queue;
  const Time revisit = std::min(verdict->revisit, other.revisit);
  if (SaysNever(*verdict) && !SaysNever(other)) *verdict = std::move(other);
  verdict->revisit = same ? revisit : std::min(revisit, now + kTriedAgain);
}

// Some reservation must not be delayed by a wrong guess.
bool AnyFirm(const ClusterState& state, BackfillFit fit, Time now) {
  const bool aged_are = fit == BackfillFit::kPredictedUnlessAged;
  return std::any_of(state.reservations().begin(), state.reservations().end(),
                     [&](const auto& kept) {
                       if (kept.second.firm_from <= now) return true;
                       return aged_are && state.jobs().At(kept.first).rank == kAgedRank;
                     });
}

// Some node has room for a task of the shape now.
bool AnyNodeFits(Cycle& cycle, ShapeId shape) {
  const ShapeEntry& entry = cycle.state().interner().Shape(shape);
  bool any = false;
  cycle.state().free().ForEach(static_cast<int>(entry.DevicesFor(1)), entry.resources[kCpu],
                               [&](NodeId node, const Resources&) {
                                 any = cycle.search().FitsNow(shape, node);
                                 return !any;
                               });
  return any;
}

// It is not a head that blocks others: the jobs that it waits for may be behind it.
BlockedVerdict WaitsForOthers(const ClusterState& state, const Job& job) {
  BlockedVerdict verdict;
  verdict.code = static_cast<uint8_t>(WaitCode::kJobAffinity);
  verdict.wake = WakeOn::kChange;
  verdict.detail = AffinityText(state, job);
  return verdict;
}

}  // namespace

Placer::Placer(Cycle& cycle)
    : cycle_(cycle), state_(cycle.state()), transaction_(cycle.transaction()) {}

std::optional<BlockedVerdict> Placer::Gates(const Job& job, const JobNeeds& needs, Use use) const {
  if (auto verdict = QueueVerdict(state_, job, use); verdict.has_value()) return verdict;
  const Resources request = RequestOf(state_, job, needs);
  if (use == Use::kOnceReleased || !state_.WithinLimits(job.queue, request)) {
    auto verdict = LimitVerdict(state_, job.queue, request, use);
    if (verdict.has_value()) return verdict;
  }
  if (!Preemptible(job, needs)) {
    auto verdict = NonpreemptibleVerdict(state_, job, request, use);
    if (verdict.has_value()) return verdict;
  }
  if (use == Use::kNow) return GuaranteeVerdict(state_, job.queue, request);
  if (cycle_.shares().At(kRootQueue).guarantee.IsZero()) return std::nullopt;  // no queue has any
  return GuaranteeVerdictAfter(state_, job.queue, request,
                               [&](QueueId id) { return state_.queues().At(id).leaving; });
}

std::optional<BlockedVerdict> Placer::Serve(const Job& job) {
  if (state_.affinity().any() && LacksNearJob(state_, job)) return WaitsForOthers(state_, job);
  const JobNeeds needs = NeedsOf(job);
  if (!needs.gang) return ServeOne(job, needs);
  std::optional<BlockedVerdict> verdict = ServeGang(job, needs);
  if (!verdict.has_value() || !Divides(job)) return verdict;
  const std::vector<JobNeeds> divisions = DivisionsOf(job);
  for (size_t i = 1; i < divisions.size() && verdict.has_value(); ++i) {
    cycle_.CountWork(1);
    auto other = ServeGang(job, divisions[i]);
    if (!other.has_value()) return std::nullopt;
    KeepBetterVerdict(cycle_.now(), *std::move(other), &*verdict);
  }
  return verdict;
}

std::optional<BlockedVerdict> Placer::ServeGang(const Job& job, const JobNeeds& needs) {
  if (auto verdict = Gates(job, needs); verdict.has_value()) return verdict;
  if (auto verdict = ReservedInQueue(job, needs); verdict.has_value()) return verdict;
  if (auto verdict = AwaitBetterTier(cycle_, *this, job, needs); verdict.has_value()) {
    return verdict;
  }
  const Transaction::Mark mark = transaction_.mark();
  const int32_t placed = PlaceAll(job, needs);
  if (placed == TasksIn(needs)) {
    Bind(job);
    return std::nullopt;
  }
  const bool by_affinity = cycle_.search().TakeBarredByAffinity();
  BlockedVerdict verdict = Shortage(job, needs, placed);
  transaction_.RollbackTo(mark);
  if (!LacksRoom(verdict)) return verdict;
  if (StartAsReserved(job, needs) || NominateOnReleasing(cycle_, *this, job, needs) ||
      StartElsewhere(job)) {
    return std::nullopt;
  }
  Blame(job, needs, by_affinity, &verdict);
  return verdict;
}

// What a restarting gang lacks is not to be had beside the places that it kept: all of it, at once,
// is better than waiting.
bool Placer::StartElsewhere(const Job& job) {
  if (!KeepsPlaces(job, cycle_.now())) return false;
  TasksUnnominated all{.job = job.id, .tasks = {}};
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (Reserves(job.tasks[i].state)) all.tasks.push_back(i);
  }
  if (all.tasks.empty()) return false;
  const Transaction::Mark mark = transaction_.mark();
  transaction_.Decide(std::move(all));
  const JobNeeds needs = NeedsOf(job);
  if (!Gates(job, needs).has_value() && !ReservedInQueue(job, needs).has_value() &&
      PlaceAll(job, needs) == TasksIn(needs)) {
    Bind(job);
    return true;
  }
  transaction_.RollbackTo(mark);
  return false;
}

std::optional<BlockedVerdict> Placer::ServeOne(const Job& job, const JobNeeds& needs) {
  std::optional<BlockedVerdict> first;
  for (const GroupNeed& need : needs.groups) {
    const JobNeeds one{.gang = false, .groups = {need}};
    std::optional<BlockedVerdict> verdict = Gates(job, one);
    if (!verdict.has_value()) verdict = ReservedInQueue(job, one);
    if (!verdict.has_value()) {
      const Transaction::Mark mark = transaction_.mark();
      if (PlaceAll(job, one) == TasksIn(one)) {
        Bind(job);
        return std::nullopt;
      }
      const bool by_affinity = cycle_.search().TakeBarredByAffinity();
      verdict = Shortage(job, one, 0);
      transaction_.RollbackTo(mark);
      if (LacksRoom(*verdict)) Blame(job, one, by_affinity, &*verdict);
    }
    if (!first.has_value()) first = std::move(verdict);
  }
  return first;
}

// Its queues would have too little left when one of their reserved jobs starts.
std::optional<BlockedVerdict> Placer::ReservedInQueue(const Job& job, const JobNeeds& needs) const {
  Reservations& reservations = cycle_.reservations();
  if (!reservations.any()) return std::nullopt;
  const Resources request = RequestOf(state_, job, needs);
  const bool preemptible = Preemptible(job, needs);
  const QueueUse use = UseOf(job, request, job.occupying == 0, preemptible ? request : Resources{});
  const Window window = WindowNow(job);
  auto bar = reservations.Outgrows(job, use, window, {});
  const bool bounded = bar.has_value();
  if (!bounded) bar = reservations.TakesGuarantee(job, request, window, /*once_released=*/false);
  if (!bar.has_value()) return std::nullopt;
  BlockedVerdict verdict;
  verdict.code = static_cast<uint8_t>(WaitCode::kReserved);
  verdict.wake = WakeOn::kQueue;
  verdict.queue = bar->queue;  // any job that ends below it may help
  verdict.job = bar->job;
  verdict.detail = bounded
                       ? "the rest of the queue's quota is reserved for that job"
                       : "too little would be left for that job and the guarantees of other queues";
  return verdict;
}

void Placer::Blame(const Job& job, const JobNeeds& needs, bool by_affinity,
                   BlockedVerdict* verdict) {
  BlameReservation(job, needs, verdict);
  if (by_affinity) BlameAffinity(job, needs, verdict);
}

void Placer::BlameAffinity(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict) {
  const std::string text = AffinityText(state_, job);
  const Transaction::Mark mark = transaction_.mark();
  cycle_.search().EnableAffinity(false);
  const bool fits = PlaceAll(job, needs) == TasksIn(needs);
  cycle_.search().EnableAffinity(true);
  transaction_.RollbackTo(mark);
  if (!fits) {
    absl::StrAppend(&verdict->detail, "; ", text);
    return;
  }
  verdict->code = static_cast<uint8_t>(WaitCode::kJobAffinity);
  verdict->detail = text;
}

void Placer::BlameReservation(const Job& job, const JobNeeds& needs, BlockedVerdict* verdict) {
  const std::optional<JobId> kept_for = cycle_.search().TakeBlockedBy();
  if (!kept_for.has_value()) return;
  if (!FitsUnreserved(job, needs)) return;
  verdict->code = static_cast<uint8_t>(WaitCode::kReserved);
  verdict->job = *kept_for;
  verdict->detail = "it would fit, but would still be running when that job is due to start";
}

bool Placer::FitsUnreserved(const Job& job, const JobNeeds& needs) {
  if (TasksIn(needs) == 1 && OnlyAmountsMatter(job, needs)) {
    return HasPlace(job, needs, /*ignore_reservations=*/true);
  }
  const Transaction::Mark mark = transaction_.mark();
  const Window window = WindowNow(job);
  const bool fits = PlaceAll(job, needs, window, /*ignore_reservations=*/true) == TasksIn(needs);
  transaction_.RollbackTo(mark);
  return fits;
}

// A new search may choose other places than those reserved, and fail.
bool Placer::StartAsReserved(const Job& job, const JobNeeds& needs) {
  const auto found = state_.reservations().find(job.id);
  if (found == state_.reservations().end()) return false;
  const std::vector<Placement> places = found->second.places;
  if (!ServesNeeds(job, needs, places)) return false;
  const Transaction::Mark mark = transaction_.mark();
  if (PlaceOn(job, places, WindowNow(job))) {
    Bind(job);
    return true;
  }
  transaction_.RollbackTo(mark);
  return false;
}

bool Placer::Guesses(const Job& job) const {
  return !(WindowNow(job) == WindowFrom(job, cycle_.now()));
}

Window Placer::WindowNow(const Job& job) const {
  Window window = WindowFrom(job, cycle_.now());
  const BackfillFit fit = cycle_.policies().backfill().fit;
  const bool starts = job.status.state == JobState::kPending;
  if (fit == BackfillFit::kRequested || !starts || !job.prediction.Known()) return window;
  if (window.end == absl::InfiniteFuture()) return window;  // may delay no reservation
  if (AnyFirm(state_, fit, cycle_.now())) return window;
  window.end = std::min(window.end, window.begin + absl::Seconds(job.prediction.expected_s));
  return window;
}

int32_t Placer::PlaceAll(const Job& job, const JobNeeds& needs) {
  return PlaceAll(job, needs, WindowNow(job));
}

int32_t Placer::PlaceAll(const Job& job, const JobNeeds& needs, const Window& window,
                         bool ignore_reservations) {
  if (!ignore_reservations) {
    cycle_.search().TakeBlockedBy();
    cycle_.search().TakeBarredByAffinity();
  }
  cycle_.search().HoldAffinity(job, &cycle_.counters().work);
  const int32_t placed = HasTopology(job) ? PlaceInDomains(job, needs, window, ignore_reservations)
                                          : PlaceGroups(job, needs, window, ignore_reservations);
  cycle_.search().DropAffinity();
  return placed;
}

Seeker Placer::FirstOf(const Job& job, const JobNeeds& needs, bool ignore_reservations) const {
  return {.job = job,
          .group = needs.groups.front().group,
          .window = WindowNow(job),
          .last = {},
          .ignore_reservations = ignore_reservations};
}

bool Placer::HasPlace(const Job& job, const JobNeeds& needs, bool ignore_reservations) {
  if (ignore_reservations && OnlyAmountsMatter(job, needs)) {
    return AnyNodeFits(cycle_, job.groups[needs.groups.front().group].shape);
  }
  const Seeker seeker = FirstOf(job, needs, ignore_reservations);
  return cycle_.search().Best(seeker, &cycle_.counters().work).has_value();
}

bool Placer::OnlyAmountsMatter(const Job& job, const JobNeeds& needs) {
  return cycle_.search().OnlyAmountsMatter(FirstOf(job, needs, false));
}

// In group order, except that groups that others must be near come first.
int32_t Placer::PlaceGroups(const Job& job, const JobNeeds& needs, const Window& window,
                            bool ignore_reservations) {
  int32_t placed = 0;
  for (bool near : {false, true}) {
    for (const GroupNeed& need : needs.groups) {
      if (job.groups[need.group].near_groups.empty() == near) continue;
      const int32_t here = PlaceTasks({.job = job,
                                       .group = need.group,
                                       .window = window,
                                       .rest = need.count,
                                       .last = {},
                                       .ignore_reservations = ignore_reservations});
      placed += here;
      if (here < need.count) return placed;
    }
  }
  return placed;
}

int32_t Placer::PlaceInDomains(const Job& job, const JobNeeds& needs, const Window& window,
                               bool ignore_reservations) {
  const uint32_t from = first_waiting_.job == job.id ? first_waiting_.task : 0;
  DomainPlacer placer(cycle_, job, window, ignore_reservations, harden_);
  const Region region = confined_ == job.id ? region_ : Region{};
  const bool all = placer.PlaceAll(ScopeNeedsOf(job, needs, from), region);
  const int32_t tasks = TasksIn(needs);
  const auto placed = static_cast<int32_t>(transaction_.placed().size());
  return all ? tasks : std::min(placed, tasks - 1);
}

// `placed` of them are in the transaction.
BlockedVerdict Placer::Shortage(const Job& job, const JobNeeds& needs, int32_t placed) {
  if (!HasTopology(job)) {
    BlockedVerdict verdict =
        ShortageVerdict(state_, cycle_.search(), job, needs, placed, &cycle_.counters().work);
    NoteBackoffs(needs, job, &verdict);
    return verdict;
  }
  transaction_.UnplaceTo(0);
  BlockedVerdict verdict = TopologyVerdict(cycle_, job, needs);
  NoteBackoffs(needs, job, &verdict);
  return verdict;
}

// Nodes that are backing off are part of the reason for the lack of room.
void Placer::NoteBackoffs(const JobNeeds& needs, const Job& job, BlockedVerdict* verdict) {
  if (state_.backoffs().empty() || !LacksRoom(*verdict)) return;
  for (const GroupNeed& need : needs.groups) {
    const auto found =
        cycle_.search().FindBackingOff(job.groups[need.group].shape, &cycle_.counters().work);
    if (found.nodes == 0) continue;
    verdict->backing_off = found.nodes;
    verdict->backs_off = found.first;
    verdict->backs_off_until = found.until;
    return;
  }
}

int32_t Placer::PlaceTasks(Seeker seeker) {
  const Job& job = seeker.job;
  const Group& spec = job.groups[seeker.group];
  const uint32_t end = spec.first_task + static_cast<uint32_t>(spec.replicas);
  uint32_t task = spec.first_task;
  if (first_waiting_.job == job.id && first_waiting_.task < end) {
    task = std::max(task, first_waiting_.task);
  }
  int32_t placed = 0;
  for (; task < end && seeker.rest > 0; ++task) {
    if (job.tasks[task].state != TaskState::kPending) continue;
    const std::optional<Found> found = cycle_.search().Best(seeker, &cycle_.counters().work);
    if (!found.has_value()) break;
    transaction_.Place(job.id, {task, found->node, found->devices});
    seeker.Placed(found->node, found->devices);
    --seeker.rest;
    ++placed;
  }
  return placed;
}

bool Placer::PlaceOn(const Job& job, const std::vector<Placement>& places, const Window& window) {
  if (!KeepsTopology(state_, TreesOf(cycle_), job, places)) return false;
  cycle_.search().HoldAffinity(job, &cycle_.counters().work);
  const bool placed = PlaceEach(job, places, window);
  cycle_.search().DropAffinity();
  return placed;
}

bool Placer::PlaceEach(const Job& job, const std::vector<Placement>& places, const Window& window) {
  for (const Placement& place : places) {
    if (job.tasks[place.task].state != TaskState::kPending) return false;
    const Seeker seeker{
        .job = job, .group = GroupOf(job, place.task), .window = window, .last = {}};
    const std::optional<DeviceSet> devices = cycle_.search().On(seeker, place.node);
    if (!devices.has_value()) return false;
    transaction_.Place(job.id, {place.task, place.node, *devices});
  }
  return true;
}

// The places that a restarting gang kept join those that it lacked; if some are not free yet, it
// waits for all.
bool Placer::JoinKeptPlaces(const Job& job) {
  if (job.status.state != JobState::kPending || TallyOf(job).Nominated() == 0) return true;
  if (!PlacesAreFree(state_, job)) {
    transaction_.NominatePlaced(job.id);
    transaction_.Sync();
    return false;
  }
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (!Reserves(task.state)) continue;
    transaction_.Place(job.id, {.task = i, .node = task.node, .devices = task.devices});
  }
  return true;
}

void Placer::Bind(const Job& job) {
  // Only what was searched for is in order: kept places may lie behind tasks that still wait.
  const auto& placed = transaction_.placed();
  const TaskKey next = {job.id, placed.empty() ? 0 : placed.back().task + 1};
  if (!JoinKeptPlaces(job)) return;
  first_waiting_ = next;
  const size_t tasks = placed.size();
  cycle_.CountWork(tasks);
  cycle_.counters().tasks_placed += tasks;
  Resources request, preemptible;
  const bool reserved = cycle_.reservations().any();
  for (size_t i = 0; i < tasks && reserved; ++i) {
    const Group& group = job.groups[GroupOf(job, transaction_.placed()[i].task)];
    const Resources& each = state_.interner().Shape(group.shape).resources;
    request += each;
    if (group.preemptible) preemptible += each;
  }
  const bool starts = job.occupying == static_cast<int32_t>(tasks);
  transaction_.BindPlaced(job.id, /*gang=*/job.status.state == JobState::kPending);
  if (reserved) {
    const QueueUse use = UseOf(job, request, starts, preemptible);
    cycle_.reservations().Started(job, use, PlannedEnd(job));
    if (state_.reservations().contains(job.id)) {
      transaction_.Decide(JobReserved{.job = job.id, .reservation = {}});
    }
  }
  transaction_.Sync();
}

}  // namespace berth
