#include "server/services/queue_service.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/convert/queue.h"
#include "server/convert/shares.h"
#include "server/listeners/queue_conditions.h"
#include "server/services/name_list.h"
#include "server/validation/queue.h"
#include "server/validation/text.h"
#include "support/log.h"

namespace berth {
namespace {

// Dividing among ten thousand queues takes milliseconds: only few of these in one turn.
constexpr size_t kSharesWeight = 1000;

absl::Status RootIsImmutable(absl::string_view verb) {
  return absl::FailedPreconditionError(absl::StrCat("the root queue cannot be ", verb));
}

std::string QueueObject(absl::string_view name) { return absl::StrCat("queue ", Quoted(name)); }

std::string QueueTarget(const std::string& name) { return absl::StrCat("queue/", name); }

const IdMap<QueueId, Queue>& QueuesOf(const ClusterState& state) { return state.queues(); }

std::string BodyOf(const v1::CreateQueueRequest& request) {
  return FingerprintOf("CreateQueue", request.queue());
}

// The queue after this turn's change.
void RenderChanged(const Turn& turn, QueueId id, v1::Queue& response) {
  RenderQueue(turn.state(), turn.state().queues().At(id), &response);
  response.set_etag(absl::StrCat(turn.revision()));
}

// Fields that a queue's parent hands out.
constexpr std::array<absl::string_view, 10> kHandedOut = {
    "spec.limit",     "spec.deserved",    "spec.guarantee", "spec.weight",
    "spec.priority",  "spec.reclaimable", "spec.max_jobs",  "spec.max_running_jobs",
    "spec.max_tasks", "spec.surplus_only"};

bool ChangesHandedOut(const google::protobuf::FieldMask& mask) {
  return std::any_of(mask.paths().begin(), mask.paths().end(), [](const std::string& path) {
    return std::find(kHandedOut.begin(), kHandedOut.end(), path) != kHandedOut.end();
  });
}

// At the queue, and for what its parent hands out at the parent, too.
absl::Status PermitUpdate(const ClusterState& state, Rights& rights, const Queue& queue,
                          const google::protobuf::FieldMask& mask) {
  constexpr Rpc kRpc = Rpc::kQueueServiceUpdateQueue;
  absl::Status status = PermitOnQueue(state, rights, kRpc, queue);
  if (!status.ok() || !ChangesHandedOut(mask)) return status;
  return PermitVerb(state, rights, NeedOf(kRpc).verb, queue.spec.parent,
                    absl::StrCat("change what the parent of queue ", Quoted(queue.spec.name),
                                 " hands out to it"));
}

// The name of a parent that does not exist is refused later.
absl::Status PermitCreate(const ClusterState& state, Rights& rights, const v1::Queue& queue) {
  const std::string& parent = queue.spec().parent();
  const Queue* found = parent.empty() ? nullptr : state.FindQueue(parent);
  return PermitOnQueue(state, rights, Rpc::kQueueServiceCreateQueue,
                       found != nullptr ? *found : state.queues().At(kRootQueue));
}

absl::Status CreateQueueIn(Turn& turn, Rights& rights, RequestTable& requests,
                           const v1::CreateQueueRequest& request, v1::Queue& response) {
  absl::Status permitted = PermitCreate(turn.state(), rights, request.queue());
  if (!permitted.ok()) return permitted;
  const std::string fingerprint = BodyOf(request);
  if (!request.request_id().empty()) {
    absl::StatusOr<const std::string*> known =
        requests.Find(request.request_id(), fingerprint, turn.now());
    if (!known.ok()) return known.status();
    if (*known != nullptr) {
      response.ParseFromString(**known);
      return absl::OkStatus();
    }
  }
  const ClusterState& state = turn.state();
  if (absl::Status status = CheckQueueFits(state, request.queue()); !status.ok()) return status;
  QueueSpec spec = QueueSpecFrom(request.queue());
  const Queue* parent = state.FindQueue(request.queue().spec().parent());
  spec.parent = parent != nullptr ? parent->id : kRootQueue;
  const QueueId id = state.next_queue_id();
  if (absl::Status status = turn.Emit(QueueCreated{id, std::move(spec)}); !status.ok()) {
    return status;
  }
  RenderChanged(turn, id, response);
  if (!request.request_id().empty()) {
    requests.Remember(
        turn, {request.request_id(), fingerprint, turn.now(), response.SerializeAsString()});
  }
  LogInfo("queue created", {{"queue", response.name()}});
  return absl::OkStatus();
}

absl::Status UpdateQueueIn(Turn& turn, Rights& rights, TurnEdits& edits,
                           const v1::UpdateQueueRequest& request, v1::Queue& response) {
  const Queue* queue = turn.state().FindQueue(request.queue().name());
  if (queue == nullptr) return NoSuchQueue(turn.state(), rights, request.queue().name());
  absl::Status permitted = PermitUpdate(turn.state(), rights, *queue, request.update_mask());
  if (!permitted.ok()) return permitted;
  if (queue->id == kRootQueue) return RootIsImmutable("changed");
  const std::string object = QueueObject(queue->spec.name);
  absl::Status current = edits.CheckEtag(turn, object, queue->revision, request.queue().etag());
  if (!current.ok()) return current;
  absl::Status room = CheckQueueKinds(turn.state(), request.queue().spec());
  if (!room.ok()) return room;
  QueueSpec spec = queue->spec;
  UpdateQueueSpec(request.update_mask(), QueueSpecFrom(request.queue()), spec);
  Findings findings;
  CheckQueueShares(spec, findings);
  if (!findings.ok()) return findings.ToStatus();
  const QueueId id = queue->id;
  if (spec == queue->spec) {
    RenderQueue(turn.state(), *queue, &response);
    return absl::OkStatus();
  }
  if (absl::Status status = turn.Emit(QueueUpdated{id, std::move(spec)}); !status.ok()) {
    return status;
  }
  edits.Note(turn, object);
  RenderChanged(turn, id, response);
  LogInfo("queue updated", {{"queue", response.name()}});
  return absl::OkStatus();
}

absl::Status DeleteQueueIn(Turn& turn, Rights& rights, const TurnEdits& edits,
                           const v1::DeleteQueueRequest& request) {
  const Queue* queue = turn.state().FindQueue(request.name());
  if (queue == nullptr) return NoSuchQueue(turn.state(), rights, request.name());
  const Queue& parent = turn.state().queues().At(queue->spec.parent);
  absl::Status permitted =
      PermitOnQueue(turn.state(), rights, Rpc::kQueueServiceDeleteQueue, parent);
  if (!permitted.ok()) return permitted;
  if (queue->id == kRootQueue) return RootIsImmutable("deleted");
  absl::Status current =
      edits.CheckEtag(turn, QueueObject(queue->spec.name), queue->revision, request.etag());
  if (!current.ok()) return current;
  if (absl::Status empty = CheckQueueEmpty(turn.state(), *queue); !empty.ok()) return empty;
  LogInfo("queue deleted", {{"queue", request.name()}});
  return turn.Emit(QueueDeleted{queue->id});
}

absl::Status OpenOrClose(Turn& turn, Rights& rights, TurnEdits& edits, const std::string& name,
                         bool open, v1::Queue& response) {
  const Queue* queue = turn.state().FindQueue(name);
  if (queue == nullptr) return NoSuchQueue(turn.state(), rights, name);
  const Rpc rpc = open ? Rpc::kQueueServiceOpenQueue : Rpc::kQueueServiceCloseQueue;
  absl::Status permitted = PermitOnQueue(turn.state(), rights, rpc, *queue);
  if (!permitted.ok()) return permitted;
  const QueueId id = queue->id;
  if (queue->open == open) {
    RenderQueue(turn.state(), *queue, &response);
    return absl::OkStatus();
  }
  if (absl::Status status = turn.Emit(QueueOpened{id, open}); !status.ok()) return status;
  edits.Note(turn, QueueObject(name));
  RenderChanged(turn, id, response);
  LogInfo(open ? "queue opened" : "queue closed", {{"queue", name}});
  return absl::OkStatus();
}

absl::Status ListQueuesIn(ReadView& view, Rights& rights, const v1::ListQueuesRequest& request,
                          v1::ListQueuesResponse& response) {
  const std::string scope = FingerprintOf("queues", v1::ListQueuesRequest());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  const auto size = static_cast<size_t>(page->size);
  NamedRows<QueueId> rows = FirstByName<QueueId>(
      view, page->after, size + 1, QueuesOf,
      [&](const ClusterState& state, const Queue& queue) -> std::optional<std::string> {
        if (queue.id == kRootQueue) return std::nullopt;  // available with GetQueue
        if (!rights.OnQueue(state, Verb::kReadQueue, queue.id)) return std::nullopt;
        return queue.spec.name;
      });
  if (rows.size() > size) {
    rows.pop_back();
    response.set_next_page_token(PageToken(rows.back().first, scope));
  }
  RenderRows<QueueId>(view, rows, QueuesOf, [&](const ClusterState& state, const Queue& queue) {
    RenderQueue(state, queue, response.add_queues());
  });
  return absl::OkStatus();
}

// Only of queues that the caller may read.
void KeepReadable(const ClusterState& state, Rights& rights,
                  v1::ListQueueSharesResponse* response) {
  auto* shares = response->mutable_shares();
  const auto hidden = [&](const v1::QueueShares& of) {
    const Queue* queue = state.FindQueue(of.queue());
    return queue == nullptr || !rights.OnQueue(state, Verb::kReadQueue, queue->id);
  };
  shares->erase(std::remove_if(shares->begin(), shares->end(), hidden), shares->end());
}

absl::Status ListShares(const Turn& turn, Rights& rights, const std::string& name,
                        v1::ListQueueSharesResponse& response) {
  const ClusterState& state = turn.state();
  const Queue* top = name.empty() ? &state.queues().At(kRootQueue) : state.FindQueue(name);
  if (top == nullptr) return NoSuchQueue(state, rights, name);
  absl::Status status =
      RenderShares(state, turn.policies().fair_share(), *top, !name.empty(), &response);
  if (status.ok() && !rights.SeesAll(state)) KeepReadable(state, rights, &response);
  return status;
}

}  // namespace

grpc::ServerUnaryReactor* QueueService::CreateQueue(grpc::CallbackServerContext* context,
                                                    const v1::CreateQueueRequest* request,
                                                    v1::Queue* response) {
  Reply<v1::Queue> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateCreateQueue(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(Rpc::kQueueServiceCreateQueue, *context,
                                    QueueTarget(request->queue().name()), request->request_id());
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, requests = context_.requests](Turn& turn, Rights& rights, v1::Queue& queue) {
          return CreateQueueIn(turn, rights, *requests, *request, queue);
        });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::GetQueue(grpc::CallbackServerContext* context,
                                                 const v1::GetQueueRequest* request,
                                                 v1::Queue* response) {
  Reply<v1::Queue> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call =
      context_.CallOf(Rpc::kQueueServiceGetQueue, *context, QueueTarget(request->name()));
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights& rights, v1::Queue& out) {
             const Queue* queue = state.FindQueue(request->name());
             if (queue == nullptr) return NoSuchQueue(state, rights, request->name());
             absl::Status permitted = PermitOnQueue(state, rights, call.rpc, *queue);
             if (!permitted.ok()) return permitted;
             RenderQueue(state, *queue, &out);
             RenderConditions(context_.starts_refused(queue->id), out.mutable_status());
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::ListQueues(grpc::CallbackServerContext* context,
                                                   const v1::ListQueuesRequest* request,
                                                   v1::ListQueuesResponse* response) {
  Reply<v1::ListQueuesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  AnswerList(context_, context_.CallOf(Rpc::kQueueServiceListQueues, *context), std::move(reply),
             [&](ReadView& view, Rights& rights) {
               return ListQueuesIn(view, rights, *request, *response);
             });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::UpdateQueue(grpc::CallbackServerContext* context,
                                                    const v1::UpdateQueueRequest* request,
                                                    v1::Queue* response) {
  Reply<v1::Queue> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateUpdateQueue(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(Rpc::kQueueServiceUpdateQueue, *context,
                                    QueueTarget(request->queue().name()));
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, edits = context_.edits](Turn& turn, Rights& rights, v1::Queue& queue) {
          return UpdateQueueIn(turn, rights, *edits, *request, queue);
        });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::DeleteQueue(grpc::CallbackServerContext* context,
                                                    const v1::DeleteQueueRequest* request,
                                                    v1::DeleteQueueResponse* response) {
  Reply<v1::DeleteQueueResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call =
      context_.CallOf(Rpc::kQueueServiceDeleteQueue, *context, QueueTarget(request->name()));
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, edits = context_.edits](Turn& turn, Rights& rights, v1::DeleteQueueResponse&) {
          return DeleteQueueIn(turn, rights, *edits, *request);
        });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::SetOpen(Call call, Reply<v1::Queue> reply,
                                                const std::string& name, bool open) {
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Write(context_, std::move(call), std::move(reply), CommandClass::kEssential, 1,
        [name, open, edits = context_.edits](Turn& turn, Rights& rights, v1::Queue& queue) {
          return OpenOrClose(turn, rights, *edits, name, open, queue);
        });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::OpenQueue(grpc::CallbackServerContext* context,
                                                  const v1::OpenQueueRequest* request,
                                                  v1::Queue* response) {
  return SetOpen(
      context_.CallOf(Rpc::kQueueServiceOpenQueue, *context, QueueTarget(request->name())),
      Reply<v1::Queue>(context, response), request->name(), true);
}

grpc::ServerUnaryReactor* QueueService::CloseQueue(grpc::CallbackServerContext* context,
                                                   const v1::CloseQueueRequest* request,
                                                   v1::Queue* response) {
  return SetOpen(
      context_.CallOf(Rpc::kQueueServiceCloseQueue, *context, QueueTarget(request->name())),
      Reply<v1::Queue>(context, response), request->name(), false);
}

// Runs on the loop thread, because the policies are there.
grpc::ServerUnaryReactor* QueueService::ListQueueShares(grpc::CallbackServerContext* context,
                                                        const v1::ListQueueSharesRequest* request,
                                                        v1::ListQueueSharesResponse* response) {
  Reply<v1::ListQueueSharesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Ask(context_, context_.CallOf(Rpc::kQueueServiceListQueueShares, *context), std::move(reply),
      kSharesWeight, [request](Turn& turn, Rights& rights, v1::ListQueueSharesResponse& answer) {
        return ListShares(turn, rights, request->queue(), answer);
      });
  return reactor;
}

}  // namespace berth
