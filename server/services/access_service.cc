#include "server/services/access_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/commands/access_change.h"
#include "server/convert/access.h"
#include "server/convert/values.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "support/log.h"

namespace berth {
namespace {

void DescribeCaller(const ClusterState& state, const Caller& caller, v1::WhoAmIResponse* out) {
  const Principal& principal = caller.principal;
  out->set_user(principal.name);
  for (const std::string& group : principal.groups) out->add_groups(group);
  out->set_problem(caller.why_unknown);
  out->set_proof(std::string(NameOf(caller.proof)));
  out->set_serial(caller.serial);
  if (caller.expires != absl::InfiniteFuture()) ToProto(caller.expires, out->mutable_expires());
  out->set_enforced(state.access().enforced());
  out->set_administrator(caller.administrator);
  for (const Grant& grant : state.access().SortedGrants()) {
    if (AppliesTo(grant.subject, principal)) RenderGrant(state, grant, out->add_grants());
  }
}

// Grants that the caller may change, and its own.
void DescribeRules(const ClusterState& state, Rights& rights, v1::AccessRules* out) {
  const AccessRules& rules = state.access();
  out->set_enforced(rules.enforced());
  for (const Grant& grant : rules.SortedGrants()) {
    if (rights.OnQueue(state, Verb::kGrant, grant.queue) ||
        AppliesTo(grant.subject, rights.caller().principal)) {
      RenderGrant(state, grant, out->add_grants());
    }
  }
  for (const BuiltInRole& role : BuiltInRoles()) {
    RenderRole(role.name, role.verbs, true, out->add_roles());
  }
  for (const auto& [name, verbs] : rules.custom_roles()) {
    RenderRole(name, verbs, false, out->add_roles());
  }
  const bool all = rights.OnCluster(state, Verb::kGrant);
  const bool nodes = rights.OnCluster(state, Verb::kManageNodes);
  for (const Revocation& revocation : rules.revocations()) {
    if (all || (nodes && revocation.kind == Revocation::Kind::kNode)) {
      RenderRevocation(revocation, out->add_revocations());
    }
  }
}

absl::Status ChangeAccessIn(Turn& turn, Rights& rights, const ServiceContext& context,
                            const v1::ChangeAccessRequest& request, const std::string& by) {
  const absl::StatusOr<AccessChange> change = AccessChangeFrom(turn.state(), request);
  if (!change.ok()) return change.status();
  const auto& administrators = context.callers->access().administrators();
  const bool any = !administrators.users().empty() || !administrators.groups().empty();
  absl::Status status = CheckAccessChange(turn.state(), rights, *change, any);
  if (!status.ok() || request.validate_only() || change->empty()) return status;
  status = CheckFormatOfAccess(context.store->Format());
  if (!status.ok()) return status;
  LogInfo("the access rules are changed", {{"by", by},
                                           {"granted", change->grant.size()},
                                           {"revoked", change->revoke.size()},
                                           {"refused", change->refuse.size()}});
  return turn.Emit(AccessChanged{*change});
}

// A question about a verb, in a queue or about a job there.
struct AccessQuestion {
  Verb verb;
  const Queue* queue = nullptr;
  const Job* job = nullptr;
};

absl::StatusOr<AccessQuestion> ReadQuestion(const ClusterState& state, Rights& rights,
                                            const v1::CheckAccessRequest& request) {
  Findings findings;
  const FieldPath root;
  const std::optional<Verb> verb = FindVerb(request.verb());
  if (!verb.has_value()) {
    findings.Invalid({root, "verb"}, absl::StrCat("there is no verb ", Quoted(request.verb())));
  }
  if (!request.user().empty() && !IsAccessName(request.user())) {
    findings.Invalid({root, "user"}, "must be the name of a user");
  }
  if (!request.groups().empty() && request.user().empty()) {
    findings.Invalid({root, "groups"}, "needs a user");
  }
  if (!request.job().empty() && !request.queue().empty()) {
    findings.Invalid({root, "job"}, "not together with queue");
  }
  if (!findings.ok()) return findings.ToStatus();
  AccessQuestion question{*verb};
  if (!request.job().empty()) {
    question.job = state.FindJob(request.job());
    if (question.job == nullptr || !rights.OnJob(state, Verb::kListJobs, *question.job)) {
      return NoSuchJob(state, rights, request.job());
    }
    question.queue = &state.queues().At(question.job->queue);
    return question;
  }
  question.queue = FindAccessQueue(state, request.queue());
  if (question.queue == nullptr) return NoSuchQueue(state, rights, request.queue());
  return question;
}

// Whom the question is about: the caller itself, or, for those who may grant there, anybody.
absl::StatusOr<std::shared_ptr<const Caller>> AskedAbout(const ServiceContext& context,
                                                         const ClusterState& state, Rights& rights,
                                                         const v1::CheckAccessRequest& request,
                                                         const Queue& queue) {
  if (request.user().empty()) return std::make_shared<const Caller>(rights.caller());
  absl::Status status =
      PermitVerb(state, rights, Verb::kGrant, queue.id,
                 absl::StrCat("ask what others may do in queue ", Quoted(queue.spec.name)));
  if (!status.ok()) return status;
  Caller other;
  other.principal.name = request.user();
  other.principal.groups.assign(request.groups().begin(), request.groups().end());
  other.administrator =
      IsAdministrator(context.callers->access().administrators(), other.principal);
  return std::make_shared<const Caller>(std::move(other));
}

void RenderCheck(const ClusterState& state, Rights& of, const AccessQuestion& question,
                 v1::CheckAccessResponse* out) {
  const QueueId queue = question.queue->id;
  const bool by_grant = of.OnQueue(state, question.verb, queue);
  const bool allowed =
      question.job != nullptr ? of.OnJob(state, question.verb, *question.job) : by_grant;
  out->set_allowed(allowed);
  out->set_not_enforced(!state.access().enforced());
  out->set_administrator(of.caller().administrator);
  out->set_owner(allowed && !by_grant);
  const PathToRoot path = PathOf(state, queue);
  for (const Grant& grant : state.access().SortedGrants()) {
    const bool here = std::find(path.begin(), path.end(), grant.queue) != path.end() &&
                      (grant.queue == kRootQueue || !IsOverCluster(question.verb));
    if (here && AppliesTo(grant.subject, of.caller().principal) &&
        state.access().FindRole(grant.role)->Has(question.verb)) {
      RenderGrant(state, grant, out->add_grants());
    }
  }
  if (!allowed) out->set_remedy(RemedyText(state, question.verb, queue));
}

}  // namespace

grpc::ServerUnaryReactor* AccessService::WhoAmI(grpc::CallbackServerContext* context,
                                                const v1::WhoAmIRequest*,
                                                v1::WhoAmIResponse* response) {
  Reply<v1::WhoAmIResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kAccessServiceWhoAmI, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights& rights, v1::WhoAmIResponse& out) {
             DescribeCaller(state, rights.caller(), &out);
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* AccessService::GetAccess(grpc::CallbackServerContext* context,
                                                   const v1::GetAccessRequest*,
                                                   v1::AccessRules* response) {
  Reply<v1::AccessRules> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kAccessServiceGetAccess, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights& rights, v1::AccessRules& out) {
             DescribeRules(state, rights, &out);
             return absl::OkStatus();
           });
  return reactor;
}

grpc::ServerUnaryReactor* AccessService::ChangeAccess(grpc::CallbackServerContext* context,
                                                      const v1::ChangeAccessRequest* request,
                                                      v1::ChangeAccessResponse* response) {
  Reply<v1::ChangeAccessResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kAccessServiceChangeAccess, *context);
  Write(context_, call, std::move(reply), CommandClass::kEssential, 1,
        [this, request, by = TextOf(call)](Turn& turn, Rights& rights, v1::ChangeAccessResponse&) {
          return ChangeAccessIn(turn, rights, context_, *request, by);
        });
  return reactor;
}

grpc::ServerUnaryReactor* AccessService::CheckAccess(grpc::CallbackServerContext* context,
                                                     const v1::CheckAccessRequest* request,
                                                     v1::CheckAccessResponse* response) {
  Reply<v1::CheckAccessResponse> reply(context, response);
  grpc::ServerUnaryReactor* reactor = reply.reactor();
  const Call call = context_.CallOf(Rpc::kAccessServiceCheckAccess, *context);
  ReadOnce(context_, call, std::move(reply),
           [&](const ClusterState& state, Rights& rights, v1::CheckAccessResponse& out) {
             const absl::StatusOr<AccessQuestion> question = ReadQuestion(state, rights, *request);
             if (!question.ok()) return question.status();
             const auto about = AskedAbout(context_, state, rights, *request, *question->queue);
             if (!about.ok()) return about.status();
             Rights of(*about);
             RenderCheck(state, of, *question, &out);
             return absl::OkStatus();
           });
  return reactor;
}

}  // namespace berth
