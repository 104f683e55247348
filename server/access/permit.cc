#include "server/access/permit.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/access/nearest_name.h"
#include "server/access/task_caller.h"
#include "server/validation/text.h"

namespace berth {
namespace {

std::string SubjectText(const Subject& subject) {
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return absl::StrCat("user ", Quoted(subject.name));
    case Subject::Kind::kGroup:
      return absl::StrCat("group ", Quoted(subject.name));
    case Subject::Kind::kEveryone:
      return "everyone";
  }
  return "";
}

std::string WhoMayGrant(const std::vector<Subject>& subjects) {
  if (subjects.empty())
    return "; an administrator of the configuration (access.administrators) may grant it";
  return absl::StrCat(", which ",
                      absl::StrJoin(subjects, " and ",
                                    [](std::string* out, const Subject& subject) {
                                      absl::StrAppend(out, SubjectText(subject));
                                    }),
                      " may grant");
}

absl::Status Refuse(const ClusterState& state, const Caller& caller, Verb verb, QueueId queue,
                    absl::string_view act) {
  return absl::PermissionDeniedError(absl::StrCat(
      TextOf(caller), " may not ", act, " (", NameOf(verb), "): ", RemedyText(state, verb, queue)));
}

bool Owns(const Caller& caller, const Job& job) {
  return caller.principal.kind == Principal::Kind::kUser && !job.owner.empty() &&
         caller.principal.name == job.owner;
}

// A task that is told to stop may still call, until it has ended.
bool RunsThere(const ClusterState& state, const CallingTask& task) {
  const Job* job = state.jobs().Find(task.key.job);
  if (job == nullptr || task.key.task >= job->tasks.size()) return false;
  const Task& now = job->tasks.at(task.key.task);
  const bool runs = now.state == TaskState::kStarting || now.state == TaskState::kRunning ||
                    now.state == TaskState::kReleasing;
  return runs && now.node == task.node && now.attempt == task.attempt;
}

// That the agent of this registration calls is proved already (TaskCallerFrom).
absl::Status AdmitTask(const ClusterState& state, const Caller& caller, Rpc rpc) {
  if (!TasksMayCall(rpc)) {
    return absl::PermissionDeniedError(absl::StrCat("tasks may not call ", NameOf(rpc)));
  }
  if (state.access().IsRefused(caller.task->agent, caller.serial)) {
    return absl::PermissionDeniedError(absl::StrCat("the certificate of the agent of node ",
                                                    Quoted(caller.principal.name), " is revoked"));
  }
  const Node* node = state.nodes().Find(caller.task->node);
  const uint64_t epoch = caller.task->epoch;
  if (node == nullptr || (epoch != 0 && node->status.epoch != epoch)) {
    return absl::UnavailableError(absl::StrCat("node ", Quoted(caller.principal.name),
                                               " has registered again in the meantime"));
  }
  if (RunsThere(state, *caller.task)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(TextOf(caller), " does not run there"));
}

absl::string_view WhatOf(const Caller& caller) {
  return caller.principal.kind == Principal::Kind::kNode ? "node" : "user";
}

}  // namespace

PathToRoot PathOf(const ClusterState& state, QueueId queue) {
  PathToRoot path = {queue};
  while (path.back() != kRootQueue) path.push_back(state.queues().At(path.back()).spec.parent);
  return path;
}

VerbSet Rights::At(const ClusterState& state, QueueId queue) {
  const bool all = !state.access().enforced() || caller_->administrator;
  if (all) return caller_->principal.kind == Principal::Kind::kUser ? kAllVerbs : VerbSet();
  if (version_ != state.access_version()) {
    known_.clear();
    version_ = state.access_version();
  }
  const auto [entry, added] = known_.try_emplace(queue);
  if (added) {
    entry->second = state.access().RightsAt(caller_->principal, PathOf(state, queue));
  }
  return entry->second;
}

bool Rights::OnJob(const ClusterState& state, Verb verb, const Job& job) {
  if (caller_->task.has_value()) return kTaskVerbs.Has(verb) && caller_->task->key.job == job.id;
  return (kOwnerVerbs.Has(verb) && Owns(*caller_, job)) || At(state, job.queue).Has(verb);
}

bool Rights::SeesAll(const ClusterState& state) {
  constexpr VerbSet kToSee = {Verb::kReadCluster, Verb::kReadQueue, Verb::kListJobs};
  return At(state, kRootQueue).Contains(kToSee);
}

absl::Status CheckNotExpired(const Caller& caller, absl::Time now) {
  if (now <= caller.expires) return absl::OkStatus();
  return absl::UnauthenticatedError("the certificate has expired; connect again with a new one");
}

absl::Status CheckNotRevoked(const ClusterState& state, const Caller& caller,
                             absl::string_view node) {
  const AccessRules& rules = state.access();
  if (rules.IsRefused(caller.principal, caller.serial)) {
    return absl::PermissionDeniedError(absl::StrCat("the certificate of ", WhatOf(caller), " ",
                                                    Quoted(caller.principal.name), " is revoked"));
  }
  const Principal agent{Principal::Kind::kNode, std::string(node), {}};
  if (node.empty() || !rules.IsRefused(agent, "")) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("node ", Quoted(node), " is revoked"));
}

absl::Status Admit(const ClusterState& state, Rights& rights, Rpc rpc, absl::Time now) {
  const Caller& caller = rights.caller();
  if (absl::Status status = CheckNotExpired(caller, now); !status.ok()) return status;
  if (!caller.refused.ok()) return caller.refused;
  if (absl::Status status = CheckNotRevoked(state, caller); !status.ok()) return status;
  if (caller.task.has_value()) return AdmitTask(state, caller, rpc);
  if (caller.principal.kind == Principal::Kind::kNode) {
    return absl::PermissionDeniedError(
        absl::StrCat(TextOf(caller), " may connect as an agent, and nothing else"));
  }
  const RpcNeed need = NeedOf(rpc);
  const bool nobody = state.access().enforced() && caller.principal.name.empty();
  if (nobody && need.over != Over::kAnyone) {
    return absl::UnauthenticatedError(absl::StrCat(
        caller.why_unknown, " identifies nobody, and access rules are enforced (berth whoami)"));
  }
  if (need.over != Over::kCluster) return absl::OkStatus();
  return PermitVerb(state, rights, need.verb, kRootQueue, need.act);
}

absl::Status PermitOnQueue(const ClusterState& state, Rights& rights, Rpc rpc, const Queue& queue) {
  const RpcNeed need = NeedOf(rpc);
  if (rights.OnQueue(state, need.verb, queue.id)) return absl::OkStatus();
  return Refuse(state, rights.caller(), need.verb, queue.id,
                absl::StrCat(need.act, " queue ", Quoted(queue.spec.name)));
}

absl::Status PermitOnJob(const ClusterState& state, Rights& rights, Rpc rpc, const Job& job) {
  const RpcNeed need = NeedOf(rpc);
  if (rights.OnJob(state, need.verb, job)) return absl::OkStatus();
  if (!rights.OnJob(state, Verb::kListJobs, job)) return NoSuchJob(state, rights, job.name);
  return Refuse(state, rights.caller(), need.verb, job.queue,
                absl::StrCat(need.act, " job ", Quoted(job.name)));
}

absl::Status PermitVerb(const ClusterState& state, Rights& rights, Verb verb, QueueId queue,
                        absl::string_view act) {
  if (rights.OnQueue(state, verb, queue)) return absl::OkStatus();
  return Refuse(state, rights.caller(), verb, queue, act);
}

std::string RemedyText(const ClusterState& state, Verb verb, QueueId queue) {
  const AccessRemedy remedy = AccessRemedyFor(state.access(), verb, PathOf(state, queue));
  const std::string where =
      remedy.queue == kRootQueue
          ? "for the cluster"
          : absl::StrCat("in queue ", Quoted(state.queues().At(remedy.queue).spec.name));
  return absl::StrCat("role ", remedy.role, " ", where, " allows it",
                      WhoMayGrant(remedy.may_grant));
}

}  // namespace berth
