#include "server/services/priority_class_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/access/nearest_name.h"
#include "server/commands/job_class.h"
#include "server/convert/priority_class.h"
#include "server/services/paging.h"
#include "server/validation/priority_class.h"
#include "server/validation/text.h"
#include "support/log.h"

namespace berth {
namespace {

std::string ClassTarget(const std::string& name) { return absl::StrCat("priority-class/", name); }

absl::Status CheckClassFormat(const Store& store) {
  if (store.Format() >= kFormatOfPriorityClasses) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("priority classes need store format ", kFormatOfPriorityClasses,
                   ", and the store has ", store.Format(), ": run `berth cluster finalize` first"));
}

// Checks the change, makes it, and logs it.
absl::Status ChangeClasses(Turn& turn, PriorityClassChange change, const char* what,
                           const std::string& name, const std::string& by) {
  absl::Status status = turn.state().priority_classes().Check(change);
  if (!status.ok()) return status;
  LogInfo(what, {{"priority_class", name}, {"by", by}});
  return turn.Emit(PriorityClassesChanged{std::move(change)});
}

absl::Status CreateClassIn(Turn& turn, const ServiceContext& context,
                           const v1::CreatePriorityClassRequest& request, const std::string& by,
                           v1::PriorityClass& response) {
  const std::string& id = request.request_id();
  const std::string fingerprint = FingerprintOf("CreatePriorityClass", request.priority_class());
  if (!id.empty()) {
    absl::StatusOr<const std::string*> known = context.requests->Find(id, fingerprint, turn.now());
    if (!known.ok()) return known.status();
    if (*known != nullptr) {
      response.ParseFromString(**known);
      return absl::OkStatus();
    }
  }
  const PriorityClass made = PriorityClassFrom(request.priority_class());
  if (turn.state().priority_classes().Find(made.name) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("priority class ", Quoted(made.name), " already exists"));
  }
  absl::Status status = CheckClassFormat(*context.store);
  if (status.ok()) {
    status =
        ChangeClasses(turn, {.remove = {}, .set = {made}}, "priority class created", made.name, by);
  }
  if (!status.ok()) return status;
  RenderWithEtag(made, &response);
  if (!id.empty()) {
    context.requests->Remember(turn, {id, fingerprint, turn.now(), response.SerializeAsString()});
  }
  return absl::OkStatus();
}

absl::Status UpdateClassIn(Turn& turn, const v1::UpdatePriorityClassRequest& request,
                           const std::string& by, v1::PriorityClass& response) {
  const std::string& name = request.priority_class().name();
  const PriorityClass* known = turn.state().priority_classes().Find(name);
  if (known == nullptr) return NoSuchPriorityClass(turn.state(), name);
  absl::Status status = CheckClassEtag(*known, request.priority_class().etag());
  if (!status.ok()) return status;
  PriorityClass changed = *known;
  UpdatePriorityClass(request.update_mask(), PriorityClassFrom(request.priority_class()), changed);
  if (!(changed == *known)) {
    status =
        ChangeClasses(turn, {.remove = {}, .set = {changed}}, "priority class updated", name, by);
    if (!status.ok()) return status;
  }
  RenderWithEtag(changed, &response);
  return absl::OkStatus();
}

absl::Status DeleteClassIn(Turn& turn, const v1::DeletePriorityClassRequest& request,
                           const std::string& by) {
  const PriorityClass* known = turn.state().priority_classes().Find(request.name());
  if (known == nullptr) return NoSuchPriorityClass(turn.state(), request.name());
  absl::Status status = CheckClassEtag(*known, request.etag());
  if (!status.ok()) return status;
  return ChangeClasses(turn, {.remove = {request.name()}, .set = {}}, "priority class deleted",
                       request.name(), by);
}

absl::Status ListClasses(const ClusterState& state, const v1::ListPriorityClassesRequest& request,
                         v1::ListPriorityClassesResponse& response) {
  const std::string scope = FingerprintOf("priority classes", v1::ListPriorityClassesRequest());
  absl::StatusOr<Page> page = ReadPage(request.page_size(), request.page_token(), scope);
  if (!page.ok()) return page.status();
  const auto& all = state.priority_classes().all();
  for (auto next = all.upper_bound(page->after); next != all.end(); ++next) {
    if (response.priority_classes_size() == page->size) {
      response.set_next_page_token(
          PageToken(response.priority_classes(page->size - 1).name(), scope));
      break;
    }
    RenderWithEtag(next->second, response.add_priority_classes());
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* PriorityClassService::CreatePriorityClass(
    grpc::CallbackServerContext* context, const v1::CreatePriorityClassRequest* request,
    v1::PriorityClass* response) {
  Reply<v1::PriorityClass> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateCreatePriorityClass(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call =
      context_.CallOf(Rpc::kPriorityClassServiceCreatePriorityClass, *context,
                      ClassTarget(request->priority_class().name()), request->request_id());
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [this, request, by = TextOf(call)](Turn& turn, Rights&, v1::PriorityClass& made) {
          return CreateClassIn(turn, context_, *request, by, made);
        });
  return reactor;
}

grpc::ServerUnaryReactor* PriorityClassService::GetPriorityClass(
    grpc::CallbackServerContext* context, const v1::GetPriorityClassRequest* request,
    v1::PriorityClass* response) {
  Reply<v1::PriorityClass> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kPriorityClassServiceGetPriorityClass, *context,
                                    ClassTarget(request->name()));
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights&, v1::PriorityClass& out) {
             const PriorityClass* known = state.priority_classes().Find(request->name());
             if (known == nullptr) return NoSuchPriorityClass(state, request->name());
             RenderWithEtag(*known, &out);
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* PriorityClassService::ListPriorityClasses(
    grpc::CallbackServerContext* context, const v1::ListPriorityClassesRequest* request,
    v1::ListPriorityClassesResponse* response) {
  Reply<v1::ListPriorityClassesResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kPriorityClassServiceListPriorityClasses, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights&, v1::ListPriorityClassesResponse& out) {
             return ListClasses(state, *request, out);
           });
  return reactor;
}

grpc::ServerUnaryReactor* PriorityClassService::UpdatePriorityClass(
    grpc::CallbackServerContext* context, const v1::UpdatePriorityClassRequest* request,
    v1::PriorityClass* response) {
  Reply<v1::PriorityClass> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  if (absl::Status status = ValidateUpdatePriorityClass(*request); !status.ok()) {
    reply.Finish(status);
    return reactor;
  }
  const Call call = context_.CallOf(Rpc::kPriorityClassServiceUpdatePriorityClass, *context,
                                    ClassTarget(request->priority_class().name()));
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, by = TextOf(call)](Turn& turn, Rights&, v1::PriorityClass& changed) {
          return UpdateClassIn(turn, *request, by, changed);
        });
  return reactor;
}

grpc::ServerUnaryReactor* PriorityClassService::DeletePriorityClass(
    grpc::CallbackServerContext* context, const v1::DeletePriorityClassRequest* request,
    v1::DeletePriorityClassResponse* response) {
  Reply<v1::DeletePriorityClassResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kPriorityClassServiceDeletePriorityClass, *context,
                                    ClassTarget(request->name()));
  Write(context_, call, std::move(reply), CommandClass::kNewWork, 1,
        [request, by = TextOf(call)](Turn& turn, Rights&, v1::DeletePriorityClassResponse&) {
          return DeleteClassIn(turn, *request, by);
        });
  return reactor;
}

}  // namespace berth
