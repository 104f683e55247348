#include "core/access/access.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace berth {
namespace {

constexpr VerbSet kViewer = {Verb::kReadCluster, Verb::kReadQueue, Verb::kListJobs};
constexpr VerbSet kSubmitter = kViewer | VerbSet{Verb::kSubmitJob};
constexpr VerbSet kQueueAdmin =
    kSubmitter | kOwnerVerbs | VerbSet{Verb::kManageQueue, Verb::kGrant};
constexpr VerbSet kOperator = (kQueueAdmin - VerbSet{Verb::kGrant}) |
                              VerbSet{Verb::kOperateCluster, Verb::kManageNodes, Verb::kReadAudit};
constexpr VerbSet kAdmin =
    kOperator | VerbSet{Verb::kMaintainCluster, Verb::kAdmitNodes, Verb::kSubmitFor, Verb::kGrant};
static_assert(kAdmin == kAllVerbs);

constexpr std::array<BuiltInRole, 5> kBuiltIn = {{{"viewer", kViewer},
                                                  {"submitter", kSubmitter},
                                                  {"queue-admin", kQueueAdmin},
                                                  {"operator", kOperator},
                                                  {"admin", kAdmin}}};

const VerbSet* FindBuiltIn(absl::string_view name) {
  for (const BuiltInRole& role : kBuiltIn) {
    if (role.name == name) return &role.verbs;
  }
  return nullptr;
}

absl::string_view NameOf(Subject::Kind kind) {
  switch (kind) {
    case Subject::Kind::kUser:
      return "user";
    case Subject::Kind::kGroup:
      return "group";
    case Subject::Kind::kEveryone:
      return "everyone";
  }
  return "";
}

absl::string_view NameOf(Revocation::Kind kind) {
  switch (kind) {
    case Revocation::Kind::kUser:
      return "user";
    case Revocation::Kind::kNode:
      return "node";
    case Revocation::Kind::kSerial:
      return "serial number";
  }
  return "";
}

std::string WordsFor(const Subject& subject) {
  if (subject.kind == Subject::Kind::kEveryone) return "everyone";
  return absl::StrCat(NameOf(subject.kind), " \"", subject.name, "\"");
}

std::string WordsFor(const Grant& grant) {
  return absl::StrCat("role \"", grant.role, "\" of ", WordsFor(grant.subject));
}

std::string WordsFor(const Revocation& revocation) {
  return absl::StrCat(NameOf(revocation.kind), " \"", revocation.name, "\"");
}

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  if (IsAccessName(name)) return absl::OkStatus();
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(what, " has no name"));
  if (name.size() > AccessRules::kMaxName) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of a ", what, " has at most ", AccessRules::kMaxName, " bytes"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the name of a ", what, " has no quotes, backslashes or control characters"));
}

absl::Status CheckSubject(const Subject& subject) {
  if (subject.kind != Subject::Kind::kEveryone) {
    return CheckName(NameOf(subject.kind), subject.name);
  }
  if (subject.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("everyone has no name");
}

absl::Status CheckRevocation(const Revocation& revocation) {
  absl::Status status = CheckName(NameOf(revocation.kind), revocation.name);
  if (!status.ok() || revocation.kind != Revocation::Kind::kSerial) return status;
  const bool hexadecimal =
      std::all_of(revocation.name.begin(), revocation.name.end(),
                  [](unsigned char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
  if (hexadecimal) return absl::OkStatus();
  return absl::InvalidArgumentError("a serial number consists of lower-case hexadecimal digits");
}

// Errors of one change, step by step on a copy of what it changes: an entry may depend on those
// before it.
class Checker {
 public:
  explicit Checker(const AccessRules& rules)
      : roles_(rules.custom_roles()), refused_(rules.revocations()) {
    for (Grant& grant : rules.SortedGrants()) grants_.insert(std::move(grant));
  }

  absl::Status Run(const AccessChange& change) {
    for (const Grant& grant : change.revoke) {
      if (grants_.erase(grant) == 0) {
        return absl::NotFoundError(absl::StrCat("there is no grant of ", WordsFor(grant)));
      }
    }
    for (const std::string& role : change.delete_roles) {
      if (absl::Status status = DeleteRole(role); !status.ok()) return status;
    }
    for (const CustomRole& role : change.set_roles) {
      if (absl::Status status = SetRole(role); !status.ok()) return status;
    }
    for (const Grant& grant : change.grant) {
      if (absl::Status status = Add(grant); !status.ok()) return status;
    }
    for (const Revocation& revocation : change.readmit) {
      if (refused_.erase(revocation) == 0) {
        return absl::NotFoundError(absl::StrCat(WordsFor(revocation), " is not refused"));
      }
    }
    for (const Revocation& revocation : change.refuse) {
      if (absl::Status status = CheckRevocation(revocation); !status.ok()) return status;
      if (!refused_.insert(revocation).second) {
        return absl::AlreadyExistsError(absl::StrCat(WordsFor(revocation), " is refused already"));
      }
    }
    return CheckSizes();
  }

 private:
  absl::Status DeleteRole(const std::string& role) {
    if (FindBuiltIn(role) != nullptr) return BuiltInError(role);
    if (roles_.erase(role) == 0) return NoSuchRole(role);
    const auto granted = std::find_if(grants_.begin(), grants_.end(),
                                      [&](const Grant& grant) { return grant.role == role; });
    if (granted == grants_.end()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("role \"", role, "\" is still granted to ", WordsFor(granted->subject)));
  }

  absl::Status SetRole(const CustomRole& role) {
    if (absl::Status status = CheckName("role", role.name); !status.ok()) return status;
    if (FindBuiltIn(role.name) != nullptr) return BuiltInError(role.name);
    if (role.verbs.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("role \"", role.name, "\" has no verbs"));
    }
    roles_[role.name] = VerbSet(role.verbs);
    return absl::OkStatus();
  }

  absl::Status Add(const Grant& grant) {
    if (absl::Status status = CheckSubject(grant.subject); !status.ok()) return status;
    if (FindBuiltIn(grant.role) == nullptr && !roles_.contains(grant.role)) {
      return NoSuchRole(grant.role);
    }
    if (grants_.insert(grant).second) return absl::OkStatus();
    return absl::AlreadyExistsError(absl::StrCat(WordsFor(grant), " is granted there already"));
  }

  absl::Status CheckSizes() const {
    const auto at_most = [](absl::string_view what, size_t count, size_t most) {
      if (count <= most) return absl::OkStatus();
      return absl::ResourceExhaustedError(absl::StrCat("there are at most ", most, " ", what));
    };
    absl::Status status = at_most("grants", grants_.size(), AccessRules::kMaxGrants);
    if (status.ok()) status = at_most("roles of a site", roles_.size(), AccessRules::kMaxRoles);
    if (!status.ok()) return status;
    return at_most("revocations", refused_.size(), AccessRules::kMaxRevocations);
  }

  static absl::Status NoSuchRole(absl::string_view role) {
    return absl::NotFoundError(absl::StrCat("there is no role \"", role, "\""));
  }
  static absl::Status BuiltInError(absl::string_view role) {
    return absl::FailedPreconditionError(absl::StrCat("role \"", role, "\" is built in"));
  }

  std::map<std::string, VerbSet, std::less<>> roles_;
  std::set<Revocation> refused_;
  std::set<Grant> grants_;
};

}  // namespace

bool IsAccessName(absl::string_view name) {
  return !name.empty() && name.size() <= AccessRules::kMaxName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c != '"' && c != '\\' && byte >= 0x20 && byte != 0x7f;
         });
}

std::span<const BuiltInRole> BuiltInRoles() { return kBuiltIn; }

bool AccessChange::ChangesRights() const {
  AccessChange of_tokens;
  of_tokens.join_tokens = join_tokens;
  return !(*this == of_tokens);
}

absl::Status AccessRules::Check(const AccessChange& change) const {
  if (absl::Status status = join_tokens_.Check(change.join_tokens); !status.ok()) return status;
  if (!change.ChangesRights()) return absl::OkStatus();
  return Checker(*this).Run(change);
}

void AccessRules::Apply(const AccessChange& change) {
  enforced_ = enforced_ || change.enforce;
  for (const Grant& grant : change.revoke) {
    const auto of_subject = grants_.find(grant.subject);
    BERTH_CHECK(of_subject != grants_.end());
    std::vector<Held>& held = of_subject->second;
    const auto found = std::lower_bound(held.begin(), held.end(), Held{grant.queue, grant.role});
    BERTH_CHECK(found != held.end() && *found == (Held{grant.queue, grant.role}));
    held.erase(found);
    if (held.empty()) grants_.erase(of_subject);
    --grant_count_;
  }
  for (const std::string& role : change.delete_roles) roles_.erase(role);
  for (const CustomRole& role : change.set_roles) roles_[role.name] = VerbSet(role.verbs);
  for (const Grant& grant : change.grant) {
    std::vector<Held>& held = grants_[grant.subject];
    Held added{grant.queue, grant.role};
    held.insert(std::lower_bound(held.begin(), held.end(), added), std::move(added));
    ++grant_count_;
  }
  for (const Revocation& revocation : change.readmit) revocations_.erase(revocation);
  for (const Revocation& revocation : change.refuse) revocations_.insert(revocation);
  join_tokens_.Apply(change.join_tokens);
}

AccessChange AccessRules::AsChange() const {
  AccessChange change{.enforce = enforced_,
                      .grant = SortedGrants(),
                      .refuse = {revocations_.begin(), revocations_.end()},
                      .join_tokens = join_tokens_.AsChange()};
  for (const auto& [name, verbs] : roles_) {
    CustomRole& role = change.set_roles.emplace_back();
    role.name = name;
    verbs.ForEach([&](Verb verb) { role.verbs.push_back(verb); });
  }
  return change;
}

const VerbSet* AccessRules::FindRole(absl::string_view name) const {
  if (const VerbSet* built_in = FindBuiltIn(name); built_in != nullptr) return built_in;
  const auto found = roles_.find(name);
  return found == roles_.end() ? nullptr : &found->second;
}

std::vector<Grant> AccessRules::SortedGrants() const {
  std::vector<Grant> grants;
  grants.reserve(grant_count_);
  for (const auto& [subject, held] : grants_) {
    for (const Held& one : held) grants.push_back({subject, one.queue, one.role});
  }
  std::sort(grants.begin(), grants.end());
  return grants;
}

std::vector<Grant> AccessRules::GrantsAt(QueueId queue) const {
  std::vector<Grant> grants;
  for (const auto& [subject, held] : grants_) {
    for (const Held& one : held) {
      if (one.queue == queue) grants.push_back({subject, one.queue, one.role});
    }
  }
  std::sort(grants.begin(), grants.end());
  return grants;
}

bool AccessRules::IsRefused(const Principal& principal, absl::string_view serial) const {
  if (revocations_.empty()) return false;
  const auto refused = [&](Revocation::Kind kind, absl::string_view name) {
    return revocations_.contains({kind, std::string(name)});
  };
  const bool is_node = principal.kind == Principal::Kind::kNode;
  return refused(is_node ? Revocation::Kind::kNode : Revocation::Kind::kUser, principal.name) ||
         (!serial.empty() && refused(Revocation::Kind::kSerial, serial));
}

VerbSet AccessRules::RightsOf(const std::vector<Held>& grants, QueuePath path) const {
  VerbSet rights;
  for (const Held& held : grants) {
    if (std::find(path.begin(), path.end(), held.queue) == path.end()) continue;
    const VerbSet* verbs = FindRole(held.role);
    BERTH_CHECK(verbs != nullptr);
    rights = rights | (held.queue == kRootQueue ? *verbs : *verbs - kClusterVerbs);
  }
  return rights;
}

VerbSet AccessRules::RightsAt(const Principal& principal, QueuePath path) const {
  VerbSet rights;
  if (principal.kind != Principal::Kind::kUser || principal.name.empty()) return rights;
  const auto add = [&](Subject::Kind kind, const std::string& name) {
    const auto found = grants_.find(Subject{kind, name});
    if (found != grants_.end()) rights = rights | RightsOf(found->second, path);
  };
  add(Subject::Kind::kUser, principal.name);
  for (const std::string& group : principal.groups) add(Subject::Kind::kGroup, group);
  add(Subject::Kind::kEveryone, "");
  return rights;
}

std::vector<Subject> AccessRules::Holders(VerbSet verbs, QueuePath path, size_t most) const {
  std::vector<Subject> holders;
  for (const auto& [subject, held] : grants_) {
    if (RightsOf(held, path).Contains(verbs)) holders.push_back(subject);
  }
  std::sort(holders.begin(), holders.end());
  if (holders.size() > most) holders.resize(most);
  return holders;
}

bool Allowed(const AccessRules& rules, const Principal& principal, Verb verb, QueuePath path,
             bool owner) {
  if (!rules.enforced()) return true;
  if (owner && kOwnerVerbs.Has(verb)) return true;
  return rules.RightsAt(principal, path).Has(verb);
}

bool MayGrant(const AccessRules& rules, const Principal& principal, absl::string_view role,
              QueuePath path) {
  const VerbSet* verbs = rules.FindRole(role);
  if (verbs == nullptr) return false;
  const bool for_cluster = !path.empty() && path.front() == kRootQueue;
  const VerbSet given = for_cluster ? *verbs : *verbs - kClusterVerbs;
  return rules.RightsAt(principal, path).Contains(given | VerbSet{Verb::kGrant});
}

AccessRemedy AccessRemedyFor(const AccessRules& rules, Verb verb, QueuePath path) {
  const auto role = std::find_if(kBuiltIn.begin(), kBuiltIn.end(),
                                 [&](const BuiltInRole& r) { return r.verbs.Has(verb); });
  const bool over_cluster = IsOverCluster(verb) || path.empty();
  AccessRemedy remedy{
      .role = role->name, .queue = over_cluster ? kRootQueue : path.front(), .may_grant = {}};
  const QueuePath where = over_cluster && !path.empty() ? path.last(1) : path;
  const VerbSet given = remedy.queue == kRootQueue ? role->verbs : role->verbs - kClusterVerbs;
  remedy.may_grant = rules.Holders(given | VerbSet{Verb::kGrant}, where, AccessRemedy::kMost);
  return remedy;
}

}  // namespace berth
