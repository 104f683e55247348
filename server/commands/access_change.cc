#include "server/commands/access_change.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/convert/access.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"

namespace berth {
namespace {

// ---- From the request

Subject SubjectFrom(const FieldPath& path, const v1::AccessSubject& subject, Findings& findings) {
  switch (subject.subject_case()) {
    case v1::AccessSubject::kUser:
      return {Subject::Kind::kUser, subject.user()};
    case v1::AccessSubject::kGroup:
      return {Subject::Kind::kGroup, subject.group()};
    case v1::AccessSubject::kEveryone:
      if (!subject.everyone()) findings.Invalid({path, "everyone"}, "must be true");
      return {Subject::Kind::kEveryone, ""};
    case v1::AccessSubject::SUBJECT_NOT_SET:
      break;
  }
  findings.Invalid(path, "required: a user, a group, or everyone");
  return {};
}

Grant GrantFrom(const ClusterState& state, const FieldPath& path, const v1::AccessGrant& grant,
                Findings& findings) {
  Grant result{.subject = SubjectFrom({path, "subject"}, grant.subject(), findings),
               .queue = kRootQueue,
               .role = grant.role()};
  const Queue* queue = FindAccessQueue(state, grant.queue());
  if (queue != nullptr) {
    result.queue = queue->id;
  } else {
    findings.Missing({path, "queue"}, absl::StrCat("there is no queue ", Quoted(grant.queue())));
  }
  if (grant.role().empty()) findings.Invalid({path, "role"}, "required");
  return result;
}

CustomRole RoleFrom(const FieldPath& path, const v1::AccessRole& role, Findings& findings) {
  CustomRole result{.name = role.name(), .verbs = {}};
  for (int i = 0; i < role.verbs_size(); ++i) {
    const std::optional<Verb> verb = FindVerb(role.verbs(i));
    if (verb.has_value()) {
      result.verbs.push_back(*verb);
    } else {
      findings.Invalid({path, "verbs", i},
                       absl::StrCat("there is no verb ", Quoted(role.verbs(i))));
    }
  }
  return result;
}

// As certificates and openssl print serial numbers, and as rules hold them.
std::string SerialFrom(std::string serial) {
  serial.erase(std::remove(serial.begin(), serial.end(), ':'), serial.end());
  absl::AsciiStrToLower(&serial);
  const size_t digit = serial.find_first_not_of('0');
  return digit == std::string::npos ? serial : serial.substr(digit);
}

Revocation RevocationFrom(const FieldPath& path, const v1::AccessRevocation& revocation,
                          Findings& findings) {
  switch (revocation.what_case()) {
    case v1::AccessRevocation::kUser:
      return {Revocation::Kind::kUser, revocation.user()};
    case v1::AccessRevocation::kNode:
      return {Revocation::Kind::kNode, revocation.node()};
    case v1::AccessRevocation::kSerial:
      return {Revocation::Kind::kSerial, SerialFrom(revocation.serial())};
    case v1::AccessRevocation::WHAT_NOT_SET:
      break;
  }
  findings.Invalid(path, "required: a user, a node, or a serial number");
  return {};
}

// ---- What the caller may do

class Permission {
 public:
  Permission(const ClusterState& state, Rights& rights, const AccessChange& change)
      : state_(state), rights_(rights), change_(change) {}

  absl::Status Check() {
    for (const Grant& grant : change_.revoke) {
      if (absl::Status status = OfGrant("revoke", grant); !status.ok()) return status;
    }
    for (const std::string& role : change_.delete_roles) {
      if (absl::Status status = OfRole(role, Known(role)); !status.ok()) return status;
    }
    for (const CustomRole& role : change_.set_roles) {
      const VerbSet verbs = VerbSet(role.verbs) | Known(role.name);
      if (absl::Status status = OfRole(role.name, verbs); !status.ok()) return status;
    }
    for (const Grant& grant : change_.grant) {
      if (absl::Status status = OfGrant("grant", grant); !status.ok()) return status;
    }
    for (const auto* revocations : {&change_.readmit, &change_.refuse}) {
      for (const Revocation& revocation : *revocations) {
        if (absl::Status status = OfRevocation(revocation); !status.ok()) return status;
      }
    }
    if (!change_.enforce || rights_.At(state_, kRootQueue).Contains(kAllVerbs)) {
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError("only administrators of the cluster enforce access rules");
  }

 private:
  VerbSet Known(absl::string_view role) const {
    const VerbSet* verbs = state_.access().FindRole(role);
    return verbs == nullptr ? VerbSet() : *verbs;
  }

  // With this change.
  VerbSet VerbsOf(absl::string_view role) const {
    const auto set = std::find_if(change_.set_roles.begin(), change_.set_roles.end(),
                                  [&](const CustomRole& one) { return one.name == role; });
    return set == change_.set_roles.end() ? Known(role) : VerbSet(set->verbs);
  }

  absl::Status OfGrant(absl::string_view what, const Grant& grant) {
    const std::string where =
        grant.queue == kRootQueue
            ? "for the cluster"
            : absl::StrCat("in queue ", Quoted(state_.queues().At(grant.queue).spec.name));
    const std::string act = absl::StrCat(what, " role ", Quoted(grant.role), " ", where);
    absl::Status status = PermitVerb(state_, rights_, Verb::kGrant, grant.queue, act);
    if (!status.ok()) return status;
    const VerbSet verbs = VerbsOf(grant.role);
    return HasAll(grant.queue == kRootQueue ? verbs : verbs - kClusterVerbs, grant.queue, act);
  }

  absl::Status OfRole(absl::string_view role, VerbSet verbs) {
    const std::string act = absl::StrCat("define or delete role ", Quoted(role));
    absl::Status status = PermitVerb(state_, rights_, Verb::kGrant, kRootQueue, act);
    return status.ok() ? HasAll(verbs, kRootQueue, act) : status;
  }

  absl::Status OfRevocation(const Revocation& revocation) {
    if (revocation.kind == Revocation::Kind::kNode &&
        rights_.OnCluster(state_, Verb::kManageNodes)) {
      return absl::OkStatus();
    }
    return PermitVerb(state_, rights_, Verb::kGrant, kRootQueue, "revoke certificates");
  }

  absl::Status HasAll(VerbSet verbs, QueueId queue, absl::string_view act) {
    const VerbSet missing = verbs - rights_.At(state_, queue);
    if (missing.empty()) return absl::OkStatus();
    std::vector<absl::string_view> names;
    missing.ForEach([&](Verb verb) { names.push_back(NameOf(verb)); });
    return absl::PermissionDeniedError(absl::StrCat(
        TextOf(rights_.caller()), " may not ", act, ": nobody hands out rights that they do not ",
        "have, here ", names.front(), names.size() == 1 ? "" : " and others"));
  }

  const ClusterState& state_;
  Rights& rights_;
  const AccessChange& change_;
};

// Somebody can still do everything.
bool HasAdministrator(const AccessRules& rules) {
  const std::vector<Subject> holders =
      rules.Holders(kAllVerbs, QueuePath(&kRootQueue, 1), AccessRules::kMaxGrants);
  return std::any_of(holders.begin(), holders.end(), [&](const Subject& subject) {
    return subject.kind != Subject::Kind::kUser ||
           !rules.revocations().contains({Revocation::Kind::kUser, subject.name});
  });
}

}  // namespace

absl::Status CheckFormatOfAccess(uint32_t format) {
  if (format >= kFormatOfAccess) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("access rules need store format ",
                                                    kFormatOfAccess, ", and the store has ", format,
                                                    ": run `berth cluster finalize` first"));
}

absl::StatusOr<AccessChange> AccessChangeFrom(const ClusterState& state,
                                              const v1::ChangeAccessRequest& request) {
  Findings findings;
  const FieldPath root;
  AccessChange change;
  change.enforce = request.enforce();
  for (int i = 0; i < request.revoke_size(); ++i) {
    change.revoke.push_back(GrantFrom(state, {root, "revoke", i}, request.revoke(i), findings));
  }
  change.delete_roles.assign(request.delete_roles().begin(), request.delete_roles().end());
  for (int i = 0; i < request.set_roles_size(); ++i) {
    change.set_roles.push_back(RoleFrom({root, "set_roles", i}, request.set_roles(i), findings));
  }
  for (int i = 0; i < request.grant_size(); ++i) {
    change.grant.push_back(GrantFrom(state, {root, "grant", i}, request.grant(i), findings));
  }
  for (int i = 0; i < request.readmit_size(); ++i) {
    change.readmit.push_back(RevocationFrom({root, "readmit", i}, request.readmit(i), findings));
  }
  for (int i = 0; i < request.refuse_size(); ++i) {
    change.refuse.push_back(RevocationFrom({root, "refuse", i}, request.refuse(i), findings));
  }
  if (!findings.ok()) return findings.ToStatus();
  return change;
}

absl::Status CheckAccessChange(const ClusterState& state, Rights& rights,
                               const AccessChange& change, bool has_administrators) {
  if (absl::Status status = Permission(state, rights, change).Check(); !status.ok()) return status;
  if (absl::Status status = state.access().Check(change); !status.ok()) return status;
  AccessRules after = state.access();
  after.Apply(change);
  if (has_administrators || !after.enforced() || HasAdministrator(after)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "nobody could change the rules afterwards: grant role admin for the cluster to somebody, or "
      "name administrators in the server's configuration (access.administrators)");
}

bool AppliesTo(const Subject& subject, const Principal& principal) {
  if (principal.kind != Principal::Kind::kUser || principal.name.empty()) return false;
  switch (subject.kind) {
    case Subject::Kind::kUser:
      return subject.name == principal.name;
    case Subject::Kind::kGroup:
      return std::find(principal.groups.begin(), principal.groups.end(), subject.name) !=
             principal.groups.end();
    case Subject::Kind::kEveryone:
      return true;
  }
  return false;
}

}  // namespace berth
