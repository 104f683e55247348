#include "core/access/join_tokens.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/access/access.h"
#include "core/base/check.h"

namespace berth {
namespace {

bool IsTokenId(absl::string_view id) {
  return id.size() == JoinTokens::kIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
         });
}

bool IsHash(absl::string_view hash) { return hash.size() == JoinTokens::kHashBytes; }

absl::Status CheckToken(const JoinToken& token) {
  const auto wrong = [](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("a join token: ", what));
  };
  if (!IsTokenId(token.id)) return wrong("its id has 16 hexadecimal digits");
  if (!IsHash(token.secret_hash)) return wrong("the hash of its secret has 32 bytes");
  if (!IsAccessName(token.nodes)) return wrong("the pattern of nodes is no name");
  if (token.uses_left > JoinTokens::kMostUses) return wrong("it has at most 10000 uses");
  if (token.expires == absl::InfiniteFuture()) return wrong("it must expire");
  if (!token.created_by.empty() && !IsAccessName(token.created_by)) {
    return wrong("its creator is no name");
  }
  const bool used = !token.last_node.empty() || !token.last_request.empty();
  if (used && (!IsAccessName(token.last_node) || !IsHash(token.last_request))) {
    return wrong("its latest use is not one");
  }
  return absl::OkStatus();
}

absl::Status NoSuchToken(absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no join token \"", id, "\""));
}

}  // namespace

absl::Status JoinTokens::Check(const JoinTokenChange& change) const {
  if (change == JoinTokenChange{}) return absl::OkStatus();
  JoinTokens after = *this;
  for (const std::string& id : change.drop) {
    if (after.tokens_.erase(id) == 0) return NoSuchToken(id);
  }
  for (const JoinToken& token : change.create) {
    if (absl::Status status = CheckToken(token); !status.ok()) return status;
    if (!after.tokens_.emplace(token.id, token).second) {
      return absl::AlreadyExistsError(absl::StrCat("join token \"", token.id, "\" exists already"));
    }
  }
  for (const JoinRedemption& use : change.redeem) {
    const auto token = after.tokens_.find(use.id);
    if (token == after.tokens_.end()) return NoSuchToken(use.id);
    if (!IsAccessName(use.node) || !IsHash(use.request)) {
      return absl::InvalidArgumentError("a use of a join token needs a node and a request's hash");
    }
    if (token->second.uses_left == 0) {
      return absl::FailedPreconditionError(absl::StrCat("join token \"", use.id, "\" is used up"));
    }
    --token->second.uses_left;
  }
  if (after.tokens_.size() <= kMost) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("there are at most ", kMost, " join tokens"));
}

void JoinTokens::Apply(const JoinTokenChange& change) {
  for (const std::string& id : change.drop) tokens_.erase(id);
  for (const JoinToken& token : change.create) tokens_.emplace(token.id, token);
  for (const JoinRedemption& use : change.redeem) {
    const auto token = tokens_.find(use.id);
    BERTH_CHECK(token != tokens_.end() && token->second.uses_left > 0);
    --token->second.uses_left;
    token->second.last_node = use.node;
    token->second.last_request = use.request;
  }
}

JoinTokenChange JoinTokens::AsChange() const {
  JoinTokenChange change;
  for (const auto& [id, token] : tokens_) change.create.push_back(token);
  return change;
}

const JoinToken* JoinTokens::Find(absl::string_view id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

std::vector<std::string> JoinTokens::ExpiredAt(absl::Time now) const {
  std::vector<std::string> ids;
  for (const auto& [id, token] : tokens_) {
    if (token.expires <= now) ids.push_back(id);
  }
  return ids;
}

bool IsLastUse(const JoinToken& token, absl::string_view node, absl::string_view request) {
  return !token.last_node.empty() && token.last_node == node && token.last_request == request;
}

}  // namespace berth
