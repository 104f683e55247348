#include "server/commands/join_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/validation/findings.h"
#include "server/validation/text.h"
#include "server/validation/values.h"
#include "support/dns_name.h"
#include "support/proto_time.h"
#include "support/wildcard.h"

namespace berth {
namespace {

constexpr size_t kMaxSerialBytes = 64;  // hexadecimal digits; RFC 5280 allows 40

void CheckNodePattern(const FieldPath& path, const std::string& nodes, Findings& findings) {
  if (nodes.empty()) return findings.Invalid(path, "required: a node's name, or a pattern");
  if (!HasWildcard(nodes)) return CheckDnsName(path, nodes, findings);
  const bool good = IsAccessName(nodes) && std::all_of(nodes.begin(), nodes.end(), [](char c) {
                      return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                             absl::ascii_isdigit(static_cast<unsigned char>(c)) ||
                             absl::string_view("-.*?").find(c) != absl::string_view::npos;
                    });
  if (good) return;
  findings.Invalid(path, "must be at most 253 lower-case letters, digits, '-', '.', '*' and '?'");
}

absl::Status Denied(absl::string_view why) { return absl::PermissionDeniedError(why); }

absl::Status CheckNotRefused(const v1::AdmitNodeRequest& request, const ClusterState& state) {
  const Principal node{Principal::Kind::kNode, request.node(), {}};
  if (state.access().IsRefused(node, "")) {
    return Denied(absl::StrCat("node ", Quoted(request.node()), " is revoked"));
  }
  if (state.access().IsRefused(node, request.serial())) {
    return Denied(absl::StrCat("the certificate of node ", Quoted(request.node()), " is revoked"));
  }
  return absl::OkStatus();
}

// A token is no way to take the place of a node that works.
absl::Status CheckNotReady(const std::string& name, const ClusterState& state) {
  const Node* node = state.FindNode(name);
  if (node == nullptr || node->status.state != NodeState::kReady) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("node ", Quoted(name),
                   " is ready; a token admits it once its agent has been silent for a lease"));
}

}  // namespace

absl::Status ValidateCreateJoinToken(const v1::CreateJoinTokenRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckNodePattern({root, "nodes"}, request.nodes(), findings);
  CheckRange({root, "uses"}, request.uses(), 0, JoinTokens::kMostUses, findings);
  if (request.has_lifetime()) {
    CheckDuration({root, "lifetime"}, request.lifetime(), kLeastJoinTokenLife, kMostJoinTokenLife,
                  findings);
  }
  return findings.ToStatus();
}

absl::Status ValidateAdmitNode(const v1::AdmitNodeRequest& request) {
  Findings findings;
  const FieldPath root;
  CheckDnsName({root, "node"}, request.node(), findings);
  if (request.token().empty() == request.serial().empty()) {
    findings.Invalid({root, "token"}, "set either token, or serial: of the certificate before");
  }
  if (!request.token().empty() && request.request_hash().size() != JoinTokens::kHashBytes) {
    findings.Invalid({root, "request_hash"}, "must have 32 bytes");
  }
  if (request.serial().size() > kMaxSerialBytes) {
    findings.Invalid({root, "serial"}, "must have at most 64 hexadecimal digits");
  }
  return findings.ToStatus();
}

AccessChange CreationOf(const v1::CreateJoinTokenRequest& request, const JoinTokenKey& key,
                        const std::string& created_by, const ClusterState& state, absl::Time now) {
  const absl::Duration life =
      request.has_lifetime() ? DurationFrom(request.lifetime()) : kDefaultJoinTokenLife;
  AccessChange change;
  change.join_tokens.drop = state.access().join_tokens().ExpiredAt(now);
  change.join_tokens.create = {{.id = key.id,
                                .secret_hash = key.secret_hash,
                                .nodes = request.nodes(),
                                .uses_left = static_cast<uint32_t>(std::max(request.uses(), 1)),
                                .expires = now + life,
                                .created_by = created_by,
                                .last_node = "",
                                .last_request = ""}};
  return change;
}

absl::StatusOr<AccessChange> AdmissionOf(const v1::AdmitNodeRequest& request,
                                         const ClusterState& state, absl::Time now) {
  if (absl::Status status = CheckNotRefused(request, state); !status.ok()) return status;
  if (request.token().empty()) return AccessChange();
  const absl::StatusOr<JoinTokenKey> key = ReadJoinToken(request.token());
  if (!key.ok()) return Denied(key.status().message());
  const JoinToken* token = state.access().join_tokens().Find(key->id);
  if (token == nullptr || !SameHash(token->secret_hash, key->secret_hash)) {
    return Denied("this cluster has no such join token: it was revoked, or has expired");
  }
  const auto denied = [&](absl::string_view why) {
    return Denied(absl::StrCat("join token ", token->id, " ", why));
  };
  if (token->expires <= now) return denied("has expired");
  if (!MatchesPattern(request.node(), token->nodes)) {
    return denied(absl::StrCat("is not for node ", Quoted(request.node())));
  }
  if (IsLastUse(*token, request.node(), request.request_hash())) return AccessChange();
  if (token->uses_left == 0) return denied("is used up");
  if (absl::Status status = CheckNotReady(request.node(), state); !status.ok()) return status;
  AccessChange change;
  change.join_tokens.redeem = {{token->id, request.node(), request.request_hash()}};
  return change;
}

void RenderJoinToken(const JoinToken& token, v1::JoinToken* out) {
  out->set_id(token.id);
  out->set_nodes(token.nodes);
  out->set_uses_left(static_cast<int32_t>(token.uses_left));
  ToProto(token.expires, out->mutable_expire_time());
  out->set_created_by(token.created_by);
}

}  // namespace berth
