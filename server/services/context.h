// Common parts of the services.
#ifndef BERTH_SERVER_SERVICES_CONTEXT_H_
#define BERTH_SERVER_SERVICES_CONTEXT_H_

#include <grpcpp/alarm.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "server/access/call.h"
#include "server/access/nearest_name.h"
#include "server/access/permit.h"
#include "server/access/shown.h"
#include "server/access/user_shares.h"
#include "server/audit/refused_calls.h"
#include "server/commands/request_table.h"
#include "server/config/live.h"
#include "server/controllers/progress_book.h"
#include "server/convert/job.h"
#include "server/convert/values.h"
#include "server/listeners/job_conditions.h"
#include "server/listeners/owned_jobs.h"
#include "server/loop/histogram.h"
#include "server/loop/loop.h"
#include "server/reads/read_view.h"
#include "server/services/caller.h"
#include "server/services/once.h"
#include "server/services/open_streams.h"
#include "server/services/reply.h"
#include "server/services/run_as.h"
#include "server/services/standby.h"
#include "server/validation/text.h"
#include "storage/store.h"
#include "support/clock.h"
#include "support/log.h"

namespace berth {

// Objects that updates have changed in the current turn. Revisions are stamped at its end, so an
// etag alone cannot distinguish two updates in one turn. Loop thread only.
class TurnEdits {
 public:
  void Note(const Turn& turn, const std::string& object) {
    if (revision_ != turn.revision()) objects_.clear();
    revision_ = turn.revision();
    objects_.insert(object);
  }
  // ABORTED if the etag is not empty and not that of the current object.
  absl::Status CheckEtag(const Turn& turn, const std::string& object, uint64_t object_revision,
                         const std::string& etag) const {
    const bool edited = revision_ == turn.revision() && objects_.contains(object);
    const uint64_t revision = edited ? turn.revision() : object_revision;
    if (etag.empty() || etag == absl::StrCat(revision)) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(object, " has changed: its etag is ", revision, ", not ",
                                           etag, "; read it again and retry"));
  }

 private:
  uint64_t revision_ = 0;
  absl::flat_hash_set<std::string> objects_;
};

// All outlive the services.
struct ServiceContext {
  Loop* loop = nullptr;
  const Store* store = nullptr;
  Clock* clock = nullptr;
  RequestTable* requests = nullptr;  // loop thread
  TurnEdits* edits = nullptr;        // loop thread
  const CallerBook* callers = nullptr;
  OpenStreams* streams = nullptr;
  UserShares* shares = nullptr;
  OwnedJobs* owned = nullptr;  // loop thread
  config::v1::Limits limits;   // completed
  google::protobuf::RepeatedPtrField<config::v1::RunAs> run_as = {};
  const Live<JobDefaults>* defaults = nullptr;
  // Why nothing is placed now; "" if jobs are placed. Not while the state is being read.
  std::function<std::string()> hold_reason = [] { return std::string(); };

  // Restarts of the job in the last minute, if they are many (RestartWatch::Often).
  std::function<int32_t(JobId, Time)> frequent_restarts = [](JobId, Time) { return 0; };

  // Starts of the queue's jobs refused in a row, if they are many
  // (RefusedStarts::ConsecutiveRefusals).
  std::function<int32_t(QueueId)> starts_refused = [](QueueId) { return 0; };

  // Images that the node holds (AgentGateway::ImagesOf).
  std::function<std::shared_ptr<const v1::NodeImages>(NodeId)> images_of = [](NodeId) {
    return std::shared_ptr<const v1::NodeImages>();
  };

  const ProgressBook* progress = nullptr;  // null: nothing is known
  RefusedCalls* refused = nullptr;         // where to note calls that rules refuse
  const Leadership* leadership = nullptr;  // null: this server is alone
  Histogram* submit_seconds = nullptr;     // null: not measured

  // server/services/run_as.h
  absl::Status CheckRunAs(const Caller& client, const std::string& owner,
                          const std::string& user) const {
    return berth::CheckRunAs(run_as, callers->access().run_as_owner(), client, owner, user);
  }

  Call CallOf(Rpc rpc, grpc::CallbackServerContext& context, std::string target = {},
              std::string request_id = {}) const {
    Call call = callers->CallOf(rpc, context);
    if (leadership != nullptr && !loop->leads()) {
      MarkStandby(*leadership, loop->DurableRevision(), context, &call);
    }
    call.target = std::move(target);
    if (request_id.empty()) TakeRequestId(context, &call);
    if (call.once_id.empty()) call.request_id = std::move(request_id);
    return call;
  }

  // Calls that rules refuse are in the audit.
  void NoteIfRefused(const Call& call, const absl::Status& status) const {
    if (refused == nullptr) return;
    if (absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status)) {
      refused->Note(ActorOf(call), call.target, status);
    }
  }

  // The job as it is now, with its conditions, as far as the caller may see it.
  void Render(const ClusterState& state, Rights& rights, const Job& job, Time now,
              v1::Job* out) const {
    RenderJob(state, job, now, out);
    RenderConditions(state, job, frequent_restarts(job.id, now), out->mutable_status());
    if (progress != nullptr) progress->Render(state, job, out->mutable_status());
    Show(state, rights, job, out);
  }

  // Adds to jobs that were not considered why no job is placed.
  void AddHoldReason(const std::string& waits, v1::Job* job) const {
    if (waits.empty()) return;
    for (v1::WaitReason& reason : *job->mutable_status()->mutable_reasons()) {
      const bool bare = reason.code() == v1::WaitReason::NOT_CONSIDERED && reason.detail().empty();
      if (bare) reason.set_detail(waits);
    }
  }

  // With the changes of a reload.
  config::v1::Limits LimitsNow() const {
    config::v1::Limits now = limits;
    ToProto(defaults->Get().greatest_kill_grace, now.mutable_kill_grace());
    return now;
  }
};

// Answers a while later: a client that calls again at once would use the server up with refusals.
template <class Response>
void RefuseLate(const ServiceContext& context, Reply<Response> reply, const absl::Status& why) {
  const absl::Duration late = context.shares->HoldTime();
  if (late == absl::ZeroDuration()) return reply.Finish(why);
  auto alarm = std::make_shared<grpc::Alarm>();
  auto held = std::make_shared<Reply<Response>>(std::move(reply));
  alarm->Set(absl::ToChronoTime(absl::Now() + late),
             [alarm, held, why, shares = context.shares](bool) {
               held->Finish(why);
               shares->Unhold();
             });
}

// A standby answers few calls; the client goes to the leader with the others.
inline absl::Status CheckLeads(const ServiceContext& context, const Call& call) {
  if (context.leadership == nullptr || context.loop->leads()) return absl::OkStatus();
  return CheckOnStandby(*context.leadership, call);
}

// Counts the call among those that its user has under way, until it is answered. False: they are
// too many, and it is answered. `jobs`: that it submits.
template <class Response>
bool Enter(const ServiceContext& context, const Call& call, Reply<Response>& reply,
           int64_t jobs = 0, bool essential = false) {
  if (reply.has_on_finish()) return true;  // it has entered
  if (absl::Status leads = CheckLeads(context, call); !leads.ok()) {
    reply.Finish(leads);
    return false;
  }
  absl::StatusOr<UserShares::Part> part = context.shares->Begin(*call.caller, jobs, essential);
  if (!part.ok()) {
    RefuseLate(context, std::move(reply), part.status());
    return false;
  }
  reply.SetOnFinish([part = *std::move(part), call, &context](const absl::Status& status) mutable {
    part.End();
    context.NoteIfRefused(call, status);
  });
  return true;
}

// Whether the call is admitted (server/access/permit.h), for handlers that need to know it first.
inline absl::Status AdmitIn(const ServiceContext& context, ReadView& view, const Call& call) {
  if (absl::Status leads = CheckLeads(context, call); !leads.ok()) return leads;
  Rights rights(call.caller);
  return view.Step([&](const ClusterState& state) {
    return Admit(state, rights, call.rpc, context.clock->Now());
  });
}
inline absl::Status AdmitNow(const ServiceContext& context, const Call& call) {
  ReadView view(*context.loop);
  return AdmitIn(context, view, call);
}

// Puts a call that changes no state into the log, and so into the audit: exec, logs, backup, pause,
// reload.
inline void LogCall(const ServiceContext& context, const Call& call) {
  if (context.leadership != nullptr && !context.loop->leads()) return;  // it is refused
  const absl::Status posted = context.loop->Post(
      [actor = ActorOf(call)](Turn& turn) mutable {
        turn.By(std::move(actor));
        turn.LogCommand();
      },
      CommandClass::kEssential);
  if (!posted.ok()) LogWarn("a call is not in the audit", {{"by", TextOf(call)}});
}

// Whether the caller may still do what the method does with the job, for streams. It outlives the
// call. A job that was deleted ends no stream.
inline OpenStreams::May MayStill(const ServiceContext& context, const Call& call, JobId job) {
  return [clock = context.clock, call = WhileItLasts(call), job](const ClusterState& state) {
    Rights rights(call.caller);
    absl::Status status = Admit(state, rights, call.rpc, clock->Now());
    const Job* found = state.jobs().Find(job);
    if (!status.ok() || found == nullptr) return status;
    return PermitOnJob(state, rights, call.rpc, *found);
  };
}

// Answers with `status` once all changes up to `revision`, which were seen, are durable.
template <class Response>
void AnswerSeen(Loop& loop, uint64_t revision, Reply<Response> reply, const absl::Status& status) {
  const absl::Duration patience = reply.patience();
  auto answer = [reply = std::move(reply), status](absl::Status durable) mutable {
    reply.Finish(reply.ShouldAnswer(durable) ? status : durable);
  };
  loop.WhenDurable(revision, std::move(answer), patience);
}

// A write of a caller who is admitted: `change(turn, rights, response)` runs on the loop thread and
// fills the response. If it returns OK, the call is answered once the turn is durable. Otherwise it
// is answered at once, but not before the data that it saw is durable. `change` must not fail after
// it emitted an event. It asks for rights that Admit does not ask for. It is not run for a repeated
// call (server/services/once.h).
template <class Response, class Change>
void Write(const ServiceContext& context, Call call, Reply<Response> reply,
           CommandClass command_class, size_t weight, Change change) {
  if (!Enter(context, call, reply, 0, command_class == CommandClass::kEssential)) return;
  // The reply is shared with this frame in case the command is refused and dropped.
  auto shared = std::make_shared<Reply<Response>>(std::move(reply));
  const absl::Status posted = context.loop->Post(
      [shared, call = std::move(call), change = std::move(change), loop = context.loop,
       requests = context.requests](Turn& turn) mutable {
        Rights rights(call.caller);
        absl::Status status = Admit(turn.state(), rights, call.rpc, turn.now());
        turn.By(ActorOf(call));
        if (status.ok()) {
          status = DoOnce(turn, *requests, call, shared->response(),
                          [&] { return change(turn, rights, shared->response()); });
        }
        if (!status.ok()) return AnswerSeen(*loop, turn.seen(), std::move(*shared), status);
        turn.OnDurable([shared = std::move(shared)] { shared->Finish(absl::OkStatus()); });
      },
      command_class, weight);
  if (!posted.ok()) shared->Finish(posted);
}

// A query: `ask(turn, rights, response)` runs on the loop thread, fills the response and changes
// nothing.
template <class Response, class Question>
void Ask(const ServiceContext& context, Call call, Reply<Response> reply, size_t weight,
         Question ask) {
  if (!Enter(context, call, reply)) return;
  auto shared = std::make_shared<Reply<Response>>(std::move(reply));
  const absl::Status posted = context.loop->Post(
      [shared, call = std::move(call), ask = std::move(ask),
       loop = context.loop](Turn& turn) mutable {
        Rights rights(call.caller);
        absl::Status status = Admit(turn.state(), rights, call.rpc, turn.now());
        if (status.ok()) status = ask(turn, rights, shared->response());
        AnswerSeen(*loop, turn.seen(), std::move(*shared), status);
      },
      CommandClass::kNewWork, weight);
  if (!posted.ok()) shared->Finish(posted);
}

// A read in one step: look(state, rights, response) runs under the reader lock.
template <class Response, class Look>
void ReadOnce(const ServiceContext& context, const Call& call, Reply<Response> reply, Look look) {
  if (!Enter(context, call, reply)) return;
  ReadView view(*context.loop);
  Rights rights(call.caller);
  absl::Status status = view.Step([&](const ClusterState& state) {
    absl::Status admitted = Admit(state, rights, call.rpc, context.clock->Now());
    return admitted.ok() ? look(state, rights, reply.response()) : admitted;
  });
  AnswerSeen(*context.loop, view.revision(), std::move(reply), status);
}

// A read in several steps: list(view, rights) fills the response through the view.
template <class Response, class List>
void AnswerList(const ServiceContext& context, const Call& call, Reply<Response> reply, List list) {
  if (!Enter(context, call, reply)) return;
  ReadView view(*context.loop);
  absl::Status status = AdmitIn(context, view, call);
  Rights rights(call.caller);
  if (status.ok()) status = list(view, rights);
  AnswerSeen(*context.loop, view.revision(), std::move(reply), status);
}

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CONTEXT_H_
