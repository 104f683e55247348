#include "server/commands/submission.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/engine/search/verdict.h"
#include "core/model/interner.h"
#include "server/commands/job_class.h"
#include "server/commands/job_state.h"
#include "server/convert/cold.h"
#include "server/listeners/owned_jobs.h"
#include "server/validation/lifecycle.h"
#include "server/validation/resources.h"
#include "server/validation/text.h"
#include "storage/store.h"
#include "support/log.h"

namespace berth {
namespace {

constexpr absl::Duration kFullQueueRetry = absl::Seconds(5);

// The stored response: only what the repeated body does not contain, which is the first uid.
std::string AnswerOf(JobId first) {
  v1::SubmitJobsResponse answer;
  answer.add_jobs()->set_uid(first.value);
  return answer.SerializeAsString();
}

JobId FirstIdFrom(const std::string& answer) {
  v1::SubmitJobsResponse parsed;
  BERTH_CHECK(parsed.ParseFromString(answer) && parsed.jobs_size() == 1);
  return {parsed.jobs(0).uid()};
}

// Check accepted the job, and Apply refused it: a bug of Berth. The process does not end, because a
// client that repeats the call could end it again and again.
absl::Status ValidationMismatch(size_t job, const absl::Status& refusal) {
  LogError("a validated job was refused", {{"index", job}, {"error", refusal}});
  return absl::InternalError(absl::StrCat("jobs[", job, "] was refused: ", refusal.message(),
                                          "; this is a bug in berthd, and none of the jobs was "
                                          "accepted"));
}

int64_t TasksOf(const JobSpec& spec) {
  if (spec.series) return 0;
  int64_t tasks = 0;
  for (const GroupSpec& group : spec.groups) tasks += group.replicas;
  return tasks;
}

absl::Status LimitExceeded(const std::string& whose, absl::string_view verb, int64_t most,
                           absl::string_view what, absl::string_view limit, int64_t there,
                           int64_t more) {
  return RetryLaterError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat(whose, " ", verb, " at most ", most, " ", what, " that have not ended (", limit,
                   "), has ", there, ", and this call adds ", more),
      kFullQueueRetry);
}

// Fills fields that the job left out with defaults of the queue, a queue above it, or the server.
void FillFromDefaults(const ClusterState& state, QueueId queue, const QueueDefaults& known,
                      JobSpec* spec) {
  QueueDefaults said;
  for (QueueId id = queue;; id = state.queues().At(id).spec.parent) {
    const bool root = id == kRootQueue;
    const QueueDefaults& here = root ? known : state.queues().At(id).spec.defaults;
    if (said.cpu_millis == 0) said.cpu_millis = here.cpu_millis;
    if (said.memory_bytes == 0) said.memory_bytes = here.memory_bytes;
    if (said.walltime == absl::InfiniteDuration()) said.walltime = here.walltime;
    if (root) break;
  }
  if (spec->walltime == absl::InfiniteDuration()) spec->walltime = said.walltime;
  for (GroupSpec& group : spec->groups) {
    if (group.shape.cpu_millis == 0) group.shape.cpu_millis = said.cpu_millis;
    if (group.shape.memory_bytes == 0) group.shape.memory_bytes = said.memory_bytes;
  }
}

bool AnyLimitAbove(const ClusterState& state, QueueId queue) {
  for (QueueId id = queue; id != kRootQueue; id = state.queues().At(id).spec.parent) {
    if (!state.queues().At(id).spec.limit.empty()) return true;
  }
  return false;
}

void RenderNever(const ClusterState& state, const std::optional<BlockedVerdict>& beyond,
                 v1::SubmitJobsResponse::Submitted* out) {
  if (!beyond.has_value()) return;
  WaitReason reason;
  reason.code = static_cast<WaitCode>(beyond->code);
  reason.resource = beyond->resource;
  reason.needed = beyond->needed;
  reason.free = beyond->free;
  reason.limit = beyond->limit;
  reason.queue = beyond->queue;
  RenderReason(state, reason, out->mutable_never());
}

// Sets `never` if a limit alone means that the job can never start.
void SetNeverReason(const ClusterState& state, JobId id, v1::SubmitJobsResponse::Submitted* out) {
  const Job* job = state.jobs().Find(id);
  if (job == nullptr || !AnyLimitAbove(state, job->queue)) return;
  // A series requests nothing itself.
  RenderNever(state,
              job->series ? BeyondLimitVerdict(state, SpecOf(state, *job))
                          : BeyondLimitVerdict(state, *job),
              out);
}

// An older version that follows the log would lose what the image is. Without it, no node is
// preferred.
void ForgetImages(JobSpec* spec) {
  for (GroupSpec& group : spec->groups) group.image = {};
}

}  // namespace

std::string GivenJobName(JobId id) { return absl::StrCat("job-", id.value); }

absl::StatusOr<CheckedSubmission> CheckSubmission(ReadView& view,
                                                  const v1::SubmitJobsRequest& request,
                                                  const config::v1::Limits& limits,
                                                  uint32_t store_format, Rights* rights) {
  Findings findings;
  CallDependencies dependencies = CheckSubmit(request, limits, store_format, findings);
  if (findings.ok()) return CheckedSubmission(request, std::move(dependencies), store_format);
  view.Step([&](const ClusterState& state) {
    CheckJobsAgainst(state, rights, request, dependencies, findings);
    return 0;
  });
  return findings.ToStatus();
}

Submission::Submission(CheckedSubmission checked, const config::v1::Limits& limits,
                       const JobDefaults& defaults, const std::string& owner)
    : checked_(std::move(checked)),
      active_jobs_limit_(limits.active_jobs()),
      active_tasks_limit_(limits.active_tasks()),
      of_queues_(defaults.queue_defaults),
      gangs_(defaults.gangs),
      preemptible_below_(defaults.preemptible_below_priority),
      owner_(owner),
      position_(order().size()) {
  if (!request().request_id().empty()) fingerprint_ = FingerprintOf("SubmitJobs", request());
  const auto jobs = static_cast<size_t>(request().jobs_size());
  specs_.reserve(jobs);
  colds_.reserve(jobs);
  queue_of_.reserve(jobs);
  for (const v1::Job& job : request().jobs()) {
    v1::JobSpec expanded;
    if (AnyShorthand(job.spec())) {
      expanded = job.spec();
      ExpandShorthand(&expanded);
    }
    const v1::JobSpec& spec = expanded.groups().empty() ? job.spec() : expanded;
    specs_.push_back(JobSpecFrom(spec, defaults));
    specs_.back().name = job.name();
    specs_.back().owner = owner;
    if (checked_.store_format() < kFormatOfSeries) ForgetImages(&specs_.back());
    colds_.push_back(std::make_shared<const std::string>(EncodeCold(spec)));
    queue_of_.push_back(QueueIndex(QueueNameOf(spec), TasksOf(specs_.back())));
    NoteKinds(specs_.back());
  }
  for (size_t p = 0; p < order().size(); ++p) position_[static_cast<size_t>(order()[p])] = p;
}

size_t Submission::QueueIndex(const std::string& name, int64_t tasks) {
  // Nearly always the same as that of the previous job.
  size_t i = queues_.size();
  while (i > 0 && queues_[i - 1].name != name) --i;
  if (i == 0) {
    queues_.push_back({.name = name});
    i = queues_.size();
  }
  ++queues_[i - 1].jobs;
  queues_[i - 1].tasks += tasks;
  return i - 1;
}

void Submission::NoteKinds(const JobSpec& spec) {
  for (const GroupSpec& group : spec.groups) {
    if (group.shape.devices.empty() && group.shape.extended.empty()) continue;
    for (const absl::string_view kind : KindNames(group.shape)) {
      if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.emplace_back(kind);
    }
  }
}

absl::Status Submission::CheckNames(const ClusterState& state) const {
  std::vector<Violation> taken;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].name.empty()) continue;
    const Job* job = state.FindJob(specs_[i].name);
    if (job == nullptr) continue;
    taken.push_back(
        {absl::StrCat("jobs[", i, "].name"),
         absl::StrCat("job ", Quoted(job->name), " already exists, uid ", job->id.value)});
    if (taken.size() == kMaxViolationsInError) break;
  }
  if (taken.empty()) return absl::OkStatus();
  return ViolationsError(absl::StatusCode::kAlreadyExists, taken);
}

absl::Status Submission::CheckClusterBounds(const ClusterState& state) const {
  const Queue& root = state.queues().At(kRootQueue);
  QueueUse all;
  for (const QueueUse& use : queues_) {
    all.jobs += use.jobs;
    all.tasks += use.tasks;
  }
  if (root.active_jobs + all.jobs > active_jobs_limit_) {
    return LimitExceeded("the cluster", "accepts", active_jobs_limit_, "jobs", "limits.active_jobs",
                         root.active_jobs, all.jobs);
  }
  if (root.active_tasks + all.tasks > active_tasks_limit_) {
    return LimitExceeded("the cluster", "accepts", active_tasks_limit_, "tasks of jobs",
                         "limits.active_tasks", root.active_tasks, all.tasks);
  }
  return absl::OkStatus();
}

absl::Status Submission::CheckQueueBounds(const Queue& queue, const QueueUse& more) const {
  const std::string whose = absl::StrCat("queue ", Quoted(queue.spec.name));
  if (queue.spec.max_jobs > 0 && queue.active_jobs + more.jobs > queue.spec.max_jobs) {
    return LimitExceeded(whose, "accepts", queue.spec.max_jobs, "jobs", "max_jobs",
                         queue.active_jobs, more.jobs);
  }
  if (queue.spec.max_tasks > 0 && queue.active_tasks + more.tasks > queue.spec.max_tasks) {
    return LimitExceeded(whose, "accepts", queue.spec.max_tasks, "tasks of jobs", "max_tasks",
                         queue.active_tasks, more.tasks);
  }
  return absl::OkStatus();
}

absl::Status Submission::CheckBounds(const ClusterState& state) const {
  if (absl::Status status = CheckClusterBounds(state); !status.ok()) return status;
  absl::flat_hash_map<QueueId, QueueUse> added;
  for (const QueueUse& use : queues_) {
    for (QueueId id = state.FindQueue(use.name)->id; id != kRootQueue;
         id = state.queues().At(id).spec.parent) {
      QueueUse& more = added[id];
      more.jobs += use.jobs;
      more.tasks += use.tasks;
      absl::Status status = CheckQueueBounds(state.queues().At(id), more);
      if (!status.ok()) return status;
    }
  }
  return state.interner().CanAddKinds({kinds_.begin(), kinds_.end()});
}

absl::Status Submission::Check(const ClusterState& state, Rights* rights) const {
  Findings findings;
  CheckJobsAgainst(state, rights, request(), checked_.dependencies(), findings);
  if (!findings.ok()) return findings.ToStatus();
  if (absl::Status status = CheckNames(state); !status.ok()) return status;
  return CheckBounds(state);
}

std::vector<JobDependency> Submission::ResolveDependencies(const ClusterState& state, size_t job,
                                                           JobId first) const {
  std::vector<JobDependency> result;
  for (const CallDependencies::Edge& edge : checked_.dependencies().Of(static_cast<int>(job))) {
    const v1::JobDependency& entry = request().jobs(edge.job).spec().dependencies(edge.entry);
    const JobId id = edge.on == CallDependencies::kInCluster
                         ? state.FindJob(entry.job())->id
                         : IdOf(static_cast<size_t>(edge.on), first);
    result.push_back({id, ConditionFrom(entry.condition())});
  }
  return result;
}

JobId Submission::IdOf(size_t job, JobId first) const {
  return {first.value + (position_.empty() ? job : position_[job])};
}

// The job's spec, completed with values that only the state has.
JobSpec Submission::Take(const ClusterState& state, size_t job, JobId first, QueueId queue,
                         ShareCounter* shares) {
  JobSpec spec = std::move(specs_[job]);
  shares->Count(&spec);
  spec.queue = queue;
  TakeClass(state, request().jobs(static_cast<int>(job)).spec(), preemptible_below_, &spec);
  FillFromDefaults(state, queue, of_queues_, &spec);
  if (spec.name.empty()) spec.name = GivenJobName(IdOf(job, first));
  spec.dependencies = ResolveDependencies(state, job, first);
  AddDefaultTopology(state, gangs_, &spec);
  return spec;
}

JobSpec Submission::TakeOnly(const ClusterState& state) {
  BERTH_CHECK(specs_.size() == 1);
  ShareCounter shares(state);
  JobSpec spec = Take(state, 0, state.next_job_id(), state.FindQueue(queues_[0].name)->id, &shares);
  spec.series.reset();  // of an array or a schedule: a job that it makes
  return spec;
}

void Submission::Preview(const ClusterState& state, v1::SubmitJobsResponse& response) {
  ShareCounter shares(state);
  const JobId first = state.next_job_id();
  for (size_t i = 0; i < specs_.size(); ++i) {
    auto* job = response.add_jobs();
    job->set_name(request().jobs(static_cast<int>(i)).name());
    const QueueId queue = state.FindQueue(queues_[queue_of_[i]].name)->id;
    if (!AnyLimitAbove(state, queue)) continue;
    RenderNever(state, BeyondLimitVerdict(state, Take(state, i, first, queue, &shares)), job);
  }
}

absl::Status Submission::Emit(Turn& turn, JobId first) {
  std::vector<QueueId> queue_ids;
  for (const QueueUse& use : queues_) queue_ids.push_back(turn.state().FindQueue(use.name)->id);
  ShareCounter shares(turn.state());
  for (size_t p = 0; p < specs_.size(); ++p) {
    const size_t i = order().empty() ? p : static_cast<size_t>(order()[p]);
    const JobId id{first.value + p};
    absl::Status status =
        turn.Emit(JobSubmitted{id, Take(turn.state(), i, first, queue_ids[queue_of_[i]], &shares)});
    if (!status.ok()) {
      turn.UndoSubmits(first);
      return ValidationMismatch(i, status);
    }
    turn.PutCold(id, std::move(colds_[i]));
  }
  return absl::OkStatus();
}

void Submission::Fill(const ClusterState& state, JobId first,
                      v1::SubmitJobsResponse& response) const {
  response.Clear();
  response.mutable_jobs()->Reserve(request().jobs_size());
  for (int i = 0; i < request().jobs_size(); ++i) {
    const JobId id = IdOf(static_cast<size_t>(i), first);
    auto* job = response.add_jobs();
    const std::string& name = request().jobs(i).name();
    job->set_name(name.empty() ? GivenJobName(id) : name);
    job->set_uid(id.value);
    SetNeverReason(state, id, job);
  }
}

// Somebody else who uses the same id made another request, although it looks the same. Jobs without
// an owner, also of older versions, are anybody's.
absl::Status Submission::CheckRepeats(const ClusterState& state, JobId first) const {
  const Job* job = state.jobs().Find(first);
  if (job == nullptr || job->owner.empty() || job->owner == owner_) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("request_id ", Quoted(request().request_id()),
                                               " was used by another user; choose a new id"));
}

absl::Status Submission::Commit(Turn& turn, RequestTable& requests, JobId first_job,
                                v1::SubmitJobsResponse& response, const Submitter& submitter) {
  const std::string& request_id = request().request_id();
  if (!request_id.empty()) {
    absl::StatusOr<const std::string*> known = requests.Find(request_id, fingerprint_, turn.now());
    if (!known.ok()) return known.status();
    if (*known != nullptr) {
      const JobId first = FirstIdFrom(**known);
      absl::Status status = CheckRepeats(turn.state(), first);
      if (status.ok()) Fill(turn.state(), first, response);
      return status;
    }
  }
  if (absl::Status status = Check(turn.state(), submitter.rights); !status.ok()) return status;
  const auto jobs = static_cast<int64_t>(specs_.size());
  if (submitter.owned != nullptr) {
    if (absl::Status status = submitter.owned->Check(owner_, jobs); !status.ok()) return status;
  }
  const JobId first = std::max(turn.state().next_job_id(), first_job);
  if (absl::Status status = Emit(turn, first); !status.ok()) return status;
  if (submitter.owned != nullptr) submitter.owned->Add(owner_, jobs);
  Fill(turn.state(), first, response);
  if (!request_id.empty()) {
    requests.Remember(turn, {request_id, fingerprint_, turn.now(), AnswerOf(first)});
  }
  return absl::OkStatus();
}

}  // namespace berth
