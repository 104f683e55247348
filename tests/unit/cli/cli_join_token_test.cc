// Join tokens on the command line.
#include <catch2/catch.hpp>

#include "support/proto_time.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

v1::JoinToken TokenFor(const std::string& nodes, int uses, absl::Time expires) {
  v1::JoinToken token;
  token.set_id("0123456789abcdef");
  token.set_nodes(nodes);
  token.set_uses_left(uses);
  token.set_created_by("ada");
  ToProto(expires, token.mutable_expire_time());
  return token;
}

TEST_CASE("node token create prints the token alone, and what it is on standard error") {
  Cli cli;
  v1::CreateJoinTokenResponse made;
  *made.mutable_token() =
      TokenFor("gpu-*", 8, cli.world.environment().clock->Now() + absl::Minutes(30));
  made.set_secret("berth-join.0123456789abcdef.SECRET");
  cli.script.Answer("CreateJoinToken", made);
  CHECK(cli.Run({"node", "token", "create", "--node", "gpu-*", "--uses", "8", "--expires",
                 "30m"}) == 0);
  CHECK(cli.out() == "berth-join.0123456789abcdef.SECRET\n");
  CHECK_THAT(cli.err(),
             Contains("join token 0123456789abcdef for nodes gpu-*: uses 8, valid for 30m"));
  CHECK_THAT(cli.err(), !Contains("SECRET"));
  const auto request = cli.script.Requests<v1::CreateJoinTokenRequest>("CreateJoinToken").at(0);
  CHECK(request.nodes() == "gpu-*");
  CHECK(request.uses() == 8);
  CHECK(DurationFrom(request.lifetime()) == absl::Minutes(30));
}

TEST_CASE("node token create leaves the defaults to the server") {
  Cli cli;
  cli.script.Answer("CreateJoinToken", v1::CreateJoinTokenResponse());
  CHECK(cli.Run({"node", "token", "create", "--node", "n1"}) == 0);
  const auto request = cli.script.Requests<v1::CreateJoinTokenRequest>("CreateJoinToken").at(0);
  CHECK(request.uses() == 0);
  CHECK_FALSE(request.has_lifetime());
}

TEST_CASE("node token list shows tokens without secrets") {
  Cli cli;
  v1::ListJoinTokensResponse tokens;
  *tokens.add_tokens() =
      TokenFor("gpu-*", 8, cli.world.environment().clock->Now() + absl::Minutes(30));
  cli.script.Answer("ListJoinTokens", tokens);
  CHECK(cli.Run({"node", "token", "list"}) == 0);
  CHECK(cli.out() ==
        "ID                NODES  USES LEFT  VALID FOR  CREATED BY\n"
        "0123456789abcdef  gpu-*          8        30m  ada\n");
}

TEST_CASE("node token revoke names the token") {
  Cli cli;
  cli.script.Answer("RevokeJoinToken", v1::RevokeJoinTokenResponse());
  CHECK(cli.Run({"node", "token", "revoke", "0123456789abcdef"}) == 0);
  CHECK(cli.out() == "join token 0123456789abcdef revoked\n");
}

TEST_CASE("node token revoke of a token that does not exist fails") {
  Cli cli;
  cli.script.Answer("RevokeJoinToken", absl::NotFoundError("there is no join token \"1\""));
  CHECK(cli.Run({"node", "token", "revoke", "1"}) != 0);
  CHECK_THAT(cli.err(), Contains("there is no join token \"1\""));
}

TEST_CASE("node token: arguments that are not valid") {
  Cli cli;
  CHECK(cli.Run({"node", "token", "create"}) == 2);
  CHECK(cli.Run({"node", "token", "create", "--node", "n1", "--uses", "0"}) == 2);
  CHECK(cli.Run({"node", "token", "create", "--node", "n1", "--expires", "soon"}) == 2);
  CHECK(cli.Run({"node", "token", "revoke"}) == 2);
  CHECK(cli.Run({"node", "token"}) == 2);
}

}  // namespace
}  // namespace berth
