// NodeService: join tokens, and what berth-authd asks.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/commands/access_change.h"
#include "server/commands/join_tokens.h"
#include "server/services/node_service.h"
#include "server/validation/text.h"
#include "support/log.h"

namespace berth {
namespace {

absl::Status CreateJoinTokenIn(Turn& turn, const ServiceContext& context,
                               const v1::CreateJoinTokenRequest& request, const Call& call,
                               v1::CreateJoinTokenResponse& response) {
  absl::Status status = CheckFormatOfAccess(context.store->Format());
  if (!status.ok()) return status;
  const absl::StatusOr<NewJoinToken> made = MakeJoinToken();
  if (!made.ok()) return made.status();
  const AccessChange change =
      CreationOf(request, made->key, OwnerBy(call), turn.state(), turn.now());
  status = turn.state().access().Check(change);
  if (status.ok()) status = turn.Emit(AccessChanged{change});
  if (!status.ok()) return status;
  const JoinToken& token = change.join_tokens.create.front();
  LogInfo("join token created", {{"token", token.id},
                                 {"nodes", token.nodes},
                                 {"uses", token.uses_left},
                                 {"by", TextOf(call)}});
  RenderJoinToken(token, response.mutable_token());
  response.set_secret(made->text);
  return absl::OkStatus();
}

absl::Status RevokeJoinTokenIn(Turn& turn, const std::string& id, const std::string& by) {
  if (turn.state().access().join_tokens().Find(id) == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no join token ", Quoted(id)));
  }
  AccessChange change;
  change.join_tokens.drop = {id};
  LogInfo("join token revoked", {{"token", id}, {"by", by}});
  return turn.Emit(AccessChanged{std::move(change)});
}

absl::Status AdmitNodeIn(Turn& turn, const v1::AdmitNodeRequest& request, const std::string& by) {
  absl::StatusOr<AccessChange> change = AdmissionOf(request, turn.state(), turn.now());
  if (!change.ok()) return change.status();
  if (change->empty()) return absl::OkStatus();
  LogInfo("join token used",
          {{"token", change->join_tokens.redeem.front().id}, {"node", request.node()}, {"by", by}});
  return turn.Emit(AccessChanged{*std::move(change)});
}

}  // namespace

grpc::ServerUnaryReactor* NodeService::CreateJoinToken(grpc::CallbackServerContext* context,
                                                       const v1::CreateJoinTokenRequest* request,
                                                       v1::CreateJoinTokenResponse* response) {
  Reply<v1::CreateJoinTokenResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateCreateJoinToken(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(Rpc::kNodeServiceCreateJoinToken, *context);
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [this, request, call](Turn& turn, Rights&, v1::CreateJoinTokenResponse& out) {
          return CreateJoinTokenIn(turn, context_, *request, call, out);
        });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::ListJoinTokens(grpc::CallbackServerContext* context,
                                                      const v1::ListJoinTokensRequest*,
                                                      v1::ListJoinTokensResponse* response) {
  Reply<v1::ListJoinTokensResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kNodeServiceListJoinTokens, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights&, v1::ListJoinTokensResponse& out) {
             for (const auto& [id, token] : state.access().join_tokens().all()) {
               if (token.expires > context_.clock->Now()) RenderJoinToken(token, out.add_tokens());
             }
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::RevokeJoinToken(grpc::CallbackServerContext* context,
                                                       const v1::RevokeJoinTokenRequest* request,
                                                       v1::RevokeJoinTokenResponse* response) {
  Reply<v1::RevokeJoinTokenResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kNodeServiceRevokeJoinToken, *context);
  Write(context_, call, std::move(reply), CommandClass::kEssential, 1,
        [request, by = TextOf(call)](Turn& turn, Rights&, v1::RevokeJoinTokenResponse&) {
          return RevokeJoinTokenIn(turn, request->id(), by);
        });
  return reactor;
}

grpc::ServerUnaryReactor* NodeService::AdmitNode(grpc::CallbackServerContext* context,
                                                 const v1::AdmitNodeRequest* request,
                                                 v1::AdmitNodeResponse* response) {
  Reply<v1::AdmitNodeResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateAdmitNode(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(Rpc::kNodeServiceAdmitNode, *context);
  // A renewal changes nothing, so it needs no space on the disk.
  const CommandClass command_class =
      request->token().empty() ? CommandClass::kEssential : CommandClass::kNewWork;
  Write(context_, call, std::move(reply), command_class, 1,
        [request, by = TextOf(call)](Turn& turn, Rights&, v1::AdmitNodeResponse&) {
          return AdmitNodeIn(turn, *request, by);
        });
  return reactor;
}

}  // namespace berth
