#include "core/engine/victims/victim_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/place/leaving.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/few_units.h"
#include "core/engine/victims/put_back.h"

namespace berth {
namespace {

constexpr char kNotSooner[] = "it would not start sooner than with its reservation";
constexpr char kTooLarge[] = "it does not fit beside what the jobs would keep whose turn is over";
constexpr char kNoOtherPlace[] = "the jobs in the way fit nowhere else";

std::vector<size_t> AllBut(const std::vector<size_t>& units, size_t at) {
  std::vector<size_t> rest = units;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(at));
  return rest;
}

std::vector<uint32_t> TasksOf(const std::vector<Placement>& places) {
  std::vector<uint32_t> tasks;
  for (const Placement& place : places) tasks.push_back(place.task);
  return tasks;
}

}  // namespace

VictimPlan::VictimPlan(Cycle& cycle, VictimPlanGoal goal, VictimSource& source,
                       const WholeScope* scope, std::optional<DomainIndex> only)
    : cycle_(cycle),
      state_(cycle.state()),
      transaction_(cycle.transaction()),
      placer_(cycle),
      goal_(std::move(goal)),
      source_(source),
      bounds_(BoundsAbove(cycle, goal_.job.queue, RequestOf(state_, goal_.job, goal_.needs),
                          goal_.borrowing)),
      count_(cycle, goal_.job, goal_.needs, bounds_, only) {
  if (only.has_value()) placer_.Confine(goal_.job.id, *scope->tree, *only);
}

bool VictimPlan::Find() {
  const int replans = goal_.must_move ? kMaxMoveReplans : kMaxReplans;
  for (int tries = 0; tries <= replans; ++tries) {
    could_not_move_ = {};
    std::optional<Attempt> attempt = FindOnce();
    if (!attempt.has_value() && could_not_move_ == JobId{}) return false;
    if (!attempt.has_value()) {
      LeaveOut(could_not_move_);
      continue;
    }
    if (!EarlyEnough(*attempt, cycle_.now())) return Bars(kNotSooner);
    if (!KeepsClaims(*attempt)) {
      return Bars("its queue may not claim what was reclaimed for the jobs in the way");
    }
    if (!goal_.must_move || AllMove(*attempt)) {
      barred_ = nullptr;
      found_ = std::move(attempt);
      if (goal_.pauses) PauseSome(&*found_);
      return !goal_.only_pauses || AllPause(*found_) || Bars(kTooLarge);
    }
    LeaveOut(could_not_move_);
  }
  return Bars(kNoOtherPlace);
}

bool VictimPlan::Bars(const char* why, bool for_lack_of_room) {
  barred_ = why;
  for_lack_of_room_ = for_lack_of_room;
  return false;
}

void VictimPlan::DescribeFailure(VictimOutcome* outcome) const {
  if (barred_ == nullptr) return;
  outcome->barred = barred_;
  outcome->for_lack_of_room = for_lack_of_room_;
  outcome->some_may_go = !units_.empty();
  outcome->in_the_way = in_the_way_;
}

std::optional<VictimPlan::Attempt> VictimPlan::FindOnce() {
  if (!TakeUntilEnough()) {
    short_of_share_ = count_.OnlySharesShort();
    if (short_of_share_) {
      Bars(kBeyondShare);
    } else if (tasks_ > cycle_.policies().eviction().max_victims) {
      Bars("more tasks would have to be evicted than one plan may evict");
    } else {
      const bool all_may_go = in_the_way_ == JobId{};
      Bars(all_may_go ? kTooLittleRoom : kNoOtherPlace, all_may_go);
    }
    return std::nullopt;
  }
  tried_ = true;
  std::optional<Attempt> attempt = Try(DropUnneeded());
  if (!attempt.has_value() && could_not_move_ == JobId{}) attempt = Gallop();
  if (!attempt.has_value()) {
    Bars(kNoPlaceForEach, /*for_lack_of_room=*/true);
    return std::nullopt;
  }
  Retry(&*attempt);
  if (attempt->kept.size() < 2 || goal_.must_move || AnyMoves(attempt->kept)) return attempt;
  std::optional<Attempt> fewer = FewerFor(*attempt);
  return fewer.has_value() ? fewer : attempt;
}

// From now on no plan takes units of that job.
void VictimPlan::LeaveOut(JobId job) {
  left_out_.insert(job);
  in_the_way_ = job;
  TakeAllAgain();
}

// If all must move, also leaves out single tasks that fit nowhere now: one of these might fit where
// others leave, but most plans with them would fail.
bool VictimPlan::LeftOut(const VictimUnit& unit) {
  if (left_out_.contains(unit.job)) return true;
  if (!goal_.must_move || unit.tasks.size() > 1) return false;
  const Job& job = state_.jobs().At(unit.job);
  const bool stuck = !FitsSomewhere(job.groups[GroupOf(job, unit.tasks.front())].shape);
  if (stuck && in_the_way_ == JobId{}) in_the_way_ = job.id;
  return stuck;
}

bool VictimPlan::FitsSomewhere(ShapeId shape) {
  const auto [known, fresh] = fits_somewhere_.try_emplace(shape, false);
  if (fresh) known->second = cycle_.search().Best(shape, &cycle_.counters().work).has_value();
  return known->second;
}

void VictimPlan::TakeAllAgain() {
  for (size_t i = 0; i < units_.size(); ++i) {
    const bool usable = !LeftOut(units_[i]);
    if (usable == counted_[i]) continue;
    usable ? count_.Take(units_[i].job, units_[i].tasks)
           : count_.Return(units_[i].job, units_[i].tasks);
    counted_[i] = usable;
  }
}

// Units that the plan does not use, in the order of the source as if none had gone.
void VictimPlan::TakeOthers(const Attempt& found) {
  absl::flat_hash_set<JobId> in_plan;  // looked up only
  for (size_t i : found.kept) in_plan.insert(units_[i].job);
  const std::unique_ptr<VictimSource> fresh =
      others_ == nullptr
          ? nullptr
          : others_([&in_plan](const Job& job) { return !in_plan.contains(job.id); });
  for (int taken = 0; taken < kMaxCompared; ++taken) {
    std::optional<VictimUnit> unit = fresh == nullptr ? source_.Next() : fresh->Next();
    if (!unit.has_value()) return;
    if (LeftOut(*unit)) continue;
    units_.push_back(*std::move(unit));
    counted_.push_back(false);
  }
}

// A few units instead of the several that were found: the cheapest set that suffices, among those
// that cost less and stop no more jobs. May leave the source further ahead than the plan.
std::optional<VictimPlan::Attempt> VictimPlan::FewerFor(const Attempt& found) {
  const size_t first = units_.size();
  TakeOthers(found);
  const VictimCost cost = CostOf(found);
  const int64_t jobs = JobsIn(found.kept);
  std::vector<std::pair<VictimCost, Indexes>> cheaper;
  const Resources request = RequestOf(state_, goal_.job, goal_.needs);
  for (Indexes& units : FewUnits(state_, request, units_, first)) {
    if (JobsIn(units) > jobs) continue;  // surplus goes before whole jobs
    VictimCost of_these = CostOf({.places = {}, .kept = units});
    if (of_these < cost) cheaper.emplace_back(std::move(of_these), std::move(units));
  }
  std::sort(cheaper.begin(), cheaper.end());
  if (cheaper.size() > kMaxComparedTries) cheaper.resize(kMaxComparedTries);
  for (const auto& [of_these, units] : cheaper) {
    std::optional<Attempt> fewer = Try(units);
    if (fewer.has_value()) return fewer;
  }
  return std::nullopt;
}

bool VictimPlan::DecideFound() {
  const uint64_t bound = cycle_.counters().tasks_placed;
  if (!Decide(*found_)) return false;
  // Places for which it waits count as well.
  cycle_.counters().tasks_placed = bound + found_->places.size();
  return true;
}

bool VictimPlan::Waits(VictimOutcome* outcome) const {
  const Duration patience = cycle_.policies().eviction().checkpoint_wait;
  Time until = absl::InfinitePast();
  for (size_t i : found_->kept) {
    const Job& victim = state_.jobs().At(units_[i].job);
    if (found_->paused.contains(victim.id)) continue;
    until = std::max(until, SavesSoon(victim, units_[i], cycle_.now(), patience));
  }
  if (until == absl::InfinitePast() || !EarlyEnough(*found_, until)) return false;
  outcome->waits_until = until;
  return true;
}

VictimCost VictimPlan::CostOf(const Attempt& attempt) const {
  std::map<int32_t, VictimCost::Of, std::greater<>> by_priority;
  for (size_t i : attempt.kept) {
    const VictimUnit& unit = units_[i];
    const bool moves = goal_.must_move || unit.must_move;
    const int32_t priority = moves ? std::numeric_limits<int32_t>::min() : unit.priority;
    VictimCost::Of& of = by_priority[priority];
    of.priority = priority;
    const bool stops = !attempt.paused.contains(unit.job);
    of.loss += stops ? unit.loss : 0;
    of.jobs += stops && unit.rest ? 1 : 0;
    of.tasks += static_cast<int64_t>(unit.tasks.size());
  }
  VictimCost cost;
  for (const auto& [priority, of] : by_priority) cost.by_priority.push_back(of);
  return cost;
}

bool VictimPlan::TakeMore(size_t count) {
  const size_t before = units_.size();
  while (units_.size() < before + count) {
    std::optional<VictimUnit> unit = source_.Next();
    if (!unit.has_value()) break;
    tasks_ += static_cast<int64_t>(unit->tasks.size());
    if (tasks_ > cycle_.policies().eviction().max_victims) break;
    const bool usable = !LeftOut(*unit);
    if (usable) count_.Take(unit->job, unit->tasks);
    units_.push_back(*std::move(unit));
    counted_.push_back(usable);
  }
  return units_.size() > before;
}

bool VictimPlan::TakeUntilEnough() {
  while (!count_.Enough()) {
    if (!TakeMore(1)) return false;
  }
  return true;
}

// A surplus task does not stay if the rest of its job goes.
bool VictimPlan::MayStay(const Indexes& gone, size_t unit) const {
  if (units_[unit].rest) return true;
  return std::none_of(gone.begin(), gone.end(), [&](size_t other) {
    return units_[other].rest && units_[other].job == units_[unit].job;
  });
}

// By the counts; from the last one taken, so that the first in the order go.
VictimPlan::Indexes VictimPlan::DropUnneeded() {
  Indexes needed;
  absl::flat_hash_map<JobId, bool> rest_goes;
  bool some_move = false;
  for (size_t i = units_.size(); i-- > 0;) {
    const VictimUnit& unit = units_[i];
    if (!counted_[i]) continue;
    bool stays = unit.rest || !rest_goes.contains(unit.job);
    stays &= unit.must_move || !some_move;  // it may be in the way of those that move
    if (stays) {
      count_.Return(unit.job, unit.tasks);
      stays = count_.Enough();
      if (!stays) count_.Take(unit.job, unit.tasks);
    }
    counted_[i] = !stays;
    if (stays) continue;
    needed.push_back(i);
    if (unit.rest) rest_goes[unit.job] = true;
    some_move |= unit.must_move;
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

VictimPlan::Indexes VictimPlan::Usable(size_t count) const {
  Indexes units;
  for (size_t i = 0; i < count; ++i) {
    if (counted_[i]) units.push_back(i);
  }
  return units;
}

std::optional<VictimPlan::Attempt> VictimPlan::Gallop() {
  count_.CountAllReleased();
  std::optional<Attempt> found = Try(Usable(units_.size()));
  size_t failed = units_.size();
  if (found.has_value()) return found;
  for (size_t step = 1; !found.has_value(); step *= 2) {
    if (!TakeMore(step)) return std::nullopt;
    found = Try(Usable(units_.size()));
    if (!found.has_value()) failed = units_.size();
  }
  size_t fits = units_.size();
  while (fits - failed > 1) {
    const size_t middle = failed + (fits - failed) / 2;
    std::optional<Attempt> fewer = Try(Usable(middle));
    (fewer.has_value() ? fits : failed) = middle;
    if (fewer.has_value()) found = std::move(fewer);
  }
  return found;
}

std::optional<VictimPlan::Attempt> VictimPlan::Try(const Indexes& units) {
  std::optional<Attempt> best;
  Indexes gone = units;
  // Units that the gang leaves alone stay; then it is placed again to check that it really fits.
  while (true) {
    const Transaction::Mark mark = transaction_.mark();
    VanishAll(gone);
    std::optional<Attempt> attempt;
    const Resources request = RequestOf(state_, goal_.job, goal_.needs);
    const bool fits = QueueRoom(state_, bounds_).Fits(goal_.job.queue, request) &&
                      !placer_.Gates(goal_.job, goal_.needs, Use::kOnceReleased).has_value() &&
                      placer_.PlaceAll(goal_.job, goal_.needs) == TasksIn(goal_.needs);
    if (fits) attempt = Trimmed(gone);
    transaction_.RollbackTo(mark);
    if (!attempt.has_value()) break;
    Indexes needed = std::exchange(attempt->kept, gone);
    best = std::move(attempt);
    if (needed.size() == gone.size()) break;
    gone = std::move(needed);
  }
  return best.has_value() && AnyMoves(best->kept) ? WithMoves(*best) : best;
}

// How many jobs stop as a whole.
int64_t VictimPlan::JobsIn(const Indexes& units) const {
  return std::count_if(units.begin(), units.end(), [&](size_t i) { return units_[i].rest; });
}

bool VictimPlan::AnyMoves(const Indexes& units) const {
  return std::any_of(units.begin(), units.end(), [&](size_t i) { return units_[i].must_move; });
}

// With a place for each unit that must move, in addition to the gang. Other units stay if their
// places are not needed.
std::optional<VictimPlan::Attempt> VictimPlan::WithMoves(const Attempt& found) {
  const Transaction::Mark mark = transaction_.mark();
  VanishAll(found.kept);
  std::optional<Attempt> attempt;
  if (placer_.PlaceAll(goal_.job, goal_.needs) == TasksIn(goal_.needs)) {
    attempt = {.places = transaction_.placed(), .kept = {}};
    transaction_.NominatePlaced(goal_.job.id);
    std::optional<Moves> moves = PlaceMovers(found.kept);
    if (moves.has_value()) attempt->moves = *std::move(moves);
    if (attempt->moves.empty()) attempt.reset();
  }
  PutBack put_back(cycle_, bounds_, goal_.job);
  for (size_t i = found.kept.size(); attempt.has_value() && i-- > 0;) {
    const VictimUnit& unit = units_[found.kept[i]];
    const bool stays =
        !unit.must_move && MayStay(attempt->kept, found.kept[i]) && put_back.Try(unit);
    if (!stays) attempt->kept.push_back(found.kept[i]);
  }
  transaction_.RollbackTo(mark);
  if (attempt.has_value()) std::reverse(attempt->kept.begin(), attempt->kept.end());
  return attempt;
}

// All of the units are gone, and the gang has its places.
std::optional<VictimPlan::Moves> VictimPlan::PlaceMovers(const Indexes& units) {
  std::map<JobId, std::vector<uint32_t>> moving;
  for (size_t i : units) {
    std::vector<uint32_t>& tasks = moving[units_[i].job];
    if (units_[i].must_move) {
      tasks.insert(tasks.end(), units_[i].tasks.begin(), units_[i].tasks.end());
    }
  }
  Moves moves;
  QueueRoom room(state_, bounds_);
  for (auto& [id, tasks] : moving) {
    if (tasks.empty()) continue;
    std::sort(tasks.begin(), tasks.end());
    const Job& job = state_.jobs().At(id);
    const JobNeeds needs = NeedsOfTasks(job, tasks);
    const Resources request = RequestOf(state_, job, needs);
    could_not_move_ = id;
    if (!room.Fits(job.queue, request)) return std::nullopt;
    if (placer_.PlaceAll(job, needs) != TasksIn(needs)) return std::nullopt;
    could_not_move_ = {};
    room.Take(job.queue, request);
    std::vector<Placement>& places = moves[id] = transaction_.placed();
    transaction_.NominatePlaced(id);
    // Other tasks of the group may have been pending and come first; tasks of one group are alike.
    for (size_t i = 0; i < places.size(); ++i) places[i].task = tasks[i];
  }
  return moves;
}

// The units, and what is being released on their nodes or where there is room without them. Those
// of paused jobs are frozen.
void VictimPlan::VanishAll(const Indexes& units, const std::set<JobId>& paused) {
  std::vector<NodeId> nodes = count_.RoomOnceReleased();
  for (size_t i : units) {
    const VictimUnit& unit = units_[i];
    const Job& job = state_.jobs().At(unit.job);
    for (uint32_t task : unit.tasks) nodes.push_back(job.tasks[task].node);
    cycle_.CountWork(unit.tasks.size());
    if (paused.contains(unit.job)) {
      transaction_.Freeze(unit.job, unit.tasks);
    } else {
      transaction_.Vanish(unit.job, unit.tasks);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  LetGoOn(cycle_, nodes, goal_.job.id);
}

// The gang is placed: which of the units must be gone for that?
VictimPlan::Attempt VictimPlan::Trimmed(const Indexes& units) const {
  Attempt attempt{.places = transaction_.placed(), .kept = {}};
  PutBack put_back(cycle_, bounds_, goal_.job);
  bool some_move = false;
  for (size_t i = units.size(); i-- > 0;) {
    const VictimUnit& unit = units_[units[i]];
    const bool stays =
        (unit.must_move || !some_move) && MayStay(attempt.kept, units[i]) && put_back.Try(unit);
    if (stays) continue;
    attempt.kept.push_back(units[i]);
    some_move |= unit.must_move;
  }
  std::reverse(attempt.kept.begin(), attempt.kept.end());
  return attempt;
}

void VictimPlan::Retry(Attempt* attempt) {
  const int64_t each = TasksIn(goal_.needs);
  if (attempt->kept.size() > kMaxRetries || each > kMaxRetriedTasks) return;
  for (size_t i = attempt->kept.size(); i-- > 0;) {
    if (i >= attempt->kept.size() || !MayStay(attempt->kept, attempt->kept[i])) continue;
    std::optional<Attempt> without = Try(AllBut(attempt->kept, i));
    if (without.has_value()) *attempt = *std::move(without);
  }
}

bool VictimPlan::EarlyEnough(const Attempt& attempt, Time from) const {
  const auto reserved = state_.reservations().find(goal_.job.id);
  if (reserved == state_.reservations().end()) return true;
  Duration grace = absl::ZeroDuration();
  for (size_t i : attempt.kept) {
    if (attempt.paused.contains(units_[i].job)) continue;
    grace = std::max(grace, state_.jobs().At(units_[i].job).kill_grace);
  }
  return from + grace + cycle_.policies().eviction().min_gain < reserved->second.start;
}

Resources VictimPlan::ClaimsOf(const Attempt& attempt) const {
  Resources claims;
  for (size_t i : attempt.kept) claims += ClaimedOf(state_, units_[i]);
  return claims;
}

// What was reclaimed for the queue stays within what it may claim.
bool VictimPlan::KeepsClaims(const Attempt& attempt) const {
  if (!goal_.claim_room.has_value()) return true;
  const Resources given_up = ClaimsOf(attempt);
  if (given_up.IsZero()) return true;
  const Resources request = RequestOf(state_, goal_.job, goal_.needs);
  for (size_t i = 0; i < kMaxResourceKinds; ++i) {
    const int64_t room = std::max<int64_t>(goal_.claim_room->amount[i], 0);
    if (request.amount[i] > given_up.amount[i] + room) return false;
  }
  return true;
}

// Each place that one takes may be missing for the next, so only deciding shows it.
bool VictimPlan::AllMove(const Attempt& attempt) {
  if (attempt.kept.empty()) return true;
  const Transaction::Mark mark = transaction_.mark();
  const bool all = Decide(attempt);
  transaction_.RollbackTo(mark);
  return all;
}

bool VictimPlan::Decide(const Attempt& attempt) {
  const Transaction::Mark mark = transaction_.mark();
  const JobId id = goal_.job.id;
  if (attempt.kept.empty() && BindNow()) return true;
  if (state_.reservations().contains(id))
    transaction_.Decide(JobReserved{.job = id, .reservation = {}});
  const bool passed_on = goal_.claim_room.has_value() && !ClaimsOf(attempt).IsZero();
  const bool claims = (goal_.claims && !attempt.kept.empty()) || passed_on;
  transaction_.Decide(TasksNominated{.job = id, .placements = attempt.places, .claims = claims});
  std::map<JobId, Going> going;
  QueueRoom room(state_, bounds_);  // after all of them are gone
  for (size_t i : attempt.kept) {
    const VictimUnit& unit = units_[i];
    Going& of_job = going[unit.job];
    of_job.tasks.insert(of_job.tasks.end(), unit.tasks.begin(), unit.tasks.end());
    of_job.whole |= unit.rest;
    if (attempt.paused.contains(unit.job)) continue;
    room.Give(state_.jobs().At(unit.job).queue, RequestOf(state_, unit));
  }
  for (auto& [job, of_job] : going) std::sort(of_job.tasks.begin(), of_job.tasks.end());
  for (const auto& [job, moves] : attempt.moves) {  // their places are taken before others look
    const Job& mover = state_.jobs().At(job);
    room.Take(mover.queue, RequestOf(state_, mover, NeedsOfTasks(mover, TasksOf(moves))));
    Stop(mover, going[job], moves, ReleaseReason::kConsolidated,
         "what its queue is entitled to is fragmented");
  }
  for (const auto& [job, of_job] : going) {
    if (attempt.moves.contains(job)) continue;
    if (attempt.paused.contains(job)) {
      PauseVictim(state_.jobs().At(job), of_job);
      continue;
    }
    if (Release(state_.jobs().At(job), of_job, &room)) continue;
    could_not_move_ = job;
    transaction_.RollbackTo(mark);
    return false;
  }
  cycle_.CountWork(attempt.places.size());
  transaction_.Sync();
  return true;
}

// No victims; and if nothing is being released for it either, it starts now.
bool VictimPlan::BindNow() {
  const Transaction::Mark mark = transaction_.mark();
  const bool fits = !placer_.Gates(goal_.job, goal_.needs).has_value() &&
                    placer_.PlaceAll(goal_.job, goal_.needs) == TasksIn(goal_.needs);
  if (fits) {
    placer_.Bind(goal_.job);
  } else {
    transaction_.RollbackTo(mark);
  }
  return fits;
}

}  // namespace berth
