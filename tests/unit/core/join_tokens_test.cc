// Join tokens: what a change may do, uses, and the record.
#include "core/access/join_tokens.h"

#include <catch2/catch.hpp>

#include "core/access/access.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

constexpr char kId[] = "0123456789abcdef", kOther[] = "00000000000000ff";

std::string HashText(char c) { return std::string(JoinTokens::kHashBytes, c); }

JoinToken TokenOf(const std::string& id, uint32_t uses) {
  return {.id = id,
          .secret_hash = HashText('s'),
          .nodes = "gpu-*",
          .uses_left = uses,
          .expires = absl::UnixEpoch() + absl::Hours(1),
          .created_by = "ada",
          .last_node = "",
          .last_request = ""};
}

void MustChange(JoinTokens& tokens, const JoinTokenChange& change) {
  const absl::Status status = tokens.Check(change);
  INFO(status);
  REQUIRE(status.ok());
  tokens.Apply(change);
}

absl::StatusCode CodeOf(const JoinTokens& tokens, const JoinTokenChange& change) {
  return tokens.Check(change).code();
}

TEST_CASE("join tokens: uses are counted, and the latest one is remembered") {
  JoinTokens tokens;
  MustChange(tokens, {.drop = {}, .create = {TokenOf(kId, 2)}, .redeem = {}});
  const JoinToken* token = tokens.Find(kId);
  REQUIRE(token != nullptr);
  CHECK_FALSE(IsLastUse(*token, "", ""));
  MustChange(tokens, {.drop = {}, .create = {}, .redeem = {{kId, "gpu-1", HashText('a')}}});
  CHECK(token->uses_left == 1);
  CHECK(IsLastUse(*token, "gpu-1", HashText('a')));
  CHECK_FALSE(IsLastUse(*token, "gpu-2", HashText('a')));
  CHECK_FALSE(IsLastUse(*token, "gpu-1", HashText('b')));
  MustChange(tokens, {.drop = {}, .create = {}, .redeem = {{kId, "gpu-2", HashText('b')}}});
  CHECK(token->uses_left == 0);
  CHECK(IsLastUse(*token, "gpu-2", HashText('b')));
  CHECK(CodeOf(tokens, {.drop = {}, .create = {}, .redeem = {{kId, "gpu-3", HashText('c')}}}) ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("join tokens: two uses of one change do not take one that is not there") {
  JoinTokens tokens;
  MustChange(tokens, {.drop = {}, .create = {TokenOf(kId, 1)}, .redeem = {}});
  const JoinRedemption use = {kId, "gpu-1", HashText('a')};
  CHECK(CodeOf(tokens, {.drop = {}, .create = {}, .redeem = {use, use}}) ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("join tokens: what is not there, and what is there already") {
  JoinTokens tokens;
  using Code = absl::StatusCode;
  CHECK(CodeOf(tokens, {.drop = {kId}, .create = {}, .redeem = {}}) == Code::kNotFound);
  CHECK(CodeOf(tokens, {.drop = {}, .create = {}, .redeem = {{kId, "n", HashText('a')}}}) ==
        Code::kNotFound);
  MustChange(tokens, {.drop = {}, .create = {TokenOf(kId, 1)}, .redeem = {}});
  CHECK(CodeOf(tokens, {.drop = {}, .create = {TokenOf(kId, 1)}, .redeem = {}}) ==
        Code::kAlreadyExists);
  // In the order of the fields.
  MustChange(tokens, {.drop = {kId}, .create = {TokenOf(kId, 7)}, .redeem = {}});
  CHECK(tokens.Find(kId)->uses_left == 7);
}

TEST_CASE("join tokens: fields that no token has") {
  const JoinTokens tokens;
  const auto refused = [&](const std::function<void(JoinToken&)>& change) {
    JoinToken token = TokenOf(kId, 1);
    change(token);
    return absl::IsInvalidArgument(tokens.Check({.drop = {}, .create = {token}, .redeem = {}}));
  };
  CHECK_FALSE(refused([](JoinToken&) {}));
  CHECK(refused([](JoinToken& token) { token.id = "0123"; }));
  CHECK(refused([](JoinToken& token) { token.id = "0123456789ABCDEF"; }));
  CHECK(refused([](JoinToken& token) { token.secret_hash = "short"; }));
  CHECK(refused([](JoinToken& token) { token.nodes = ""; }));
  CHECK(refused([](JoinToken& token) { token.uses_left = JoinTokens::kMostUses + 1; }));
  CHECK(refused([](JoinToken& token) { token.expires = absl::InfiniteFuture(); }));
  CHECK(refused([](JoinToken& token) { token.created_by = "a\"b"; }));
  CHECK(refused([](JoinToken& token) { token.last_node = "n1"; }));
  CHECK(refused([](JoinToken& token) { token.last_request = HashText('r'); }));
}

TEST_CASE("join tokens: there is a limit, and those that have expired are found") {
  JoinTokens tokens;
  JoinTokenChange change;
  for (size_t i = 0; i < JoinTokens::kMost; ++i) {
    change.create.push_back(TokenOf(absl::StrCat(absl::Hex(i, absl::kZeroPad16)), 1));
    if (i == 1) change.create.back().expires = absl::UnixEpoch();
  }
  MustChange(tokens, change);
  CHECK(CodeOf(tokens, {.drop = {}, .create = {TokenOf(kId, 1)}, .redeem = {}}) ==
        absl::StatusCode::kResourceExhausted);
  const std::vector<std::string> expired = tokens.ExpiredAt(absl::UnixEpoch());
  CHECK(expired == std::vector<std::string>{"0000000000000001"});
  MustChange(tokens, {.drop = expired, .create = {TokenOf(kId, 1)}, .redeem = {}});
}

TEST_CASE("join tokens: the record makes the same tokens, with the rules") {
  AccessRules rules;
  AccessChange change;
  change.join_tokens.create = {TokenOf(kId, 2), TokenOf(kOther, 0)};
  change.refuse = {{Revocation::Kind::kNode, "gpu-9"}};
  REQUIRE(rules.Check(change).ok());
  rules.Apply(change);
  AccessChange use;
  use.join_tokens.redeem = {{kId, "gpu-1", HashText('a')}};
  CHECK_FALSE(use.ChangesRights());
  CHECK_FALSE(use.empty());
  CHECK(change.ChangesRights());
  REQUIRE(rules.Check(use).ok());
  rules.Apply(use);
  AccessRules again;
  REQUIRE(again.Check(rules.AsChange()).ok());
  again.Apply(rules.AsChange());
  CHECK(again == rules);
  CHECK(again.join_tokens().Find(kId)->last_node == "gpu-1");
  CHECK_FALSE(rules.enforced());
}

TEST_CASE("join tokens: errors name the token") {
  const JoinTokens tokens;
  CHECK_THAT(std::string(tokens.Check({.drop = {kId}, .create = {}, .redeem = {}}).message()),
             Contains(kId));
}

}  // namespace
}  // namespace berth
