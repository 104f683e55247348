#include "server/services/history_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/history/ended_job.h"
#include "server/history/history_query.h"
#include "server/services/paging.h"
#include "server/validation/history.h"

namespace berth {
namespace {

// The lowest queue of the path that exists.
QueueId LowestIn(const ClusterState& state, absl::string_view path) {
  while (!path.empty()) {
    const Queue* queue = state.FindQueue(QueueNameIn(path));
    const size_t slash = path.rfind('/');
    const absl::string_view above =
        slash == absl::string_view::npos ? absl::string_view() : path.substr(0, slash);
    if (queue != nullptr && queue->id != kRootQueue) {
      const QueueId parent = queue->spec.parent;
      const std::string& name = state.queues().At(parent).spec.name;
      const bool there = above.empty() ? parent == kRootQueue : name == QueueNameIn(above);
      if (there) return queue->id;
    }
    path = above;
  }
  return kRootQueue;
}

QueueSight SightOf(const ClusterState& state, Rights& rights, const std::string& path) {
  const VerbSet verbs = rights.At(state, LowestIn(state, path));
  if (verbs.Has(Verb::kListJobs)) {
    return verbs.Has(Verb::kReadJob) ? QueueSight::kAll : QueueSight::kJobs;
  }
  return verbs.Has(Verb::kReadQueue) ? QueueSight::kSums : QueueSight::kNothing;
}

// What the caller sees, as the rules are when it asks.
QueueSights SightsOf(const ServiceContext& context, const Call& call, Verb of_queue) {
  auto rights = std::make_shared<Rights>(call.caller);
  const bool user = call.caller->principal.kind == Principal::Kind::kUser;
  return QueueSights(
      [loop = context.loop, rights, of_queue](const std::string& path) {
        return loop->Read([&](const ClusterState& state, uint64_t) {
          const VerbSet verbs = rights->At(state, LowestIn(state, path));
          return verbs.Has(of_queue) ? SightOf(state, *rights, path) : QueueSight::kNothing;
        });
      },
      user ? call.caller->principal.name : "");
}

template <class Request>
std::string HistoryScope(absl::string_view list, Request request) {
  request.clear_page_size();
  request.clear_page_token();
  return FingerprintOf(list, request);
}

// Answers a page: answer(database, page, response) sets `page.after`.
template <class Request, class Response, class Validate, class Answer>
grpc::ServerUnaryReactor* AnswerPage(const ServiceContext& context, History& history,
                                     const Call& call, grpc::CallbackServerContext* server,
                                     const Request* request, Response* response, Validate validate,
                                     Answer answer) {
  auto reply = std::make_shared<Reply<Response>>(server, response);
  grpc::ServerUnaryReactor* reactor = reply->reactor();
  if (!Enter(context, call, *reply)) return reactor;
  absl::Status status = AdmitNow(context, call);
  if (status.ok()) status = validate(*request);
  const std::string scope = HistoryScope(NameOf(call.rpc), *request);
  absl::StatusOr<Page> page = status;
  if (status.ok()) page = ReadPage(request->page_size(), request->page_token(), scope);
  if (!page.ok()) {
    reply->Finish(page.status());
    return reactor;
  }
  HistoryPage wanted{.size = page->size, .after = page->after};
  history.Ask(*context.loop, [reply, request, scope, wanted = std::move(wanted),
                              answer](History::Database database) mutable {
    absl::Status answered = database.status();
    if (answered.ok()) answered = answer(**database, *request, wanted, reply->response());
    if (answered.ok() && !wanted.after.empty()) {
      reply->response().set_next_page_token(PageToken(wanted.after, scope));
    }
    reply->Finish(answered);
  });
  return reactor;
}

}  // namespace

// Figures follow from what is durable, so answers need not wait for the disk.
grpc::ServerUnaryReactor* HistoryService::GetUsage(grpc::CallbackServerContext* context,
                                                   const v1::GetUsageRequest* request,
                                                   v1::GetUsageResponse* response) {
  const Call call = context_.CallOf(Rpc::kHistoryServiceGetUsage, *context);
  return AnswerPage(
      context_, *history_, call, context, request, response, ValidateGetUsage,
      [&server = context_, call](const HistoryDb& database, const v1::GetUsageRequest& asked,
                                 HistoryPage& page, v1::GetUsageResponse& out) {
        QueueSights sights = SightsOf(server, call, Verb::kReadQueue);
        return AnswerUsage(database, asked, sights, page, out);
      });
}

grpc::ServerUnaryReactor* HistoryService::GetCapacity(grpc::CallbackServerContext* context,
                                                      const v1::GetCapacityRequest* request,
                                                      v1::GetCapacityResponse* response) {
  const Call call = context_.CallOf(Rpc::kHistoryServiceGetCapacity, *context);
  return AnswerPage(context_, *history_, call, context, request, response, ValidateGetCapacity,
                    AnswerCapacity);
}

grpc::ServerUnaryReactor* HistoryService::ListEndedJobs(grpc::CallbackServerContext* context,
                                                        const v1::ListEndedJobsRequest* request,
                                                        v1::ListEndedJobsResponse* response) {
  const Call call = context_.CallOf(Rpc::kHistoryServiceListEndedJobs, *context);
  return AnswerPage(
      context_, *history_, call, context, request, response, ValidateListEndedJobs,
      [&server = context_, call](const HistoryDb& database, const v1::ListEndedJobsRequest& asked,
                                 HistoryPage& page, v1::ListEndedJobsResponse& out) {
        QueueSights sights = SightsOf(server, call, Verb::kListJobs);
        return AnswerEndedJobs(database, asked, sights, page, out);
      });
}

}  // namespace berth
