// migrate: moves jobs away from where they should not stay, although they run well: the place
// first, then the signal, then the move. Nothing is stopped while there is no other place.
//
//   a node that drains with DrainMode::kWhenPlaced    its tasks, or, where the others cannot go on
//                                                     without them, their jobs, which keep their
//                                                     other places
//   a degraded domain (HyperNodeSpec::health)         jobs that may migrate (JobSpec::may_migrate)
//                                                     and run on several nodes, if all of them get
//                                                     places outside
//
// A job leaves a degraded domain only if that pays: what it would lose by staying, `slowdown` of
// the time that it still runs, is more than what the move costs, a restart and the work since its
// last checkpoint. And not before it has run for `cooldown`, so that a domain whose health changes
// often moves nobody often.
//
//   gang of 4 on n0..n3, n2 drains, n4 is free   the gang is asked to save its work and stops;
//                                                worker-2 has n4, the others their own nodes
//   no other node is free                        all go on; the next cycle looks again
//
// At most max_jobs leave at a time: those that still have tasks to stop there count.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/engine/lifecycle/steps.h"
#include "core/engine/place/placer.h"
#include "core/engine/search/verdict.h"
#include "core/engine/victims/victim_units.h"
#include "core/model/transitions.h"
#include "core/policies/registry.h"
#include "core/topology/domain_placer.h"

namespace berth {
namespace {

bool LeavesByMove(const Look& look, uint32_t index) {
  const Task& task = look.job.tasks[index];
  if (!MayLeave(task) || !look.state.Expels(task.node)) return false;
  const NodeStatus& node = look.state.nodes().At(task.node).status;
  return MustLeave(node, task.devices) && DrainModeOf(node) == DrainMode::kWhenPlaced;
}

bool MayMove(const Job& job) {
  const JobStatus& status = job.status;
  const GroupTally tally = TallyOf(job);
  const bool placed = status.state == JobState::kBinding || status.state == JobState::kRunning;
  return placed && !IsPaused(status) && !status.suspended && !status.cancelled &&
         tally.Nominated() == 0 && tally.In(TaskState::kLost) == 0;
}

bool IsLeaving(const Job& job) { return TallyOf(job).In(TaskState::kReleasing) > 0; }

// How long it is expected to run on; InfiniteDuration: nobody knows.
Duration RestOf(const Job& job, Time now) {
  Time end = PlannedEnd(job);
  if (job.prediction.expected_s > 0) {
    end = std::min(end, job.status.start + absl::Seconds(job.prediction.expected_s));
  }
  return std::max(end - now, absl::ZeroDuration());
}

Duration Unsaved(const Job& job, Time now) {
  int64_t most = 0;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state == TaskState::kRunning) most = std::max(most, SecondsLost(job, i, now));
  }
  return absl::Seconds(most);
}

bool OnSeveralNodes(const Job& job) {
  std::optional<NodeId> first;
  return std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    if (task.state != TaskState::kRunning) return false;
    if (!first.has_value()) first = task.node;
    return task.node != *first;
  });
}

// Where the tasks go, in the order of the tasks.
using Places = std::vector<Placement>;

class Migration {
 public:
  explicit Migration(Cycle& cycle) : cycle_(cycle), state_(cycle.state()), placer_(cycle) {}

  void Run() {
    LeaveDrains();
    LeaveDegraded();
  }

 private:
  void LeaveDrains();
  void LeaveDegraded();
  bool Pays(const Job& job);
  bool MoveOffDrain(const Job& job);
  bool MoveOut(const Job& job, const TopologyTree& tree);
  std::optional<Places> Find(const Job& job, const TaskList& gone, const TaskList& leaving);
  bool PlaceMovers(const Job& job, const TaskList& movers, Places* places);
  Places Stay(const Job& job, const TaskList& gone, const TaskList& leaving) const;
  void Decide(Step step, const Places& places);
  std::vector<JobId> JobsOn(const std::vector<NodeId>& nodes) const;
  int32_t Leaving(const std::vector<JobId>& jobs) const;
  // False: no more jobs may leave, or the budget is spent.
  bool Room(int32_t leaving);

  Cycle& cycle_;
  const ClusterState& state_;
  Placer placer_;
  bool tried_ = false;
};

std::vector<JobId> Migration::JobsOn(const std::vector<NodeId>& nodes) const {
  std::set<JobId> jobs;
  for (NodeId node : nodes) {
    for (TaskKey key : state_.nodes().At(node).tasks) jobs.insert(key.job);
  }
  return {jobs.begin(), jobs.end()};
}

int32_t Migration::Leaving(const std::vector<JobId>& jobs) const {
  return static_cast<int32_t>(std::count_if(
      jobs.begin(), jobs.end(), [&](JobId id) { return IsLeaving(state_.jobs().At(id)); }));
}

bool Migration::Room(int32_t leaving) {
  if (leaving >= cycle_.policies().migration().max_jobs) return false;
  if (!std::exchange(tried_, true) || !cycle_.BudgetSpent()) return true;
  cycle_.Cut();
  return false;
}

void Migration::LeaveDrains() {
  std::vector<NodeId> nodes;
  for (NodeId id : state_.expelling_nodes()) {
    const NodeStatus& status = state_.nodes().At(id).status;
    const bool moves = DrainModeOf(status) == DrainMode::kWhenPlaced;
    if (moves && DrainDeadline(status) > cycle_.now()) nodes.push_back(id);
  }
  const std::vector<JobId> jobs = JobsOn(nodes);
  int32_t leaving = Leaving(jobs);
  for (JobId id : jobs) {
    const Job& job = state_.jobs().At(id);
    if (IsLeaving(job) || !MayMove(job)) continue;
    if (!Room(leaving)) return;
    if (MoveOffDrain(job)) ++leaving;
  }
}

// Those that stay where they are while their job restarts.
Places Migration::Stay(const Job& job, const TaskList& gone, const TaskList& leaving) const {
  Places places;
  for (uint32_t task : gone) {
    if (std::binary_search(leaving.begin(), leaving.end(), task)) continue;
    places.push_back({task, job.tasks[task].node, job.tasks[task].devices});
  }
  return places;
}

// Spares do without a place.
TaskList WithoutSpares(const Job& job, TaskList tasks) {
  const auto spare = [&](uint32_t task) { return IsSpare(job.groups[GroupOf(job, task)]); };
  tasks.erase(std::remove_if(tasks.begin(), tasks.end(), spare), tasks.end());
  return tasks;
}

// Adds places for these.
bool Migration::PlaceMovers(const Job& job, const TaskList& movers, Places* places) {
  const size_t before = cycle_.transaction().placed().size();
  const JobNeeds needs = NeedsOfTasks(job, movers);
  const bool any = !movers.empty();  // else only spares leave
  if (any && placer_.PlaceAll(job, needs) != static_cast<int32_t>(movers.size())) return false;
  *places = cycle_.transaction().placed();
  // Other tasks of the group may have been pending and come first; tasks of one group are alike.
  for (size_t i = 0; i < movers.size(); ++i) (*places)[before + i].task = movers[i];
  return true;
}

// Places for all of `gone`, the job's tasks that stop, of which `leaving` go elsewhere: others keep
// theirs, if the job's topology allows it.
std::optional<Places> Migration::Find(const Job& job, const TaskList& gone,
                                      const TaskList& leaving) {
  // Others keep their places, so what leaves needs free ones.
  const JobNeeds needs = NeedsOfTasks(job, WithoutSpares(job, leaving));
  if (!LeastOf(state_, job, needs).FitsIn(state_.free().total())) return std::nullopt;
  Transaction& transaction = cycle_.transaction();
  const Window window = WindowFrom(job, cycle_.now());
  for (const bool keep : {true, false}) {
    if (!keep && leaving.size() == gone.size()) break;
    const Transaction::Mark mark = transaction.mark();
    transaction.Vanish(job.id, gone);
    Places places;
    const Places stay = keep ? Stay(job, gone, leaving) : Places{};
    // It must be allowed to start there: its queue may be closed, or over a limit.
    const bool found = !placer_.Gates(job, NeedsOfTasks(job, gone)).has_value() &&
                       (stay.empty() || placer_.PlaceOn(job, stay, window)) &&
                       PlaceMovers(job, WithoutSpares(job, keep ? leaving : gone), &places);
    transaction.RollbackTo(mark);
    if (found) return places;
  }
  return std::nullopt;
}

void Migration::Decide(Step step, const Places& places) {
  const auto place_of = [&](uint32_t task) {
    return std::find_if(places.begin(), places.end(),
                        [&](const Placement& place) { return place.task == task; });
  };
  for (EventBody& decision : step) {
    if (auto* released = std::get_if<TasksReleased>(&decision)) {
      for (uint32_t task : released->tasks) {
        if (place_of(task) != places.end()) released->moves_to.push_back(*place_of(task));
      }
    }
    cycle_.transaction().Decide(std::move(decision));
  }
  cycle_.transaction().Sync();
}

TaskList ReleasedBy(const Step& step) {
  TaskList tasks;
  for (const EventBody& decision : step) {
    const auto* released = std::get_if<TasksReleased>(&decision);
    if (released != nullptr) tasks = released->tasks;
  }
  return tasks;
}

// A job that restarts as a whole keeps its places although one of them may be lost meanwhile.
Step RestartElsewhere(const Look& look, const std::string& message) {
  Step step = RestartJob(look, ReleaseReason::kDrain, message, absl::InfinitePast(),
                         look.job.status.retries, /*rerun_all=*/false);
  if (look.parameters.restart_hold > absl::ZeroDuration()) {
    std::get<JobStatusChanged>(step.back()).status.places_until = absl::InfiniteFuture();
  }
  return step;
}

bool Migration::MoveOffDrain(const Job& job) {
  const Look look{state_, job, cycle_.now(), cycle_.policies().lifecycle()};
  TaskList leaving;
  for (uint32_t i = 0; i < job.tasks.size(); ++i) {
    if (LeavesByMove(look, i)) leaving.push_back(i);
  }
  cycle_.CountWork(1 + leaving.size());
  if (leaving.empty()) return false;
  const std::string message = absl::StrCat(TaskLabel(job, leaving[0]), " had to leave ",
                                           state_.nodes().At(job.tasks[leaving[0]].node).spec.name,
                                           "; there is another place");
  Step step;
  if (Replaceable(job, leaving)) {
    Requeue(look, leaving, ReleaseReason::kDrain, &step);
    step.push_back(WithStatus(look, [&](JobStatus& status) { status.message = message; }));
  } else {
    step = RestartElsewhere(look, message);
  }
  const auto places = Find(job, ReleasedBy(step), leaving);
  if (!places.has_value()) return false;
  Decide(std::move(step), *places);
  return true;
}

void Migration::LeaveDegraded() {
  const TopologyTree* tree = TreesOf(cycle_).Of(state_, kNetworkKind);
  if (tree == nullptr || !tree->any_degraded()) return;
  std::vector<NodeId> nodes;
  for (NodeId node : tree->nodes()) {
    if (tree->At(tree->LowestOf(node)).degraded) nodes.push_back(node);
  }
  const std::vector<JobId> jobs = JobsOn(nodes);
  int32_t leaving = Leaving(jobs);
  for (JobId id : jobs) {
    const Job& job = state_.jobs().At(id);
    const bool runs = job.status.state == JobState::kRunning && MayMove(job) && !IsLeaving(job);
    if (!runs || !job.may_migrate || !Pays(job)) continue;
    if (!Room(leaving)) return;
    if (MoveOut(job, *tree)) ++leaving;
  }
}

bool Migration::Pays(const Job& job) {
  const MigrationParameters& parameters = cycle_.policies().migration();
  const Time now = cycle_.now();
  const Time may = job.status.start + parameters.cooldown;
  if (may > now) {
    cycle_.WakeBy(may);
    return false;
  }
  if (!OnSeveralNodes(job)) return false;
  const Duration rest = RestOf(job, now);
  if (rest == absl::InfiniteDuration()) return true;
  return rest * parameters.slowdown / 100 > parameters.restart_cost + Unsaved(job, now);
}

bool Migration::MoveOut(const Job& job, const TopologyTree& tree) {
  const Look look{state_, job, cycle_.now(), cycle_.policies().lifecycle()};
  const auto degraded = [&](NodeId node) { return tree.At(tree.LowestOf(node)).degraded; };
  const auto first = std::find_if(job.tasks.begin(), job.tasks.end(), [&](const Task& task) {
    return Holds(task) && degraded(task.node);
  });
  if (first == job.tasks.end()) return false;
  const HyperNodeId domain = tree.At(tree.LowestOf((*first).node)).id;
  Step step = RestartElsewhere(
      look, absl::StrCat("had to leave HyperNode ", state_.hyper_nodes().At(domain).spec.name,
                         ", which is degraded; there are other places"));
  const TaskList gone = ReleasedBy(step);
  cycle_.CountWork(gone.size());
  const auto places = Find(job, gone, gone);
  if (!places.has_value() || std::any_of(places->begin(), places->end(),
                                         [&](const Placement& at) { return degraded(at.node); })) {
    return false;
  }
  Decide(std::move(step), *places);
  return true;
}

class MigrateAction final : public Action {
 public:
  absl::string_view name() const override { return "migrate"; }
  ActionRole role() const override { return ActionRole::kOther; }
  void Run(Cycle& cycle) const override { Migration(cycle).Run(); }
};

}  // namespace

std::unique_ptr<Action> MakeMigrate() { return std::make_unique<MigrateAction>(); }

}  // namespace berth
