// Access rules: who may do what. Pure: the server finds out who calls (docs/developers/access.md),
// the rules say what they may do.
//
//   const Principal ada{.name = "ada", .groups = {"ml"}};
//   if (!Allowed(rules, ada, Verb::kSubmitJob, path_of_the_queue)) ...
//
// Denied by default: a principal has the rights that grants give to it, to one of its groups or to
// everyone; and over its own jobs those of an owner.
#ifndef BERTH_CORE_ACCESS_ACCESS_H_
#define BERTH_CORE_ACCESS_ACCESS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/access/join_tokens.h"
#include "core/access/verbs.h"
#include "core/model/ids.h"

namespace berth {

using QueuePath = std::span<const QueueId>;

// Whether a user, a group, a node or a role may have this name: 1 to AccessRules::kMaxName bytes,
// without control characters, quotes and backslashes, so that it can be shown as it is compared.
bool IsAccessName(absl::string_view name);

// Who calls, as proved by the connection.
struct Principal {
  enum class Kind : uint8_t { kUser, kNode };
  Kind kind = Kind::kUser;
  std::string name;                 // "" = nobody
  std::vector<std::string> groups;  // of a user
  bool operator==(const Principal&) const = default;
};

// To whom a grant gives a role.
struct Subject {
  enum class Kind : uint8_t { kUser, kGroup, kEveryone };  // everyone: each user with a name
  Kind kind = Kind::kUser;
  std::string name;  // "" for everyone
  auto operator<=>(const Subject&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const Subject& v) {
    return H::combine(std::move(h), v.kind, v.name);
  }
};

struct Grant {
  Subject subject;
  QueueId queue = kRootQueue;  // and all below it; the root also stands for the cluster
  std::string role;
  auto operator<=>(const Grant&) const = default;
};

// A certificate or an identity that is refused, whatever else it may do.
struct Revocation {
  enum class Kind : uint8_t { kUser, kNode, kSerial };
  Kind kind = Kind::kUser;
  std::string name;  // of the user or the node; the serial number in lower-case hexadecimal digits
  auto operator<=>(const Revocation&) const = default;
};

// A role that a site defines.
struct CustomRole {
  std::string name;
  std::vector<Verb> verbs;
  bool operator==(const CustomRole&) const = default;
};

// Roles that need no definition, from few rights to all.
struct BuiltInRole {
  absl::string_view name;
  VerbSet verbs;
};
std::span<const BuiltInRole> BuiltInRoles();

// What an owner may do with a job, wherever it is.
inline constexpr VerbSet kOwnerVerbs = {Verb::kListJobs,  Verb::kReadJob,    Verb::kReadLogs,
                                        Verb::kChangeJob, Verb::kRequeueJob, Verb::kExec};

// One change of the rules, as it is requested and as it is logged. Applied in the order of the
// fields.
struct AccessChange {
  bool enforce = false;  // from now on nothing is allowed that no rule allows
  std::vector<Grant> revoke;
  std::vector<std::string> delete_roles;
  std::vector<CustomRole> set_roles;  // created or replaced
  std::vector<Grant> grant;
  std::vector<Revocation> readmit;
  std::vector<Revocation> refuse;
  JoinTokenChange join_tokens;

  // False: nobody may do more or less than before.
  bool ChangesRights() const;
  bool empty() const { return *this == AccessChange{}; }
  bool operator==(const AccessChange&) const = default;
};

class AccessRules {
 public:
  static constexpr size_t kMaxGrants = 10'000;
  static constexpr size_t kMaxRoles = 100;  // custom ones
  static constexpr size_t kMaxRevocations = 10'000;
  static constexpr size_t kMaxName = 253;  // bytes of the name of a user, a group, a node, a role

  // False in a cluster whose rules were never written: everybody who may connect may do everything.
  // Never becomes false again, so that no lost rule opens a cluster.
  bool enforced() const { return enforced_; }

  // INVALID_ARGUMENT: a name, a role without verbs; NOT_FOUND: a role, or what is to be taken back;
  // ALREADY_EXISTS; FAILED_PRECONDITION: a role that is built in, or still granted;
  // RESOURCE_EXHAUSTED: a limit. Queues are the caller's to look up.
  absl::Status Check(const AccessChange& change) const;
  // Requires a change that Check accepts.
  void Apply(const AccessChange& change);
  // The change that makes these rules out of none, sorted: how they are stored.
  AccessChange AsChange() const;

  const JoinTokens& join_tokens() const { return join_tokens_; }

  // Built-in ones too; nullptr if there is none.
  const VerbSet* FindRole(absl::string_view name) const;
  const std::map<std::string, VerbSet, std::less<>>& custom_roles() const { return roles_; }
  size_t grant_count() const { return grant_count_; }
  std::vector<Grant> SortedGrants() const;
  // Of a queue, as when it is deleted. Sorted.
  std::vector<Grant> GrantsAt(QueueId queue) const;
  const std::set<Revocation>& revocations() const { return revocations_; }
  // `serial`: of the certificate, as in Revocation; "" = none.
  bool IsRefused(const Principal& principal, absl::string_view serial) const;

  // What grants give to the principal. `path`: a queue, its parent, and so on to the root; for the
  // cluster the root alone. Verbs over the cluster come from grants for the cluster only.
  VerbSet RightsAt(const Principal& principal, QueuePath path) const;

  // Users, groups and everyone with all of `verbs` at the path, sorted; at most `most` of them.
  std::vector<Subject> Holders(VerbSet verbs, QueuePath path, size_t most) const;

  bool operator==(const AccessRules&) const = default;

 private:
  struct Held {
    QueueId queue;
    std::string role;
    auto operator<=>(const Held&) const = default;
  };
  using GrantsBySubject = absl::flat_hash_map<Subject, std::vector<Held>>;

  VerbSet RightsOf(const std::vector<Held>& grants, QueuePath path) const;

  bool enforced_ = false;
  std::map<std::string, VerbSet, std::less<>> roles_;
  GrantsBySubject grants_;  // sorted vectors, none empty
  size_t grant_count_ = 0;
  std::set<Revocation> revocations_;
  JoinTokens join_tokens_;
};

// Whether the verb is allowed at the path; `owner`: the principal owns the job that it is about.
// Everything is, without rules.
bool Allowed(const AccessRules& rules, const Principal& principal, Verb verb, QueuePath path,
             bool owner = false);

// Whether the principal may grant the role at the path, or revoke it: it needs access.grant there,
// and every right of the role itself.
bool MayGrant(const AccessRules& rules, const Principal& principal, absl::string_view role,
              QueuePath path);

// What would allow a verb that was refused: the smallest built-in role that has it, where to grant
// it, and who may.
struct AccessRemedy {
  absl::string_view role;
  QueueId queue;                   // the root: for the cluster
  std::vector<Subject> may_grant;  // at most kMost, sorted; besides admins by configuration
  static constexpr size_t kMost = 5;
};
AccessRemedy AccessRemedyFor(const AccessRules& rules, Verb verb, QueuePath path);

}  // namespace berth

#endif  // BERTH_CORE_ACCESS_ACCESS_H_
