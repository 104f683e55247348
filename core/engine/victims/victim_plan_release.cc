// How the victims of a plan leave: stopped, moved at once, or frozen where they are.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/victim_plan.h"
#include "core/model/pauses.h"

namespace berth {

// Jobs of the plan that go as a whole and can be frozen; those that were taken last, who have the
// highest priority or would lose most, first.
std::vector<JobId> VictimPlan::CanPause(const Attempt& attempt) const {
  std::map<JobId, int32_t> tasks;
  for (size_t i : attempt.kept) {
    tasks[units_[i].job] += static_cast<int32_t>(units_[i].tasks.size());
  }
  std::vector<JobId> jobs;
  for (size_t at = attempt.kept.size(); at-- > 0;) {
    const VictimUnit& unit = units_[attempt.kept[at]];
    const Job& job = state_.jobs().At(unit.job);
    const bool whole = unit.rest && tasks[unit.job] == job.occupying;
    if (whole && CanYield(state_, job)) jobs.push_back(job.id);
  }
  return jobs;
}

// Places for the gang beside the frozen tasks of these jobs, while all other victims are gone;
// empty if there are none. The queues hold the frozen jobs and the gang: their limits count, and
// not their shares, as the gang uses no more than the jobs give back.
std::vector<Placement> VictimPlan::PlacesBeside(const Attempt& attempt,
                                                const std::set<JobId>& paused) {
  const Transaction::Mark mark = transaction_.mark();
  VanishAll(attempt.kept, paused);
  const Resources request = RequestOf(state_, goal_.job, goal_.needs);
  const QueueId queue = goal_.job.queue;
  const bool fits = QueueRoom(state_, LimitsAbove(state_, queue)).Fits(queue, request) &&
                    !placer_.Gates(goal_.job, goal_.needs, Use::kOnceReleased).has_value() &&
                    placer_.PlaceAll(goal_.job, goal_.needs) == TasksIn(goal_.needs);
  std::vector<Placement> places;
  if (fits) places = transaction_.placed();
  transaction_.RollbackTo(mark);
  return places;
}

// Freezes as many of the victims as it can instead of stopping them.
void VictimPlan::PauseSome(Attempt* attempt) {
  const std::vector<JobId> jobs = CanPause(*attempt);
  if (jobs.empty()) return;
  std::set<JobId> paused(jobs.begin(), jobs.end());
  std::vector<Placement> places = PlacesBeside(*attempt, paused);
  if (places.empty() && (jobs.size() == 1 || jobs.size() > kMaxRetries)) return;
  if (places.empty()) {
    paused.clear();
    for (const JobId job : jobs) {
      paused.insert(job);
      std::vector<Placement> beside = PlacesBeside(*attempt, paused);
      if (beside.empty()) {
        paused.erase(job);
      } else {
        places = std::move(beside);
      }
    }
  }
  if (paused.empty()) return;
  attempt->places = std::move(places);
  attempt->paused = std::move(paused);
}

bool VictimPlan::AllPause(const Attempt& attempt) const {
  return std::all_of(attempt.kept.begin(), attempt.kept.end(),
                     [&](size_t i) { return attempt.paused.contains(units_[i].job); });
}

void VictimPlan::PauseVictim(const Job& victim, const Going& going) {
  std::vector<uint32_t> tasks;
  for (uint32_t task : going.tasks) {
    if (victim.tasks[task].pause != PauseState::kPaused) tasks.push_back(task);
  }
  const Duration longest = cycle_.policies().lifecycle().longest_pause;
  transaction_.Decide(TasksPaused{.job = victim.id,
                                  .tasks = std::move(tasks),
                                  .until = cycle_.now() + longest,
                                  .beneficiary = goal_.job.id,
                                  .detail = goal_.why(victim, victim.priority)});
}

bool VictimPlan::Release(const Job& victim, const Going& going, QueueRoom* room) {
  const std::vector<Placement> moves = MovesOf(victim, going.tasks, going.whole, room);
  if (goal_.must_move && moves.size() < going.tasks.size()) return false;
  const int32_t priority = going.whole ? victim.priority : GreatestPriority(victim, going.tasks);
  Stop(victim, going, moves, goal_.reason, goal_.why(victim, priority));
  return true;
}

void VictimPlan::Stop(const Job& victim, const Going& going, const std::vector<Placement>& moves,
                      ReleaseReason reason, const std::string& why) {
  const Look look{state_, victim, cycle_.now(), cycle_.policies().lifecycle()};
  const std::string message =
      absl::StrCat(going.whole ? "" : absl::StrCat(going.tasks.size(), " surplus tasks "),
                   moves.empty() ? "evicted" : "moved", " for job ", goal_.job.name, ": ", why);
  Step step;
  if (going.whole) {
    step = RestartJob(look, reason, message, absl::InfinitePast(), victim.status.retries, false);
  } else {
    Requeue(look, going.tasks, reason, &step);
    step.push_back(WithStatus(look, [&](JobStatus& status) { status.message = message; }));
  }
  NoteEviction(look, going.whole, &step);
  for (EventBody& decision : step) {
    if (auto* released = std::get_if<TasksReleased>(&decision)) {
      released->beneficiary = goal_.job.id;
      released->detail = why;
      released->moves_to = moves;
    }
    transaction_.Decide(std::move(decision));
  }
}

// Where the tasks move at once, with `room` reduced accordingly; empty: nowhere. If an elastic job
// stops as a whole, at least its minimum moves: the rest grows back.
std::vector<Placement> VictimPlan::MovesOf(const Job& victim, const std::vector<uint32_t>& tasks,
                                           bool whole, QueueRoom* room) {
  if (!whole && IsPaused(victim.status)) return {};  // they would run while the others are frozen
  std::vector<std::vector<uint32_t>> choices = {tasks};
  if (whole && !goal_.must_move) {
    for (const VictimUnit& unit : units_) {
      const bool minimum = unit.job == victim.id && unit.rest && unit.tasks.size() < tasks.size();
      if (minimum) choices.emplace_back(unit.tasks.begin(), unit.tasks.end());
    }
  }
  for (const std::vector<uint32_t>& moving : choices) {
    const Resources request = RequestOf(state_, victim, NeedsOfTasks(victim, moving));
    if (!room->Fits(victim.queue, request)) continue;
    std::vector<Placement> places = PlacesElsewhere(victim, moving, tasks);
    if (places.empty()) continue;
    room->Take(victim.queue, request);
    return places;
  }
  return {};
}

// Places for all of `tasks`, free now or once `gone`, all of the job's tasks that stop, have left;
// empty if there is no room. The beneficiary's places are reserved.
std::vector<Placement> VictimPlan::PlacesElsewhere(const Job& job,
                                                   const std::vector<uint32_t>& tasks,
                                                   const std::vector<uint32_t>& gone) {
  const JobNeeds needs = NeedsOfTasks(job, tasks);
  const Resources free = state_.free().total() + RequestOf(state_, job, NeedsOfTasks(job, gone));
  if (!LeastOf(state_, job, needs).FitsIn(free)) return {};
  const Transaction::Mark mark = transaction_.mark();
  transaction_.Vanish(job.id, gone);
  std::vector<Placement> places;
  if (placer_.PlaceAll(job, needs) == TasksIn(needs)) places = transaction_.placed();
  transaction_.RollbackTo(mark);
  // Other tasks of the group may have been pending and come first; tasks of one group are alike.
  for (size_t i = 0; i < places.size(); ++i) places[i].task = tasks[i];
  return places;
}

}  // namespace berth
