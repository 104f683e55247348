#include "server/services/hyper_node_service.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "server/convert/topology.h"
#include "server/reads/domain_totals.h"
#include "server/services/name_list.h"
#include "server/validation/hyper_node.h"
#include "server/validation/no_such.h"
#include "server/validation/text.h"
#include "support/log.h"

namespace berth {
namespace {

std::string HyperNodeObject(absl::string_view name) {
  return absl::StrCat("HyperNode ", Quoted(name));
}

const IdMap<HyperNodeId, HyperNode>& HyperNodesOf(const ClusterState& state) {
  return state.hyper_nodes();
}

// The changes of one call, and their results.
struct Changes {
  std::vector<HyperNodeSpec> changed;
  std::vector<std::string> deleted;
  int64_t created = 0, updated = 0, unchanged = 0;
};

absl::Status CheckEtag(const Turn& turn, const TurnEdits& edits, const HyperNode& known,
                       const std::string& etag) {
  return edits.CheckEtag(turn, HyperNodeObject(known.spec.name), known.revision, etag);
}

// Adds the change that the message requests, if any.
absl::Status AddRequestedChange(const Turn& turn, const TurnEdits& edits, const v1::HyperNode& wish,
                                Changes* changes) {
  const HyperNode* known = turn.state().FindHyperNode(wish.name());
  HyperNodeSpec spec = HyperNodeSpecFrom(wish);
  if (known == nullptr) {
    if (!wish.etag().empty()) return NoSuchHyperNode(wish.name());
    ++changes->created;
  } else {
    absl::Status status = CheckEtag(turn, edits, *known, wish.etag());
    if (status.ok()) status = CheckSourceKept(known->spec, spec);
    if (!status.ok()) return status;
    if (spec == known->spec) {
      ++changes->unchanged;
      return absl::OkStatus();
    }
    ++changes->updated;
  }
  changes->changed.push_back(std::move(spec));
  return absl::OkStatus();
}

// All changes, or none on an error. With `validate_only` none in any case.
absl::Status Make(Turn& turn, TurnEdits& edits, const Changes& changes, bool validate_only) {
  absl::Status fits = CheckHyperNodesFit(turn.state(), static_cast<size_t>(changes.created),
                                         changes.deleted.size());
  if (!fits.ok()) return fits;
  absl::StatusOr<std::vector<EventBody>> events =
      turn.membership().Plan(turn.state(), changes.changed, changes.deleted);
  if (!events.ok() || validate_only) return events.status();
  for (EventBody& event : *events) BERTH_CHECK(turn.Emit(std::move(event)).ok());
  for (const HyperNodeSpec& spec : changes.changed) edits.Note(turn, HyperNodeObject(spec.name));
  return absl::OkStatus();
}

// The HyperNode after this turn's change.
void RenderNow(const Turn& turn, const std::string& name, bool changed, v1::HyperNode& response) {
  const HyperNode& domain = *turn.state().FindHyperNode(name);
  RenderHyperNode(turn.state(), domain, &response);
  FillTotals(turn.state(), domain.id, response.mutable_status());
  if (changed) response.set_etag(absl::StrCat(turn.revision()));
}

// True if the request was answered before: `response` is that response.
template <class Response>
absl::StatusOr<bool> Answered(const Turn& turn, const RequestTable& requests, const std::string& id,
                              const std::string& fingerprint, Response& response) {
  if (id.empty()) return false;
  absl::StatusOr<const std::string*> known = requests.Find(id, fingerprint, turn.now());
  if (!known.ok()) return known.status();
  if (*known == nullptr) return false;
  response.ParseFromString(**known);
  return true;
}

template <class Response>
void Remember(Turn& turn, RequestTable& requests, const std::string& id, std::string fingerprint,
              const Response& response) {
  if (id.empty()) return;
  requests.Remember(turn, {id, std::move(fingerprint), turn.now(), response.SerializeAsString()});
}

absl::Status CreateHyperNodeIn(Turn& turn, const ServiceContext& context,
                               const v1::CreateHyperNodeRequest& request, v1::HyperNode& response) {
  const std::string fingerprint = FingerprintOf("CreateHyperNode", request.hyper_node());
  const absl::StatusOr<bool> answered =
      Answered(turn, *context.requests, request.request_id(), fingerprint, response);
  if (!answered.ok() || *answered) return answered.status();
  const std::string& name = request.hyper_node().name();
  if (turn.state().FindHyperNode(name) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat("HyperNode ", Quoted(name), " already exists"));
  }
  Changes changes;
  absl::Status status = AddRequestedChange(turn, *context.edits, request.hyper_node(), &changes);
  if (status.ok()) status = Make(turn, *context.edits, changes, false);
  if (!status.ok()) return status;
  RenderNow(turn, name, true, response);
  Remember(turn, *context.requests, request.request_id(), fingerprint, response);
  LogInfo("HyperNode created", {{"hyper_node", name}});
  return absl::OkStatus();
}

absl::Status UpdateHyperNodeIn(Turn& turn, Rights& rights, const ServiceContext& context,
                               const v1::UpdateHyperNodeRequest& request, v1::HyperNode& response) {
  const std::string& name = request.hyper_node().name();
  if (turn.state().FindHyperNode(name) == nullptr) {
    return NoSuchHyperNode(turn.state(), rights, name);
  }
  Changes changes;
  absl::Status status = AddRequestedChange(turn, *context.edits, request.hyper_node(), &changes);
  if (!status.ok()) return status;
  if (changes.updated > 0) {
    status = Make(turn, *context.edits, changes, false);
    if (!status.ok()) return status;
    LogInfo("HyperNode updated", {{"hyper_node", name}});
  }
  RenderNow(turn, name, changes.updated > 0, response);
  return absl::OkStatus();
}

absl::Status DeleteHyperNodeIn(Turn& turn, Rights& rights, const ServiceContext& context,
                               const v1::DeleteHyperNodeRequest& request) {
  const HyperNode* known = turn.state().FindHyperNode(request.name());
  if (known == nullptr) return NoSuchHyperNode(turn.state(), rights, request.name());
  absl::Status status = CheckEtag(turn, *context.edits, *known, request.etag());
  Changes changes;
  changes.deleted.push_back(request.name());
  if (status.ok()) status = Make(turn, *context.edits, changes, false);
  if (status.ok()) LogInfo("HyperNode deleted", {{"hyper_node", request.name()}});
  return status;
}

absl::Status GatherChanges(const Turn& turn, const TurnEdits& edits,
                           const v1::ApplyHyperNodesRequest& request, Changes* changes) {
  for (const v1::HyperNode& wish : request.hyper_nodes()) {
    absl::Status status = AddRequestedChange(turn, edits, wish, changes);
    if (!status.ok()) return status;
  }
  for (const std::string& name : request.delete_names()) {
    if (turn.state().FindHyperNode(name) == nullptr) return NoSuchHyperNode(name);
    changes->deleted.push_back(name);
  }
  return absl::OkStatus();
}

absl::Status ApplyAll(Turn& turn, const ServiceContext& context,
                      const v1::ApplyHyperNodesRequest& request,
                      v1::ApplyHyperNodesResponse& response) {
  v1::ApplyHyperNodesRequest body = request;
  body.clear_request_id();
  const std::string fingerprint = FingerprintOf("ApplyHyperNodes", body);
  const absl::StatusOr<bool> answered =
      Answered(turn, *context.requests, request.request_id(), fingerprint, response);
  if (!answered.ok() || *answered) return answered.status();
  Changes changes;
  absl::Status status = GatherChanges(turn, *context.edits, request, &changes);
  if (status.ok()) status = Make(turn, *context.edits, changes, request.validate_only());
  if (!status.ok()) return status;
  response.set_created(changes.created);
  response.set_updated(changes.updated);
  response.set_unchanged(changes.unchanged);
  response.set_deleted(static_cast<int64_t>(changes.deleted.size()));
  if (request.validate_only()) return absl::OkStatus();
  Remember(turn, *context.requests, request.request_id(), fingerprint, response);
  LogInfo("HyperNodes applied", {{"created", changes.created},
                                 {"updated", changes.updated},
                                 {"unchanged", changes.unchanged},
                                 {"deleted", changes.deleted.size()}});
  return absl::OkStatus();
}

// By kind, then name.
std::string SortKey(const HyperNodeSpec& spec) {
  return absl::StrCat(spec.kind, "\x01", spec.name);
}

absl::Status ListHyperNodesIn(ReadView& view, const v1::ListHyperNodesRequest& request,
                              v1::ListHyperNodesResponse& response) {
  v1::ListHyperNodesRequest filter;
  filter.set_kind(request.kind());
  filter.set_source(request.source());
  const std::string scope = FingerprintOf("hyper_nodes", filter);
  const int wanted = request.page_size() == 0 ? kMaxPageSize : request.page_size();
  absl::StatusOr<Page> page = ReadPage(wanted, request.page_token(), scope);
  if (!page.ok()) return page.status();
  const auto size = static_cast<size_t>(page->size);
  NamedRows<HyperNodeId> rows = FirstByName<HyperNodeId>(
      view, page->after, size + 1, HyperNodesOf,
      [&](const ClusterState&, const HyperNode& domain) -> std::optional<std::string> {
        const HyperNodeSpec& spec = domain.spec;
        if (!request.kind().empty() && request.kind() != spec.kind) return std::nullopt;
        if (!request.source().empty() && request.source() != spec.source) return std::nullopt;
        return SortKey(spec);
      });
  if (rows.size() > size) {
    rows.pop_back();
    response.set_next_page_token(PageToken(rows.back().first, scope));
  }
  std::vector<HyperNodeId> rendered;
  RenderRows<HyperNodeId>(view, rows, HyperNodesOf,
                          [&](const ClusterState& state, const HyperNode& domain) {
                            RenderHyperNode(state, domain, response.add_hyper_nodes());
                            rendered.push_back(domain.id);
                          });
  for (size_t i = 0; i < rendered.size(); ++i) {
    FillTotals(view, rendered[i],
               response.mutable_hyper_nodes(static_cast<int>(i))->mutable_status());
  }
  return absl::OkStatus();
}

absl::Status Get(ReadView& view, Rights& rights, const std::string& name, v1::HyperNode& response) {
  const HyperNodeId id = view.Step([&](const ClusterState& state) {
    const HyperNode* domain = state.FindHyperNode(name);
    if (domain == nullptr) return HyperNodeId{};
    RenderHyperNode(state, *domain, &response);
    return domain->id;
  });
  if (id == HyperNodeId{}) {
    return view.Step(
        [&](const ClusterState& state) { return NoSuchHyperNode(state, rights, name); });
  }
  FillTotals(view, id, response.mutable_status());
  FillConflicts(view, id, response.mutable_status());
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* HyperNodeService::CreateHyperNode(
    grpc::CallbackServerContext* context, const v1::CreateHyperNodeRequest* request,
    v1::HyperNode* response) {
  Reply<v1::HyperNode> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateCreateHyperNode(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  Write(context_,
        context_.CallOf(Rpc::kHyperNodeServiceCreateHyperNode, *context, {}, request->request_id()),
        std::move(reply), CommandClass::kNewWork, 1,
        [request, this](Turn& turn, Rights&, v1::HyperNode& out) {
          return CreateHyperNodeIn(turn, context_, *request, out);
        });
  return reactor;
}

grpc::ServerUnaryReactor* HyperNodeService::GetHyperNode(grpc::CallbackServerContext* context,
                                                         const v1::GetHyperNodeRequest* request,
                                                         v1::HyperNode* response) {
  Reply<v1::HyperNode> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  AnswerList(context_, context_.CallOf(Rpc::kHyperNodeServiceGetHyperNode, *context),
             std::move(reply), [&](ReadView& view, Rights& rights) {
               return Get(view, rights, request->name(), *response);
             });
  return reactor;
}

grpc::ServerUnaryReactor* HyperNodeService::ListHyperNodes(grpc::CallbackServerContext* context,
                                                           const v1::ListHyperNodesRequest* request,
                                                           v1::ListHyperNodesResponse* response) {
  Reply<v1::ListHyperNodesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  AnswerList(context_, context_.CallOf(Rpc::kHyperNodeServiceListHyperNodes, *context),
             std::move(reply),
             [&](ReadView& view, Rights&) { return ListHyperNodesIn(view, *request, *response); });
  return reactor;
}

grpc::ServerUnaryReactor* HyperNodeService::UpdateHyperNode(
    grpc::CallbackServerContext* context, const v1::UpdateHyperNodeRequest* request,
    v1::HyperNode* response) {
  Reply<v1::HyperNode> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateUpdateHyperNode(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  Write(context_, context_.CallOf(Rpc::kHyperNodeServiceUpdateHyperNode, *context),
        std::move(reply), CommandClass::kNewWork, 1,
        [request, this](Turn& turn, Rights& rights, v1::HyperNode& out) {
          return UpdateHyperNodeIn(turn, rights, context_, *request, out);
        });
  return reactor;
}

grpc::ServerUnaryReactor* HyperNodeService::DeleteHyperNode(
    grpc::CallbackServerContext* context, const v1::DeleteHyperNodeRequest* request,
    v1::DeleteHyperNodeResponse* response) {
  Reply<v1::DeleteHyperNodeResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  Write(context_, context_.CallOf(Rpc::kHyperNodeServiceDeleteHyperNode, *context),
        std::move(reply), CommandClass::kNewWork, 1,
        [request, this](Turn& turn, Rights& rights, v1::DeleteHyperNodeResponse&) {
          return DeleteHyperNodeIn(turn, rights, context_, *request);
        });
  return reactor;
}

grpc::ServerUnaryReactor* HyperNodeService::ApplyHyperNodes(
    grpc::CallbackServerContext* context, const v1::ApplyHyperNodesRequest* request,
    v1::ApplyHyperNodesResponse* response) {
  Reply<v1::ApplyHyperNodesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateApplyHyperNodes(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const auto weight =
      static_cast<size_t>(1 + request->hyper_nodes_size() + request->delete_names_size());
  Write(context_,
        context_.CallOf(Rpc::kHyperNodeServiceApplyHyperNodes, *context, {}, request->request_id()),
        std::move(reply), CommandClass::kNewWork, weight,
        [request, this](Turn& turn, Rights&, v1::ApplyHyperNodesResponse& out) {
          return ApplyAll(turn, context_, *request, out);
        });
  return reactor;
}

}  // namespace berth
