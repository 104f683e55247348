#include "core/engine/place/reserve.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/place/earliest_start.h"

namespace berth {
namespace {

const Reservation* Held(const ClusterState& state, JobId job) {
  const auto found = state.reservations().find(job);
  return found == state.reservations().end() ? nullptr : &found->second;
}

// From the start of its first reservation on, other jobs may not start by guesses.
Reservation After(const Reservation* held, Reservation next) {
  next.firm_from = held != nullptr ? held->firm_from : next.start;
  return next;
}

void Decide(Cycle& cycle, JobId job, Reservation reservation) {
  reservation = After(Held(cycle.state(), job), std::move(reservation));
  cycle.transaction().Decide(JobReserved{.job = job, .reservation = std::move(reservation)});
}

// It is pending for a gang of as many tasks as are reserved.
bool StillAsked(const ClusterState& state, JobId id, const Reservation& reservation) {
  const Job* job = state.jobs().Find(id);
  if (job == nullptr || job->pending_class == ClassId{}) return false;
  const Demand& demand = state.pending().Class(job->pending_class).demand;
  size_t tasks = 0;
  for (const DemandItem& item : demand.items) tasks += static_cast<size_t>(item.count);
  return demand.gang && tasks == reservation.places.size();
}

// The reservation to give up if there are too many: the last in its queue's own order.
std::optional<JobId> LastOf(const ClusterState& state, QueueId queue) {
  std::optional<JobId> last;
  for (const auto& [id, reservation] : state.reservations()) {
    const Job& job = state.jobs().At(id);
    if (job.queue != queue) continue;
    if (!last.has_value() || KeyOf(state.jobs().At(*last)) < KeyOf(job)) last = id;
  }
  return last;
}

int32_t CountIn(const ClusterState& state, QueueId queue) {
  int32_t count = 0;
  for (const auto& [id, reservation] : state.reservations()) {
    if (state.jobs().At(id).queue == queue) ++count;
  }
  return count;
}

// Keeps the places if still possible, or finds others; otherwise drops the reservation.
void Renew(Cycle& cycle, Placer& placer, const Job& job) {
  const Reservation held = *Held(cycle.state(), job.id);
  if (StillPossible(cycle, placer, job, held)) return;
  std::optional<Reservation> other = EarliestStart(cycle, placer, job);
  if (other.has_value() && After(&held, *other) == held) return;
  Decide(cycle, job.id, other.has_value() ? *std::move(other) : Reservation{});
}

// Drops what exceeds the parameters, which may have changed.
void Trim(Cycle& cycle) {
  const BackfillParameters& parameters = cycle.policies().backfill();
  const ClusterState& state = cycle.state();
  const bool easy = parameters.mode == BackfillMode::kEasy;
  const auto most = static_cast<size_t>(
      std::max(0, easy ? parameters.reservations : parameters.conservative_depth));
  while (state.reservations().size() > most) {
    Decide(cycle, state.reservations().rbegin()->first, {});
  }
  if (!easy) return;
  std::map<QueueId, int32_t> count;
  for (const auto& [id, reservation] : state.reservations()) ++count[state.jobs().At(id).queue];
  for (auto& [queue, held] : count) {
    for (; held > std::max(0, parameters.reservations_per_queue); --held) {
      Decide(cycle, *LastOf(state, queue), {});
    }
  }
}

// Like MayReserve, after giving up the reservation of another job if this one goes before it.
bool MakeRoomFor(Cycle& cycle, const Job& job) {
  if (MayReserve(cycle, job.queue)) return true;
  const ClusterState& state = cycle.state();
  const std::optional<JobId> last = LastOf(state, job.queue);
  if (!last.has_value() || KeyOf(state.jobs().At(*last)) < KeyOf(job)) return false;
  Decide(cycle, *last, {});
  return true;
}

}  // namespace

void KeepReservations(Cycle& cycle) {
  const ClusterState& state = cycle.state();
  if (state.reservations().empty()) return;
  const bool backfills = cycle.policies().HasAction("backfill");
  std::vector<JobId> overdue;
  std::vector<JobId> over;
  for (const auto& [id, reservation] : state.reservations()) {
    cycle.CountWork(1);
    if (!backfills || !StillAsked(state, id, reservation)) {
      over.push_back(id);
    } else if (reservation.start <= cycle.now()) {
      overdue.push_back(id);
    }
  }
  for (JobId id : over) Decide(cycle, id, {});
  Trim(cycle);
  Placer placer(cycle);
  for (JobId id : overdue) {
    const Job& job = state.jobs().At(id);
    const bool tried_anyway = state.pending().Class(job.pending_class).blocked == nullptr;
    if (!tried_anyway && Held(state, id) != nullptr) Renew(cycle, placer, job);
  }
}

void RenewReservations(Cycle& cycle, Placer& placer) {
  std::vector<JobId> kept;
  for (const auto& [id, reservation] : cycle.state().reservations()) kept.push_back(id);
  for (JobId id : kept) {
    cycle.CountWork(1);
    Renew(cycle, placer, cycle.state().jobs().At(id));
  }
}

bool MayReserve(Cycle& cycle, QueueId queue) {
  const BackfillParameters& parameters = cycle.policies().backfill();
  const auto all = static_cast<int32_t>(cycle.state().reservations().size());
  if (parameters.mode == BackfillMode::kConservative) return all < parameters.conservative_depth;
  return all < parameters.reservations &&
         CountIn(cycle.state(), queue) < parameters.reservations_per_queue;
}

bool ReserveFor(Cycle& cycle, Placer& placer, const Job& job) {
  if (!NeedsOf(job).gang) return false;  // growth only uses free room
  const ClusterState& state = cycle.state();
  if (const Reservation* held = Held(state, job.id); held != nullptr) {
    std::optional<Reservation> earlier = EarliestStart(cycle, placer, job, held->start);
    if (earlier.has_value()) {
      Decide(cycle, job.id, *std::move(earlier));
    } else {
      Renew(cycle, placer, job);
    }
    return Held(state, job.id) != nullptr;
  }
  const Transaction::Mark mark = cycle.transaction().mark();
  std::optional<Reservation> first;
  if (MakeRoomFor(cycle, job)) first = EarliestStart(cycle, placer, job);
  if (first.has_value()) {
    Decide(cycle, job.id, *std::move(first));
  } else {
    cycle.transaction().RollbackTo(mark);
  }
  return Held(state, job.id) != nullptr;
}

Time NextReservedStart(const ClusterState& state, Time now) {
  Time next = absl::InfiniteFuture();
  for (const auto& [id, reservation] : state.reservations()) {
    if (reservation.start > now) next = std::min(next, reservation.start);
  }
  return next;
}

}  // namespace berth
