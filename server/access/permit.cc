#include "server/access/permit.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/validation/no_such.h"
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
  if (subjects.empty()) return "; an administrator of the configuration may grant it";
  return absl::StrCat(", which ",
                      absl::StrJoin(subjects, " and ",
                                    [](std::string* out, const Subject& subject) {
                                      absl::StrAppend(out, SubjectText(subject));
                                    }),
                      " may grant");
}

absl::Status Refuse(const ClusterState& state, const Caller& caller, Verb verb, QueuePath path,
                    absl::string_view act) {
  const AccessRemedy remedy = AccessRemedyFor(state.access(), verb, path);
  const std::string where =
      remedy.queue == kRootQueue
          ? "for the cluster"
          : absl::StrCat("in queue ", Quoted(state.queues().At(remedy.queue).spec.name));
  return absl::PermissionDeniedError(absl::StrCat(TextOf(caller), " may not ", act, " (",
                                                  NameOf(verb), "): role ", remedy.role, " ", where,
                                                  " allows it", WhoMayGrant(remedy.may_grant)));
}

bool Owns(const Caller& caller, const Job& job) {
  return caller.principal.kind == Principal::Kind::kUser && !job.owner.empty() &&
         caller.principal.name == job.owner;
}

}  // namespace

PathToRoot PathOf(const ClusterState& state, QueueId queue) {
  PathToRoot path = {queue};
  while (path.back() != kRootQueue) path.push_back(state.queues().At(path.back()).spec.parent);
  return path;
}

absl::Status PermitOnCluster(const ClusterState& state, const Caller& caller, Verb verb,
                             absl::string_view act) {
  const QueuePath path(&kRootQueue, 1);
  if (Allowed(state.access(), caller.principal, verb, path)) return absl::OkStatus();
  return Refuse(state, caller, verb, path, act);
}

absl::Status PermitOnQueue(const ClusterState& state, const Caller& caller, Verb verb,
                           const Queue& queue, absl::string_view act) {
  const PathToRoot path = PathOf(state, queue.id);
  if (Allowed(state.access(), caller.principal, verb, path)) return absl::OkStatus();
  return Refuse(state, caller, verb, path, act);
}

absl::Status PermitOnJob(const ClusterState& state, const Caller& caller, Verb verb, const Job& job,
                         absl::string_view act) {
  if (MayOnJob(state, caller, verb, job)) return absl::OkStatus();
  if (!MayOnJob(state, caller, Verb::kListJobs, job)) return NoSuchJob(job.name);
  return Refuse(state, caller, verb, PathOf(state, job.queue), act);
}

bool MayOnQueue(const ClusterState& state, const Caller& caller, Verb verb, QueueId queue) {
  return Allowed(state.access(), caller.principal, verb, PathOf(state, queue));
}

bool MayOnJob(const ClusterState& state, const Caller& caller, Verb verb, const Job& job) {
  return Allowed(state.access(), caller.principal, verb, PathOf(state, job.queue),
                 Owns(caller, job));
}

}  // namespace berth
