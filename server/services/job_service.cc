#include "server/services/job_service.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/access/permit_submit.h"
#include "server/commands/job_change.h"
#include "server/commands/submission.h"
#include "server/convert/values.h"
#include "server/services/cold_part.h"
#include "server/services/exec_stream.h"
#include "server/services/job_list.h"
#include "server/services/log_stream.h"
#include "server/services/run_as.h"
#include "server/validation/job.h"
#include "server/validation/reason.h"
#include "server/validation/text.h"
#include "storage/incarnation.h"
#include "support/log.h"

namespace berth {
namespace {

void LogSubmitted(const v1::SubmitJobsResponse& response) {
  if (!LogEnabled(LogLevel::kDebug)) return;
  for (const auto& job : response.jobs()) {
    LogDebug("job submitted", {{"job", job.name()}, {"uid", job.uid()}});
  }
}

std::string JobTarget(const std::string& name) { return absl::StrCat("job/", name); }

std::string JobObject(const Job& job) { return absl::StrCat("job ", Quoted(job.name)); }

// What a change of one job emits, in order; empty if there is nothing to change.
using JobEvents = std::vector<EventBody>;

absl::StatusOr<JobEvents> EventsOf(MaybeEvent event) {
  if (!event.ok()) return event.status();
  JobEvents events;
  if (event->has_value()) events.push_back(**std::move(event));
  return events;
}

absl::StatusOr<JobEvents> EventsOf(absl::StatusOr<JobEvents> events) { return events; }

// A write to one job; the response is the job afterwards. change(turn, job) returns the event to
// emit, or nullopt if there is nothing to change; or several events.
template <class Change>
void ChangeJob(const ServiceContext& context, const Call& call, Reply<v1::Job> reply,
               std::string name, CommandClass command_class, Change change) {
  Write(context, call, std::move(reply), command_class, 1,
        [name = std::move(name), change = std::move(change), edits = context.edits, rpc = call.rpc](
            Turn& turn, Rights& rights, v1::Job& response) -> absl::Status {
          const Job* job = turn.state().FindJob(name);
          if (job == nullptr) return NoSuchJob(turn.state(), rights, name);
          absl::Status permitted = PermitOnJob(turn.state(), rights, rpc, *job);
          if (!permitted.ok()) return permitted;
          const JobId id = job->id;
          absl::StatusOr<JobEvents> events = EventsOf(change(turn, *job));
          if (!events.ok()) return events.status();
          const bool changed = !events->empty();
          for (EventBody& event : *events) {
            absl::Status status = turn.Emit(std::move(event));
            if (!status.ok()) return status;
          }
          if (changed) edits->Note(turn, JobObject(turn.state().jobs().At(id)));
          const Job& now = turn.state().jobs().At(id);
          RenderJob(turn.state(), now, turn.now(), &response);
          Show(turn.state(), rights, now, &response);
          if (changed) response.set_etag(absl::StrCat(turn.revision()));
          return absl::OkStatus();
        });
}

bool Changes(const MaybeEvent& event) { return event.ok() && event->has_value(); }

// Returns the event. Logs who made the change, if anything changes.
MaybeEvent LoggedChange(const char* what, const Job& job, const std::string& by, MaybeEvent event) {
  if (Changes(event)) LogInfo(what, {{"job", job.name}, {"uid", job.id.value}, {"by", by}});
  return event;
}

MaybeEvent Cancel(const Job& job, const v1::CancelJobRequest& request, const std::string& by,
                  const std::string& user) {
  MaybeEvent event = CancelOf(job, request, user);
  if (Changes(event)) {
    LogInfo("job cancelled", {{"job", job.name},
                              {"uid", job.id.value},
                              {"by", by},
                              {"forced", request.force() ? "yes" : "no"},
                              {"reason", request.reason()}});
  }
  return event;
}

Duration WalltimeOf(const v1::JobSpec& spec) {
  return spec.has_walltime() ? DurationFrom(spec.walltime()) : absl::InfiniteDuration();
}

// The event of an update; none if nothing changes.
MaybeEvent JobUpdateOf(const TurnEdits& edits, const Turn& turn, const Job& job,
                       const v1::UpdateJobRequest& request) {
  absl::Status current = edits.CheckEtag(turn, JobObject(job), job.revision, request.job().etag());
  if (!current.ok()) return current;
  JobUpdated update{job.id, job.priority, job.labels};
  std::optional<Duration> walltime;
  for (const std::string& path : request.update_mask().paths()) {
    if (path == "spec.walltime") walltime = WalltimeOf(request.job().spec());
    if (path == "spec.priority") update.priority = request.job().spec().priority();
    if (path == "spec.labels") update.labels = LabelsFrom(request.job().spec().labels());
  }
  if (walltime.has_value() && *walltime != job.walltime) {
    if (absl::Status status = CheckWalltime(job, *walltime, turn.now()); !status.ok()) {
      return status;
    }
    update.walltime = walltime;
  }
  if (update.priority == job.priority && update.labels == job.labels &&
      !update.walltime.has_value()) {
    return std::nullopt;
  }
  return std::optional<EventBody>(std::move(update));
}

// Dependents that the caller may not list are not named.
absl::Status HasDependents(const ClusterState& state, Rights& rights, JobId first) {
  const Job& job = state.jobs().At(first);
  const bool listed = rights.OnJob(state, Verb::kListJobs, job);
  return absl::FailedPreconditionError(
      absl::StrCat(listed ? absl::StrCat("job ", Quoted(job.name)) : "a job",
                   " depends on its outcome and has not started"));
}

// With an array or a schedule go the jobs that it made, before it.
void AddWithMembers(const ClusterState& state, JobId job, std::vector<JobId>& all) {
  for (JobId member : state.MembersOf(job)) AddWithMembers(state, member, all);
  all.push_back(job);
}

absl::Status DeleteJobIn(Turn& turn, Rights& rights, const std::string& name) {
  const Job* job = turn.state().FindJob(name);
  if (job == nullptr) return NoSuchJob(turn.state(), rights, name);
  absl::Status permitted = PermitOnJob(turn.state(), rights, Rpc::kJobServiceDeleteJob, *job);
  if (!permitted.ok()) return permitted;
  if (!Ended(job->status.state)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", Quoted(name), " has not ended; cancel it first"));
  }
  std::vector<JobId> all;
  AddWithMembers(turn.state(), job->id, all);
  for (JobId id : all) {
    const std::vector<JobId> dependents = turn.state().Dependents(id);
    if (!dependents.empty()) return HasDependents(turn.state(), rights, dependents[0]);
  }
  for (JobId id : all) {
    if (absl::Status status = turn.Emit(JobDeleted{id}); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string OwnerOf(const Call& call, const v1::SubmitJobsRequest& request) {
  return request.on_behalf_of().empty() ? OwnerBy(call) : request.on_behalf_of();
}

absl::Status CheckUsers(const ServiceContext& context, const Call& call,
                        const v1::SubmitJobsRequest& request) {
  const std::string owner = OwnerOf(call, request);
  for (int i = 0; i < request.jobs_size(); ++i) {
    const std::string& user = request.jobs(i).spec().run_as();
    if (user.empty()) continue;
    const absl::Status status = context.CheckRunAs(*call.caller, owner, user);
    if (status.ok()) continue;
    return absl::Status(status.code(),
                        absl::StrCat("jobs[", i, "].spec.run_as: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* JobService::SubmitJobs(grpc::CallbackServerContext* context,
                                                 const v1::SubmitJobsRequest* request,
                                                 v1::SubmitJobsResponse* response) {
  const absl::Duration began = context_.clock->Steady();
  Reply<v1::SubmitJobsResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call =
      context_.CallOf(Rpc::kJobServiceSubmitJobs, *context, {}, request->request_id());
  const auto weight = static_cast<size_t>(request->jobs_size());
  if (!Enter(context_, call, reply, request->jobs_size())) return reactor;
  Rights rights(call.caller);
  ReadView view(*context_.loop);
  // Before anything that is said about the request.
  absl::Status permitted = AdmitIn(context_, view, call);
  if (permitted.ok()) permitted = ValidateOnBehalfOf(*request);
  if (permitted.ok()) {
    permitted = view.Step(
        [&](const ClusterState& state) { return PermitSubmit(state, rights, call.rpc, *request); });
  }
  if (!permitted.ok()) {
    reply.Finish(permitted);
    return reactor;
  }
  absl::StatusOr<CheckedSubmission> checked =
      CheckSubmission(view, *request, context_.LimitsNow(), context_.store->Format(), &rights);
  if (!checked.ok()) {
    reply.Finish(checked.status());
    return reactor;
  }
  if (absl::Status status = CheckUsers(context_, call, *request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  Submission submission(*std::move(checked), context_.limits, context_.defaults->Get(),
                        OwnerOf(call, *request));
  if (request->dry_run()) {
    reply.Finish(view.Step([&](const ClusterState& state) {
      absl::Status status = submission.Check(state, &rights);
      if (status.ok()) submission.Preview(state, *response);
      return status;
    }));
    return reactor;
  }
  RequestTable* requests = context_.requests;
  Write(context_, call, std::move(reply), CommandClass::kNewWork, weight,
        [submission = std::move(submission), requests, request, rpc = call.rpc,
         owned = context_.owned, first_job = FirstJobOf(context_.store->Incarnation()), began,
         clock = context_.clock, seconds = context_.submit_seconds](
            Turn& turn, Rights& now, v1::SubmitJobsResponse& answer) mutable {
          absl::Status status = PermitSubmit(turn.state(), now, rpc, *request);
          if (status.ok())
            status = submission.Commit(turn, *requests, first_job, answer, {&now, owned});
          if (!status.ok()) return status;
          LogSubmitted(answer);
          if (seconds != nullptr) {
            turn.OnDurable([=] { seconds->Observe(clock->Steady() - began); });
          }
          return status;
        });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::GetJob(grpc::CallbackServerContext* context,
                                             const v1::GetJobRequest* request, v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const std::string waits = context_.hold_reason();
  const bool by_uid = request->uid() != 0;
  if (by_uid && !request->name().empty()) {
    reply.Finish(absl::InvalidArgumentError("name the job, or give its uid, not both"));
    return reactor;
  }
  const std::string name = by_uid ? absl::StrCat("uid ", request->uid()) : request->name();
  const Call call = context_.CallOf(Rpc::kJobServiceGetJob, *context, JobTarget(name));
  if (!Enter(context_, call, reply)) return reactor;
  Rights rights(call.caller);
  ReadView view(*context_.loop);
  bool reads = false;
  const absl::Status found = view.Step([&](const ClusterState& state) {
    const Time now = context_.clock->Now();
    absl::Status status = Admit(state, rights, call.rpc, now);
    if (!status.ok()) return status;
    const Job* job =
        by_uid ? state.jobs().Find(JobId{request->uid()}) : state.FindJob(request->name());
    const absl::Status none = absl::NotFoundError(absl::StrCat("there is no job with ", name));
    if (job == nullptr) return by_uid ? none : NoSuchJob(state, rights, name);
    status = PermitOnJob(state, rights, call.rpc, *job);
    if (by_uid && absl::IsNotFound(status)) return none;  // says nothing of the job's name
    if (!status.ok()) return status;
    context_.Render(state, rights, *job, now, response);
    context_.AddHoldReason(waits, response);
    reads = rights.OnJob(state, Verb::kReadJob, *job);
    return absl::OkStatus();
  });
  if (!found.ok()) {
    view.Answer([reply = std::move(reply), found](absl::Status) mutable { reply.Finish(found); });
    return reactor;
  }
  // The cold part exists once the job is durable; until then it is left out. Reading it may touch
  // the disk, so it does not run on the thread that reports durability.
  const absl::Duration patience = reply.patience();
  auto answer = [this, reads, reply = std::move(reply)](absl::Status durable) mutable {
    if (!reply.ShouldAnswer(durable)) return reply.Finish(durable);
    if (!reads) return reply.Finish(absl::OkStatus());
    executor_->Run([this, synced = durable.ok(), reply = std::move(reply)]() mutable {
      const absl::Status status = AddColdPart(*context_.store, reply.response());
      reply.Finish(!synced && absl::IsNotFound(status) ? absl::OkStatus() : status);
    });
  };
  view.Answer(std::move(answer), patience);
  return reactor;
}

grpc::ServerUnaryReactor* JobService::ListJobs(grpc::CallbackServerContext* context,
                                               const v1::ListJobsRequest* request,
                                               v1::ListJobsResponse* response) {
  Reply<v1::ListJobsResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kJobServiceListJobs, *context);
  AnswerList(context_, call, std::move(reply), [&](ReadView& view, Rights& rights) {
    const std::string waits = context_.hold_reason();
    absl::Status listed = berth::ListJobs(view, rights, context_.clock->Now(), *request, *response);
    for (v1::Job& job : *response->mutable_jobs()) context_.AddHoldReason(waits, &job);
    return listed;
  });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::ListTasks(grpc::CallbackServerContext* context,
                                                const v1::ListTasksRequest* request,
                                                v1::ListTasksResponse* response) {
  Reply<v1::ListTasksResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  AnswerList(context_, context_.CallOf(Rpc::kJobServiceListTasks, *context), std::move(reply),
             [&](ReadView& view, Rights& rights) {
               return berth::ListTasks(view, rights, *request, *response);
             });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::UpdateJob(grpc::CallbackServerContext* context,
                                                const v1::UpdateJobRequest* request,
                                                v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateUpdateJob(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call =
      context_.CallOf(Rpc::kJobServiceUpdateJob, *context, JobTarget(request->job().name()));
  ChangeJob(context_, call, std::move(reply), request->job().name(), CommandClass::kNewWork,
            [request, edits = context_.edits](Turn& turn, const Job& job) {
              return JobUpdateOf(*edits, turn, job, *request);
            });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::CancelJob(grpc::CallbackServerContext* context,
                                                const v1::CancelJobRequest* request,
                                                v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateReason(request->reason()); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call =
      context_.CallOf(Rpc::kJobServiceCancelJob, *context, JobTarget(request->name()));
  ChangeJob(context_, call, std::move(reply), request->name(), CommandClass::kEssential,
            [request, call](Turn&, const Job& job) {
              return Cancel(job, *request, TextOf(call), call.caller->principal.name);
            });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::SuspendJob(grpc::CallbackServerContext* context,
                                                 const v1::SuspendJobRequest* request,
                                                 v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (!v1::SuspendJobRequest::Mode_IsValid(request->mode())) {
    reply.Finish(absl::InvalidArgumentError(
        absl::StrCat("mode: unknown value ", static_cast<int>(request->mode()))));
    return reactor;
  }
  const Call call =
      context_.CallOf(Rpc::kJobServiceSuspendJob, *context, JobTarget(request->name()));
  const bool freezes = request->mode() == v1::SuspendJobRequest::FREEZE;
  ChangeJob(
      context_, call, std::move(reply), request->name(), CommandClass::kEssential,
      [by = TextOf(call), freezes, format = context_.store->Format()](Turn& turn, const Job& job) {
        if (!freezes) return LoggedChange("job suspended", job, by, SuspensionOf(job, true));
        return LoggedChange("job paused", job, by, FreezeOf(turn.state(), job, format));
      });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::ResumeJob(grpc::CallbackServerContext* context,
                                                const v1::ResumeJobRequest* request,
                                                v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call =
      context_.CallOf(Rpc::kJobServiceResumeJob, *context, JobTarget(request->name()));
  ChangeJob(context_, call, std::move(reply), request->name(), CommandClass::kNewWork,
            [by = TextOf(call)](Turn& turn, const Job& job) {
              return LoggedChange("job resumed", job, by, ResumeOf(turn.state(), job));
            });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::RequeueJob(grpc::CallbackServerContext* context,
                                                 const v1::RequeueJobRequest* request,
                                                 v1::Job* response) {
  Reply<v1::Job> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call =
      context_.CallOf(Rpc::kJobServiceRequeueJob, *context, JobTarget(request->name()));
  ChangeJob(context_, call, std::move(reply), request->name(), CommandClass::kEssential,
            [by = TextOf(call)](Turn& turn, const Job& job) -> absl::StatusOr<JobEvents> {
              absl::StatusOr<JobEvents> events = RequeueEventsOf(turn, job, by);
              if (events.ok() && !events->empty())
                LogInfo("job requeued", {{"job", job.name}, {"uid", job.id.value}, {"by", by}});
              return events;
            });
  return reactor;
}

grpc::ServerUnaryReactor* JobService::DeleteJob(grpc::CallbackServerContext* context,
                                                const v1::DeleteJobRequest* request,
                                                v1::DeleteJobResponse* response) {
  Reply<v1::DeleteJobResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Write(context_, context_.CallOf(Rpc::kJobServiceDeleteJob, *context, JobTarget(request->name())),
        std::move(reply), CommandClass::kEssential, 1,
        [request](Turn& turn, Rights& rights, v1::DeleteJobResponse&) {
          return DeleteJobIn(turn, rights, request->name());
        });
  return reactor;
}

grpc::ServerWriteReactor<v1::ReadLogsResponse>* JobService::ReadLogs(
    grpc::CallbackServerContext* context, const v1::ReadLogsRequest* request) {
  return StartLogStream(
      context_, logs_,
      context_.CallOf(Rpc::kJobServiceReadLogs, *context, JobTarget(request->job())), *request);
}

grpc::ServerBidiReactor<v1::ExecRequest, v1::ExecResponse>* JobService::Exec(
    grpc::CallbackServerContext* context) {
  return StartExecStream(context_, execs_, executor_,
                         context_.CallOf(Rpc::kJobServiceExec, *context));
}

}  // namespace berth
