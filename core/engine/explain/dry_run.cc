#include "core/engine/explain/dry_run.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/engine/cycle.h"
#include "core/engine/engine_cache.h"
#include "core/engine/order/rank_stage.h"
#include "core/engine/place/nomination_stage.h"
#include "core/engine/place/reserve.h"
#include "core/model/apply.h"
#include "core/model/finished_run.h"
#include "core/model/line.h"
#include "core/model/state_editor.h"

namespace berth {
namespace {

// Adds a job, and withdraws another one, while this object lives. Then everything is restored,
// including what planning remembers of earlier cycles.
class TrialJob {
 public:
  TrialJob(ClusterState& state, std::optional<JobId> withdrawn)
      : state_(state), editor_(state, EditMode::kTentative), progress_(CacheOf(editor_).missed) {
    editor_.BeginTrial();
    if (withdrawn.has_value()) Withdraw(*withdrawn);
  }
  ~TrialJob();
  TrialJob(const TrialJob&) = delete;
  TrialJob& operator=(const TrialJob&) = delete;

  const Job& Add(const JobSpec& spec, const Policies& policies, Time now) {
    id_ = state_.next_job_id();
    editor_.AddJob(id_, spec, now, PredictionFor(state_, spec));
    editor_.EnterLine(id_, WorkOf(state_, state_.jobs().At(id_)));
    editor_.Sync();
    RankJob(editor_, state_, policies, state_.jobs().At(id_), now);
    const Job& job = state_.jobs().At(id_);
    // Like a real submit, it may reopen its class, to take room from jobs of lower priority.
    const PendingClass* of = state_.pending().FindClass(job.pending_class);
    if (of != nullptr && of->jobs.begin()->job == id_) editor_.Reopen(job.pending_class);
    return job;
  }
  void Hold(JobStatus status) {
    editor_.SetJobStatus(id_, std::move(status));
    editor_.Sync();
  }

 private:
  void Withdraw(JobId id);

  ClusterState& state_;
  StateEditor editor_;
  const MissedProgress progress_;
  JobId id_;  // 0: no job was added
  JobId withdrawn_;
  JobStatus status_;
  Reservation reservation_;
};

void TrialJob::Withdraw(JobId id) {
  withdrawn_ = id;
  status_ = state_.jobs().At(id).status;
  const auto kept = state_.reservations().find(id);
  if (kept != state_.reservations().end()) {
    reservation_ = kept->second;
    editor_.SetReservation(id, {});
  }
  JobStatus ended = status_;
  ended.state = JobState::kCancelled;
  editor_.SetJobStatus(id, std::move(ended));
  editor_.Sync();
}

TrialJob::~TrialJob() {
  if (id_ != JobId{}) editor_.UndoAddJob(id_, id_);
  if (withdrawn_ != JobId{}) {
    editor_.SetJobStatus(withdrawn_, std::move(status_));
    if (!reservation_.places.empty()) editor_.SetReservation(withdrawn_, std::move(reservation_));
  }
  editor_.Sync();
  editor_.EndTrial();
  CacheOf(editor_).missed = progress_;
  StateEditor(state_).Sync();  // as facts: drops the classes that existed for the trial only
}

// A kind that no node and no job has named: no node has any of it.
std::optional<WaitReason> UnknownKind(const ClusterState& state, const JobSpec& spec) {
  for (const GroupSpec& group : spec.groups) {
    for (absl::string_view name : KindNames(group.shape)) {
      if (state.interner().FindKind(name).has_value()) continue;
      WaitReason reason;
      reason.code = WaitCode::kNoMatchingNode;
      reason.resource = std::string(name);
      reason.detail = absl::StrCat("no node has any ", name);
      return reason;
    }
  }
  return std::nullopt;
}

// It waits for something other than resources; the lifecycle stage would hold it.
bool IsHeld(const ClusterState& state, const JobSpec& spec, Time now) {
  if (spec.suspended || spec.start_after > now) return true;
  for (const JobDependency& dependency : spec.dependencies) {
    const Job& before = state.jobs().At(dependency.job);
    const bool ok = before.status.state == JobState::kSucceeded;
    if (!Ended(before.status.state)) return true;
    if (dependency.condition == DependencyCondition::kAfterOk && !ok) return true;
    if (dependency.condition == DependencyCondition::kAfterNotOk && ok) return true;
  }
  return false;
}

std::vector<WaitReason> WhyHeld(const ClusterState& state, TrialJob& trial, const Job& job,
                                Time now) {
  JobStatus status = job.status;
  status.state = JobState::kHeld;
  trial.Hold(std::move(status));
  std::vector<WaitReason> reasons = WhyWaiting(state, job, now);
  for (const JobDependency& dependency : job.dependencies) {
    const Job& before = state.jobs().At(dependency.job);
    if (!Ended(before.status.state)) continue;
    WaitReason reason;
    reason.code = WaitCode::kDependency;
    reason.job = dependency.job;
    reason.detail = absl::StrCat("job ", before.name, " has ended: see its outcome");
    const bool ok = before.status.state == JobState::kSucceeded;
    const bool met = dependency.condition == DependencyCondition::kAfterAny ||
                     (dependency.condition == DependencyCondition::kAfterOk) == ok;
    if (!met) reasons.push_back(std::move(reason));
  }
  return reasons;
}

struct Reading {
  JobId job;
  DryRunResult& result;

  void operator()(TasksBound& decision) const {
    if (decision.job != job) return;
    result.placements.insert(result.placements.end(), decision.placements.begin(),
                             decision.placements.end());
  }
  void operator()(TasksNominated& decision) const {
    if (decision.job == job) result.nominated = std::move(decision.placements);
  }
  void operator()(TasksReleased& decision) const {
    if (decision.beneficiary == job) result.evictions.push_back(std::move(decision));
  }
  void operator()(TasksPaused& decision) const {
    if (decision.beneficiary == job) result.pauses.push_back(std::move(decision));
  }
  void operator()(JobReserved& decision) const {
    if (decision.job == job) result.reservation = std::move(decision.reservation);
  }
  template <class Other>
  void operator()(Other&) const {}
};

bool RunStages(Cycle& cycle) {
  RunNominations(cycle);
  if (!cycle.cut()) KeepReservations(cycle);
  const auto& actions = cycle.policies().actions();
  StateEditor& editor = cycle.transaction().editor();
  for (size_t i = 0; i < actions.size() && !cycle.cut(); ++i) {
    actions[i]->Run(cycle);
    if (!cycle.cut() && i >= CacheOf(editor).cut_in) editor.SettleNever();
  }
  return !cycle.cut();
}

}  // namespace

absl::StatusOr<DryRunResult> DryRun(ClusterState& state, const Policies& policies,
                                    const JobSpec& spec, Time now, std::optional<JobId> instead_of,
                                    uint64_t budget) {
  DryRunResult result;
  TrialJob trial(state, instead_of);
  JobSpec named = spec;
  if (instead_of.has_value()) named.name = absl::StrCat(spec.name, "~");  // names no other job
  const auto checked = CheckJobSubmitted(state, {.id = state.next_job_id(), .spec = named});
  if (!checked.ok()) return checked;
  if (auto unknown = UnknownKind(state, named); unknown.has_value()) {
    result.blockers.push_back(*std::move(unknown));
    return result;
  }
  const Job& job = trial.Add(named, policies, now);
  if (IsHeld(state, named, now)) {
    result.blockers = WhyHeld(state, trial, job, now);
    return result;
  }
  bool whole = false;
  {
    Cycle cycle(state, policies, now, budget);
    whole = RunStages(cycle);
    result.work = cycle.counters().work;
    for (EventBody& decision : cycle.transaction().Commit()) {
      std::visit(Reading{job.id, result}, decision);
    }
  }
  if (result.StartsNow() || !result.nominated.empty()) return result;
  result.blockers = WhyWaiting(state, job, now);
  result.exhausted = !whole;
  return result;
}

}  // namespace berth
