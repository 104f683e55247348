// backfill: continues in service order where allocate stopped, at the first job that lacks room or
// that a limit of its queue blocks. The first such jobs (one per queue: EASY; or all of them:
// conservative) get reservations for their earliest possible start. Later jobs may start now only
// if that delays none of these.
//
//   8 devices, 6 in use until 10:00      pending: A wants 8    B wants 2 for 1 h, C wants 2 for a
//   day 9:00   A reserves all 8 from 10:00   B starts (gone by 10:00)   C waits: reserved for A
//   10:00  A starts
//
// Before other jobs overtake the first gang of a queue that lacks room, the later actions of the
// cycle may make room for it (Action::MakeRoomFor). Otherwise the others would take room that the
// gang could have had, and more jobs would have to be stopped for the gang.
//
// engine/search/reservations.h holds the reservations; engine/place/reserve.h chooses the jobs that
// get one.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/actions/eviction.h"
#include "core/engine/cycle.h"
#include "core/engine/order/service_order.h"
#include "core/engine/place/placer.h"
#include "core/engine/place/reserve.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

class Backfill {
 public:
  explicit Backfill(Cycle& cycle) : cycle_(cycle), state_(cycle.state()), placer_(cycle) {}

  void Run();

 private:
  using Head = ServiceOrder::Head;
  // The next job of the class of a reserved job. It is blocked as well, so it is never a head.
  using Mate = std::pair<OrderKey, ClassId>;

  std::optional<Head> Next();
  bool MateGoesBefore(const std::optional<Head>& head) const;
  void Serve(const Head& head);
  bool RoomIsMade(const Head& head, const BlockedVerdict& verdict);
  bool MakesRoom(const Action& action, const Job& job);
  void ReserveForShort(const Head& head);
  void ReserveForMate();
  void Enlist(ClassId of);
  // It has room, but prefers to wait for a better place.
  bool Awaits(ClassId id) const {
    const auto code = static_cast<WaitCode>(state_.pending().Class(id).blocked->code);
    return code == WaitCode::kWaitsForBetterTier;
  }

  Cycle& cycle_;
  const ClusterState& state_;
  Placer placer_;
  std::optional<ServiceOrder> order_;
  ServiceOrder::Offer offer_ = ServiceOrder::Offer::kReady;
  bool served_ = false;
  size_t held_ = 0;  // reservations at the last call of Next
  absl::btree_set<ClassId> asked_;
  absl::btree_set<QueueId> helped_;  // queues whose first gang MakeRoomFor has tried
  absl::btree_set<Mate> mates_;
};

void Backfill::Run() {
  for (const auto& [id, reservation] : state_.reservations())
    Enlist(state_.jobs().At(id).pending_class);
  // Each cycle serves a job that is not known to be blocked, or decides something. Otherwise a
  // cycle that is cut at the same place each time would repeat forever.
  const size_t decisions = cycle_.transaction().decisions();
  for (auto head = Next(); head.has_value() || !mates_.empty(); head = Next()) {
    const bool moved_on = served_ || cycle_.transaction().decisions() > decisions;
    if (moved_on && cycle_.BudgetSpent()) return cycle_.Cut();
    if (MateGoesBefore(head)) {
      ReserveForMate();
    } else if (head->short_of_room) {
      ReserveForShort(*head);
    } else {
      Serve(*head);
    }
  }
}

// Gangs blocked in an earlier cycle are re-evaluated only if this cycle may have freed a
// reservation.
std::optional<Backfill::Head> Backfill::Next() {
  const size_t held = state_.reservations().size();
  const bool given_up =
      order_.has_value() ? held < held_ : cycle_.transaction().reservation_version() > 0;
  held_ = held;
  if (!order_.has_value() || given_up) {
    if (given_up) offer_ = ServiceOrder::Offer::kReadyAndShort;
    order_.emplace(cycle_, offer_, /*around=*/true);
  }
  return order_->Next();
}

bool Backfill::MateGoesBefore(const std::optional<Head>& head) const {
  if (mates_.empty() || !head.has_value()) return !mates_.empty();
  const Job& mate = state_.jobs().At(mates_.begin()->first.job);
  return mate.queue == head->queue && mates_.begin()->first < KeyOf(state_.jobs().At(head->job));
}

void Backfill::Serve(const Head& head) {
  served_ = true;
  ++cycle_.counters().jobs_considered;
  cycle_.CountWork(1);
  const Job& job = state_.jobs().At(head.job);
  const bool guesses = placer_.Guesses(job);
  std::optional<BlockedVerdict> verdict = placer_.Serve(job);
  if (!verdict.has_value()) {
    if (guesses) RenewReservations(cycle_, placer_);
    return;
  }
  asked_.insert(head.id);
  const bool reserved = WaitsForEnds(*verdict) && ReserveFor(cycle_, placer_, job);
  if (RoomIsMade(head, *verdict)) return;
  cycle_.transaction().editor().Block(head.id, *std::move(verdict));
  if (reserved) Enlist(head.id);
}

// Then the job is placed, or nominated for that room, and its class continues.
bool Backfill::RoomIsMade(const Head& head, const BlockedVerdict& verdict) {
  constexpr size_t kMostQueues = 16;
  const Job& job = state_.jobs().At(head.job);
  if (!NeedsOf(job).gang || !job.preempts || !EvictionMayHelp(verdict)) return false;
  if (helped_.size() == kMostQueues || !helped_.insert(head.queue).second) return false;
  bool later = false;
  for (const auto& action : cycle_.policies().actions()) {
    if (later && MakesRoom(*action, job)) {
      order_.emplace(cycle_, offer_, /*around=*/true);  // other queues have changed as well
      return true;
    }
    later |= action->name() == "backfill";
  }
  return false;
}

bool Backfill::MakesRoom(const Action& action, const Job& job) {
  const std::vector<JobNeeds> divisions = FewDivisionsOf(job);
  return std::any_of(divisions.begin(), divisions.end(),
                     [&](const JobNeeds& needs) { return action.MakeRoomFor(cycle_, job, needs); });
}

void Backfill::ReserveForShort(const Head& head) {
  cycle_.CountWork(1);
  const bool first = asked_.insert(head.id).second;
  const bool has = state_.reservations().contains(head.job);
  if (first && !has && !Awaits(head.id) && MayReserve(cycle_, head.queue) &&
      ReserveFor(cycle_, placer_, state_.jobs().At(head.job))) {
    Enlist(head.id);
  }
  order_->Skip(head);
}

void Backfill::ReserveForMate() {
  const Mate mate = *mates_.begin();
  mates_.erase(mates_.begin());
  cycle_.CountWork(1);
  if (ReserveFor(cycle_, placer_, state_.jobs().At(mate.first.job))) Enlist(mate.second);
}

void Backfill::Enlist(ClassId of) {
  const PendingClass* equal = state_.pending().FindClass(of);
  if (equal == nullptr || equal->blocked == nullptr) return;
  if (!MayReserve(cycle_, equal->demand.queue)) return;
  for (const OrderKey& key : equal->jobs) {
    if (state_.reservations().contains(key.job)) continue;
    mates_.emplace(key, of);
    return;
  }
}

class BackfillAction final : public Action {
 public:
  absl::string_view name() const override { return "backfill"; }
  void Run(Cycle& cycle) const override { Backfill(cycle).Run(); }
};

}  // namespace

std::unique_ptr<Action> MakeBackfill() { return std::make_unique<BackfillAction>(); }

}  // namespace berth
