// What the services share.
#ifndef BERTH_SERVER_SERVICES_CONTEXT_H_
#define BERTH_SERVER_SERVICES_CONTEXT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "berth/config/v1/config.pb.h"
#include "server/convert_job.h"
#include "server/convert_values.h"
#include "server/job_conditions.h"
#include "server/live.h"
#include "server/loop.h"
#include "server/read_view.h"
#include "server/request_table.h"
#include "server/services/reply.h"
#include "storage/store.h"
#include "support/clock.h"

namespace berth {

// What updates have changed in the turn under way. Revisions are stamped at its end, so that an
// etag alone cannot tell the second of two updates in one turn from the first. Loop thread only.
class TurnEdits {
 public:
  void Note(const Turn& turn, const std::string& object) {
    if (revision_ != turn.revision()) objects_.clear();
    revision_ = turn.revision();
    objects_.insert(object);
  }
  // ABORTED if the etag, unless empty, is not that of the object as it stands.
  absl::Status CheckEtag(const Turn& turn, const std::string& object, uint64_t object_revision,
                         const std::string& etag) const {
    const bool edited = revision_ == turn.revision() && objects_.contains(object);
    const uint64_t revision = edited ? turn.revision() : object_revision;
    if (etag.empty() || etag == absl::StrCat(revision)) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(object, " has changed: its etag is ", revision, ", not ",
                                           etag, "; read it again and decide anew"));
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
  config::v1::Limits limits;         // completed
  google::protobuf::RepeatedPtrField<config::v1::RunAs> run_as = {};
  const Live<JobDefaults>* defaults = nullptr;
  // Why nothing is placed now; "" if things are. Not while the state is read.
  std::function<std::string()> placing_waits = [] { return std::string(); };

  // Restarts of the job in the last minute, if they are many (RestartWatch::Often).
  std::function<int32_t(JobId, Time)> restarts_often = [](JobId, Time) { return 0; };

  // Starts of the queue's jobs refused in a row, if they are many (RefusedStarts::InARow).
  std::function<int32_t(QueueId)> starts_refused = [](QueueId) { return 0; };

  // The job as it is now, with its conditions.
  void Render(const ClusterState& state, const Job& job, Time now, v1::Job* out) const {
    RenderJob(state, job, now, out);
    RenderConditions(state, job, restarts_often(job.id, now), out->mutable_status());
  }

  // Jobs whose turn has not come are told why no job's turn comes.
  void TellOfHold(const std::string& waits, v1::Job* job) const {
    if (waits.empty()) return;
    for (v1::WaitReason& reason : *job->mutable_status()->mutable_reasons()) {
      const bool bare = reason.code() == v1::WaitReason::NOT_CONSIDERED && reason.detail().empty();
      if (bare) reason.set_detail(waits);
    }
  }

  // With what a reload has changed of them.
  config::v1::Limits LimitsNow() const {
    config::v1::Limits now = limits;
    ToProto(defaults->Get().greatest_kill_grace, now.mutable_kill_grace());
    return now;
  }
};

// A write: `change` runs on the loop thread. If it returns OK the call is answered once the turn is
// durable, with what `change` put into the response; else at once, but not before what it saw is
// durable. It must not fail after it emitted an event.
template <class Response, class Change>
void Write(const ServiceContext& context, Reply<Response> reply, CommandClass command_class,
           size_t weight, Change change) {
  // The reply is shared with this frame for the case that the command is refused and dropped.
  auto shared = std::make_shared<Reply<Response>>(std::move(reply));
  const absl::Status posted = context.loop->Post(
      [shared, change = std::move(change)](Turn& turn) mutable {
        absl::Status status = change(turn, shared->response());
        turn.OnDurable([shared = std::move(shared), status] { shared->Finish(status); });
      },
      command_class, weight);
  if (!posted.ok()) shared->Finish(posted);
}

// Answers with `status` once all changes up to `revision`, which were seen, are durable.
template <class Response>
void AnswerSeen(Loop& loop, uint64_t revision, Reply<Response> reply, const absl::Status& status) {
  const absl::Duration patience = reply.patience();
  auto answer = [reply = std::move(reply), status](absl::Status durable) mutable {
    reply.Finish(reply.Admits(durable) ? status : durable);
  };
  loop.WhenDurable(revision, std::move(answer), patience);
}

// A question: `ask` runs on the loop thread, fills the response and changes nothing.
template <class Response, class Question>
void Ask(const ServiceContext& context, Reply<Response> reply, size_t weight, Question ask) {
  auto shared = std::make_shared<Reply<Response>>(std::move(reply));
  const absl::Status posted = context.loop->Post(
      [shared, ask = std::move(ask), loop = context.loop](Turn& turn) mutable {
        const absl::Status status = ask(turn, shared->response());
        AnswerSeen(*loop, turn.seen(), std::move(*shared), status);
      },
      CommandClass::kNewWork, weight);
  if (!posted.ok()) shared->Finish(posted);
}

// A read: `look` gets the state under the reader lock and fills the response. One step.
template <class Response, class Look>
void ReadOnce(const ServiceContext& context, Reply<Response> reply, Look look) {
  ReadView view(*context.loop);
  absl::Status status =
      view.Step([&](const ClusterState& state) { return look(state, reply.response()); });
  AnswerSeen(*context.loop, view.revision(), std::move(reply), status);
}

// A read in several steps: `list` fills the response through the view.
template <class Response, class List>
void AnswerList(const ServiceContext& context, Reply<Response> reply, List list) {
  ReadView view(*context.loop);
  absl::Status status = list(view);
  AnswerSeen(*context.loop, view.revision(), std::move(reply), status);
}

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CONTEXT_H_
