#include "server/access/caller.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/access/task_caller.h"
#include "server/validation/text.h"
#include "support/pki/certificate.h"

namespace berth {
namespace {

using config::v1::CertificateRule;

void SetGroups(std::vector<std::string> groups, Principal* principal) {
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  // A group that no rule can name gives nothing.
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [](const std::string& group) { return !IsAccessName(group); }),
               groups.end());
  principal->groups = std::move(groups);
}

void SetName(absl::string_view name, Caller* caller) {
  if (IsAccessName(name)) {
    caller->principal.name = std::string(name);
  } else {
    caller->why_unknown = "a certificate with a name that cannot be shown";
  }
}

// The identities of Berth's own form, of any trust domain.
std::vector<SpiffeId> IdentitiesIn(const CertificateNames& certificate) {
  std::vector<SpiffeId> ids;
  for (const std::string& uri : certificate.uris) {
    absl::StatusOr<SpiffeId> id = ParseSpiffeId(uri);
    if (id.ok()) ids.push_back(*std::move(id));
  }
  return ids;
}

void TakeIdentity(const SpiffeId& id, const std::string& trust_domain,
                  const CertificateNames& certificate, Caller* caller) {
  caller->proof = Proof::kIdentity;
  const bool is_node = id.kind == SpiffeId::Kind::kNode;
  caller->principal.kind = is_node ? Principal::Kind::kNode : Principal::Kind::kUser;
  if (id.trust_domain != trust_domain) {
    caller->why_unknown = absl::StrCat("a certificate of trust domain ", Quoted(id.trust_domain));
    return;
  }
  SetName(id.name, caller);
  if (!is_node) SetGroups(certificate.groups, &caller->principal);
}

const std::string* OnlyOf(const std::vector<std::string>& values) {
  return values.size() == 1 ? &values[0] : nullptr;
}

const std::string* FieldOf(CertificateRule::Field field, const CertificateNames& certificate) {
  switch (field) {
    case CertificateRule::COMMON_NAME:
      return certificate.common_name.empty() ? nullptr : &certificate.common_name;
    case CertificateRule::EMAIL:
      return OnlyOf(certificate.emails);
    case CertificateRule::HOST:
      return OnlyOf(certificate.hosts);
    case CertificateRule::URI:
      return OnlyOf(certificate.uris);
    default:
      return nullptr;
  }
}

// The user's name in the field, if the certificate has it.
std::optional<absl::string_view> NameBy(const CertificateRule& rule,
                                        const CertificateNames& certificate) {
  const std::string* field = FieldOf(rule.field(), certificate);
  if (field == nullptr) return std::nullopt;
  absl::string_view name = *field;
  if (!absl::ConsumePrefix(&name, rule.prefix()) || !absl::ConsumeSuffix(&name, rule.suffix()) ||
      name.empty()) {
    return std::nullopt;
  }
  return name;
}

void ApplyRules(const config::v1::Access& access, const CertificateNames& certificate,
                Caller* caller) {
  for (const CertificateRule& rule : access.certificates()) {
    const std::optional<absl::string_view> name = NameBy(rule, certificate);
    if (!name.has_value()) continue;
    caller->proof = Proof::kRule;
    SetName(*name, caller);
    std::vector<std::string> groups(rule.groups().begin(), rule.groups().end());
    if (rule.groups_from_units()) {
      groups.insert(groups.end(), certificate.organizational_units.begin(),
                    certificate.organizational_units.end());
    }
    return SetGroups(std::move(groups), &caller->principal);
  }
  caller->why_unknown = "a certificate that no entry of access.certificates fits";
}

void FindUser(const config::v1::Access& access, const CertificateNames& certificate,
              const std::vector<SpiffeId>& ids, Caller* caller) {
  if (ids.size() > 1) {
    caller->why_unknown = "a certificate with several identities";
  } else if (ids.size() == 1) {
    TakeIdentity(ids[0], access.trust_domain(), certificate, caller);
  } else if (caller->of_users) {
    caller->why_unknown = "a certificate of the users' authority without the identity of a user";
  } else if (caller->of_nodes) {
    caller->why_unknown = "a certificate of the nodes' authority without the identity of a node";
  } else if (!access.certificates().empty()) {
    ApplyRules(access, certificate, caller);
  } else if (certificate.common_name.empty()) {
    caller->why_unknown = "a certificate without one common name";
  } else {
    caller->proof = Proof::kCommonName;
    SetName(certificate.common_name, caller);
  }
  const bool is_node = caller->principal.kind == Principal::Kind::kNode;
  if (caller->of_users && is_node) {
    caller->principal = {};
    caller->why_unknown = "a certificate of the users' authority with the identity of a node";
  } else if (caller->of_nodes && !is_node && !caller->principal.name.empty()) {
    caller->principal = {};
    caller->why_unknown = "a certificate of the nodes' authority with the identity of a user";
  }
}

}  // namespace

bool IsAdministrator(const config::v1::Administrators& administrators, const Principal& principal) {
  if (principal.kind != Principal::Kind::kUser || principal.name.empty()) return false;
  const auto has = [](const auto& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(administrators.users(), principal.name) ||
         std::any_of(principal.groups.begin(), principal.groups.end(),
                     [&](const auto& group) { return has(administrators.groups(), group); });
}

absl::string_view NameOf(Proof proof) {
  switch (proof) {
    case Proof::kNone:
      return "none";
    case Proof::kLocal:
      return "a local connection without TLS";
    case Proof::kIdentity:
      return "the identity in the certificate";
    case Proof::kRule:
      return "the certificate, by access.certificates";
    case Proof::kCommonName:
      return "the common name of the certificate";
  }
  return "";
}

Caller CallerWithoutTls(const config::v1::Access& access) {
  Caller caller;
  caller.principal.name = access.without_tls().user();
  const auto& groups = access.without_tls().groups();
  SetGroups({groups.begin(), groups.end()}, &caller.principal);
  if (caller.principal.name.empty()) {
    caller.why_unknown = "a client without TLS";
  } else {
    caller.proof = Proof::kLocal;
  }
  caller.administrator = IsAdministrator(access.administrators(), caller.principal);
  return caller;
}

Caller CallerFrom(const config::v1::Access& access, const CertificateNames& certificate,
                  bool of_users, bool of_nodes) {
  Caller caller{.principal = {},
                .why_unknown = {},
                .of_users = of_users,
                .of_nodes = of_nodes,
                .tls = true,
                .common_name = of_users || of_nodes ? std::string() : certificate.common_name,
                .serial = certificate.serial,
                .expires = certificate.not_after};
  const std::vector<SpiffeId> ids = IdentitiesIn(certificate);
  caller.by_identity = !ids.empty();
  FindUser(access, certificate, ids, &caller);
  caller.administrator = IsAdministrator(access.administrators(), caller.principal);
  return caller;
}

Actor ActorOf(const Caller& caller, absl::string_view address) {
  Actor actor{.kind = caller.principal.kind,
              .name = caller.principal.name,
              .serial = caller.serial,
              .address = std::string(address)};
  if (!caller.tls) {
    actor.door = Door::kWithoutTls;
  } else if (!caller.principal.name.empty()) {
    actor.door = caller.by_identity ? Door::kIdentity : Door::kCertificate;
  }
  return actor;
}

absl::Status MayBeAgentOf(const Caller& caller, absl::string_view node, bool identities) {
  const bool anybody = !caller.by_identity && !caller.of_users && !caller.of_nodes;
  if (anybody && !identities) return absl::OkStatus();
  if (anybody) {
    return absl::PermissionDeniedError(absl::StrCat(
        "agents need the identity of their node in the certificate (access.nodeIdentities), ",
        "here that of ", Quoted(node)));
  }
  if (caller.principal.name.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(caller.why_unknown, " is none of an agent"));
  }
  const bool is_node = caller.principal.kind == Principal::Kind::kNode;
  if (is_node && caller.principal.name == node) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the certificate is that of ",
                                                  is_node ? "" : "user ", TextOf(caller),
                                                  ", and not of node ", Quoted(node)));
}

std::string TextOf(const Caller& caller) {
  if (caller.task.has_value()) return TextOf(*caller.task, caller.principal.name);
  if (caller.principal.name.empty()) return caller.why_unknown;
  const bool is_node = caller.principal.kind == Principal::Kind::kNode;
  return absl::StrCat(is_node ? "node " : "", Quoted(caller.principal.name));
}

}  // namespace berth
