#include "core/engine/victim_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/engine/leaving.h"
#include "core/engine/lifecycle_steps.h"
#include "core/engine/verdict.h"

namespace berth {
namespace {

// What the put-back units take again, on top of the state.
class PutBack {
 public:
  PutBack(const ClusterState& state, const QueueBounds& bounds)
      : state_(state), room_(state, bounds) {}

  // True, and taken, if all places of the unit are still free and no bound of the gang's is broken.
  bool Try(const VictimUnit& unit) {
    const Job& job = state_.jobs().At(unit.job);
    const Resources request = RequestOf(state_, unit);
    if (!room_.Fits(job.queue, request) || !Fits(job, unit)) return false;
    room_.Take(job.queue, request);
    for (uint32_t task : unit.tasks) Take(job, task);
    return true;
  }

 private:
  struct Taken {
    Resources amounts;
    DeviceUse devices;
  };

  const ShapeEntry& ShapeOf(const Job& job, uint32_t task) const {
    return state_.interner().Shape(job.groups[GroupOf(job, task)].shape);
  }
  // Devices are told apart one by one; other amounts of tasks on one node add up.
  bool Fits(const Job& job, const VictimUnit& unit) const {
    absl::flat_hash_map<NodeId, Taken> own;
    for (uint32_t index : unit.tasks) {
      const Task& task = job.tasks[index];
      const Node& node = state_.nodes().At(task.node);
      const ShapeEntry& shape = ShapeOf(job, index);
      Taken& mine = own[task.node];
      DeviceUse used = TakenDevices(node) + mine.devices;
      Resources needed = mine.amounts += shape.resources;
      if (const auto taken = taken_.find(task.node); taken != taken_.end()) {
        needed += taken->second.amounts;
        used += taken->second.devices;
      }
      const DeviceUse use = UseOf(node, shape, task.devices);
      mine.devices += use;
      for (const DeviceKindSet& kind : node.kinds) needed[kind.kind] = 0;
      Resources left = node.capacity - node.allocated;
      left -= node.reserved;
      if (!HasRoom(node, used, use)) return false;
      for (size_t i = 0; i < kMaxResourceKinds; ++i) {
        if (needed.amount[i] > 0 && needed.amount[i] > left.amount[i]) return false;
      }
    }
    return true;
  }
  void Take(const Job& job, uint32_t index) {
    Taken& taken = taken_[job.tasks[index].node];
    const ShapeEntry& shape = ShapeOf(job, index);
    const Task& task = job.tasks[index];
    taken.amounts += shape.resources;
    taken.devices += UseOf(state_.nodes().At(task.node), shape, task.devices);
  }

  const ClusterState& state_;
  QueueRoom room_;
  absl::flat_hash_map<NodeId, Taken> taken_;
};

std::vector<size_t> AllBut(const std::vector<size_t>& units, size_t at) {
  std::vector<size_t> rest = units;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(at));
  return rest;
}

std::vector<size_t> FirstOf(size_t count) {
  std::vector<size_t> units(count);
  for (size_t i = 0; i < count; ++i) units[i] = i;
  return units;
}

// What the tasks need, group by group.
JobNeeds NeedsOfTasks(const Job& job, const std::vector<uint32_t>& tasks) {
  JobNeeds needs{.gang = true, .groups = {}};
  for (uint32_t task : tasks) {
    const uint32_t group = GroupOf(job, task);
    if (needs.groups.empty() || needs.groups.back().group != group) {
      needs.groups.push_back({group, 0});
    }
    ++needs.groups.back().count;
  }
  return needs;
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
      bounds_(BoundsAbove(cycle, goal_.job.queue)),
      count_(cycle, goal_.job, goal_.needs, bounds_, only) {
  if (only.has_value()) placer_.Confine(goal_.job.id, *scope->tree, *only);
}

bool VictimPlan::Find() {
  if (!TakeUntilEnough()) {
    short_of_share_ = count_.OnlySharesShort();
    return false;
  }
  tried_ = true;
  std::optional<Attempt> attempt = Try(LeaveNeedless());
  if (!attempt.has_value()) attempt = Gallop();
  if (!attempt.has_value()) return false;
  Retry(&*attempt);
  if (!EarlyEnough(*attempt)) return false;
  if (goal_.must_move && !AllMove(*attempt)) return false;
  found_ = std::move(attempt);
  return true;
}

bool VictimPlan::DecideFound() {
  const uint64_t bound = cycle_.counters().tasks_placed;
  if (!Decide(*found_)) return false;
  // Places for which it waits count as well.
  cycle_.counters().tasks_placed = bound + found_->places.size();
  return true;
}

VictimCost VictimPlan::CostFound() const {
  std::map<int32_t, VictimCost::Of, std::greater<>> by_priority;
  for (size_t i : found_->kept) {
    const VictimUnit& unit = units_[i];
    const int32_t priority = goal_.must_move ? 0 : state_.jobs().At(unit.job).priority;
    VictimCost::Of& of = by_priority[priority];
    of.priority = priority;
    of.loss += unit.loss;
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
    count_.Take(*unit);
    units_.push_back(*std::move(unit));
  }
  return units_.size() > before;
}

bool VictimPlan::TakeUntilEnough() {
  while (!count_.Enough()) {
    if (!TakeMore(1)) return false;
  }
  return true;
}

// A surplus task does not stay where the rest of its job goes.
bool VictimPlan::MayStay(const Indexes& gone, size_t unit) const {
  if (units_[unit].rest) return true;
  return std::none_of(gone.begin(), gone.end(), [&](size_t other) {
    return units_[other].rest && units_[other].job == units_[unit].job;
  });
}

// By the counts; from the last one taken, so that those go who are first in the order.
VictimPlan::Indexes VictimPlan::LeaveNeedless() {
  Indexes needed;
  absl::flat_hash_map<JobId, bool> rest_goes;
  for (size_t i = units_.size(); i-- > 0;) {
    const VictimUnit& unit = units_[i];
    bool stays = unit.rest || !rest_goes.contains(unit.job);
    if (stays) {
      count_.Return(unit);
      stays = count_.Enough();
      if (!stays) count_.Take(unit);
    }
    if (stays) continue;
    needed.push_back(i);
    if (unit.rest) rest_goes[unit.job] = true;
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

std::optional<VictimPlan::Attempt> VictimPlan::Gallop() {
  count_.CountAllReleased();
  std::optional<Attempt> found = Try(FirstOf(units_.size()));
  size_t failed = units_.size();
  if (found.has_value()) return found;
  for (size_t step = 1; !found.has_value(); step *= 2) {
    if (!TakeMore(step)) return std::nullopt;
    found = Try(FirstOf(units_.size()));
    if (!found.has_value()) failed = units_.size();
  }
  size_t fits = units_.size();
  while (fits - failed > 1) {
    const size_t middle = failed + (fits - failed) / 2;
    std::optional<Attempt> fewer = Try(FirstOf(middle));
    (fewer.has_value() ? fits : failed) = middle;
    if (fewer.has_value()) found = std::move(fewer);
  }
  return found;
}

std::optional<VictimPlan::Attempt> VictimPlan::Try(const Indexes& units) {
  std::optional<Attempt> best;
  Indexes gone = units;
  // Those that the gang leaves alone stay, and it is placed anew to see that it really fits.
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
  return best;
}

// The units, and what is being released beside them or where there is room without them.
void VictimPlan::VanishAll(const Indexes& units) {
  std::vector<NodeId> nodes = count_.RoomOnceReleased();
  for (size_t i : units) {
    const VictimUnit& unit = units_[i];
    const Job& job = state_.jobs().At(unit.job);
    for (uint32_t task : unit.tasks) nodes.push_back(job.tasks[task].node);
    cycle_.CountWork(unit.tasks.size());
    transaction_.Vanish(unit.job, unit.tasks);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  LetGoOn(cycle_, nodes, goal_.job.id);
}

// The gang is placed: which of the units must be gone for that?
VictimPlan::Attempt VictimPlan::Trimmed(const Indexes& units) const {
  Attempt attempt{.places = transaction_.placed(), .kept = {}};
  PutBack put_back(state_, bounds_);
  for (size_t i = units.size(); i-- > 0;) {
    const bool stays = MayStay(attempt.kept, units[i]) && put_back.Try(units_[units[i]]);
    if (!stays) attempt.kept.push_back(units[i]);
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

bool VictimPlan::EarlyEnough(const Attempt& attempt) const {
  const auto reserved = state_.reservations().find(goal_.job.id);
  if (reserved == state_.reservations().end()) return true;
  Duration grace = absl::ZeroDuration();
  for (size_t i : attempt.kept) {
    grace = std::max(grace, state_.jobs().At(units_[i].job).kill_grace);
  }
  const Time start = cycle_.now() + grace;
  return start + cycle_.policies().eviction().min_gain < reserved->second.start;
}

// As each place that one takes may be wanting to the next, only deciding tells.
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
  transaction_.Decide(TasksNominated{.job = id, .placements = attempt.places});
  std::map<JobId, std::vector<uint32_t>> tasks;
  std::map<JobId, bool> whole;
  for (size_t i : attempt.kept) {
    const VictimUnit& unit = units_[i];
    tasks[unit.job].insert(tasks[unit.job].end(), unit.tasks.begin(), unit.tasks.end());
    whole[unit.job] |= unit.rest;
  }
  QueueRoom room(state_, bounds_);  // once all of them have gone
  for (size_t i : attempt.kept) {
    room.Give(state_.jobs().At(units_[i].job).queue, RequestOf(state_, units_[i]));
  }
  for (auto& [job, of_job] : tasks) {
    std::sort(of_job.begin(), of_job.end());
    if (Release(state_.jobs().At(job), of_job, whole[job], &room)) continue;
    transaction_.RollbackTo(mark);
    return false;
  }
  cycle_.CountWork(attempt.places.size());
  transaction_.Sync();
  return true;
}

// Nobody has to go; and if nothing is waited for either, it starts now.
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

bool VictimPlan::Release(const Job& victim, const std::vector<uint32_t>& tasks, bool whole,
                         QueueRoom* room) {
  std::vector<Placement> moves;
  const Resources request = RequestOf(state_, victim, NeedsOfTasks(victim, tasks));
  if (room->Fits(victim.queue, request)) moves = PlacesElsewhere(victim, tasks);
  if (!moves.empty()) room->Take(victim.queue, request);
  if (goal_.must_move && moves.empty()) return false;
  const Look look{state_, victim, cycle_.now(), cycle_.policies().lifecycle()};
  const std::string why = goal_.why(victim);
  const std::string message =
      absl::StrCat(whole ? "" : absl::StrCat(tasks.size(), " surplus tasks "),
                   moves.empty() ? "evicted" : "moved", " for job ", goal_.job.name, ": ", why);
  Step step;
  if (whole) {
    step = RestartJob(look, goal_.reason, message, absl::InfinitePast(), victim.status.retries,
                      /*rerun_all=*/false);
  } else {
    Requeue(look, tasks, goal_.reason, &step);
    step.push_back(WithStatus(look, [&](JobStatus& status) { status.message = message; }));
  }
  for (EventBody& decision : step) {
    if (auto* released = std::get_if<TasksReleased>(&decision)) {
      released->beneficiary = goal_.job.id;
      released->detail = why;
      released->moves_to = moves;
    }
    transaction_.Decide(std::move(decision));
  }
  return true;
}

// Free now, for all of the tasks; empty if there is no room. The beneficiary's places are reserved.
std::vector<Placement> VictimPlan::PlacesElsewhere(const Job& job,
                                                   const std::vector<uint32_t>& tasks) {
  const JobNeeds needs = NeedsOfTasks(job, tasks);
  if (!LeastOf(state_, job, needs).FitsIn(state_.free().total())) return {};
  const Transaction::Mark mark = transaction_.mark();
  transaction_.Vanish(job.id, tasks);
  std::vector<Placement> places;
  if (placer_.PlaceAll(job, needs) == TasksIn(needs)) places = transaction_.placed();
  transaction_.RollbackTo(mark);
  // Other tasks of the group may have waited and come first; those of one group are alike.
  for (size_t i = 0; i < places.size(); ++i) places[i].task = tasks[i];
  return places;
}

}  // namespace berth
