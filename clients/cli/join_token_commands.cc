// node token: secrets with which the agents of new nodes join.
#include <memory>

#include "absl/strings/str_cat.h"
#include "clients/cli/command.h"
#include "clients/cli/human.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using TokenStub = v1::NodeService::StubInterface;

std::string LifeText(const v1::JoinToken& token, const Session& session) {
  return HumanDuration(TimeFrom(token.expire_time()) - session.Now());
}

// The secret alone is on standard output, for `> FILE`.
ExitCode CreateJoinToken(Session& session, const v1::CreateJoinTokenRequest& request) {
  const absl::StatusOr<v1::CreateJoinTokenResponse> made =
      session.Call(&TokenStub::CreateJoinToken, request);
  if (!made.ok()) return session.Finish(made.status());
  if (PrintMessage(session, *made)) return ExitCode::kOk;
  session.out() << made->secret() << "\n";
  session.err() << "join token " << made->token().id() << " for nodes " << made->token().nodes()
                << ": uses " << made->token().uses_left() << ", valid for "
                << LifeText(made->token(), session)
                << ". It is shown only once; for berth-agent --join FILE.\n";
  return ExitCode::kOk;
}

ExitCode ListJoinTokens(Session& session) {
  const absl::StatusOr<v1::ListJoinTokensResponse> tokens =
      session.Call(&TokenStub::ListJoinTokens, v1::ListJoinTokensRequest());
  if (!tokens.ok()) return session.Finish(tokens.status());
  if (PrintMessage(session, *tokens)) return ExitCode::kOk;
  Table table({{"ID"},
               {"NODES"},
               {"USES LEFT", Column::kRight},
               {"VALID FOR", Column::kRight},
               {"CREATED BY"}});
  for (const v1::JoinToken& token : tokens->tokens()) {
    table.AddRow({{token.id()},
                  {token.nodes()},
                  {absl::StrCat(token.uses_left())},
                  {LifeText(token, session)},
                  {token.created_by()}});
  }
  session.out() << table.Render(session.table_style());
  return ExitCode::kOk;
}

ExitCode RevokeJoinToken(Session& session, const std::string& id) {
  v1::RevokeJoinTokenRequest request;
  request.set_id(id);
  const absl::StatusOr<v1::RevokeJoinTokenResponse> answer =
      session.Call(&TokenStub::RevokeJoinToken, request);
  if (answer.ok()) session.out() << "join token " << id << " revoked\n";
  return session.Finish(answer.status());
}

void AddCreate(CLI::App& noun, Session& session) {
  auto request = std::make_shared<v1::CreateJoinTokenRequest>();
  CLI::App* create = AddCommand(noun, session, "create", "create a token, and print it once",
                                [request](Session& s) { return CreateJoinToken(s, *request); });
  create
      ->add_option("--node", *request->mutable_nodes(),
                   "the node that may join with it, or a pattern such as 'gpu-*'")
      ->required();
  create
      ->add_option_function<int32_t>(
          "--uses", [request](int32_t uses) { request->set_uses(uses); },
          "how many times; default 1")
      ->check(CLI::Range(1, 10'000));
  create
      ->add_option_function<std::string>(
          "--expires",
          [request](const std::string& text) {
            ToProto(DurationFrom(text), request->mutable_lifetime());
          },
          "it is valid for this time, 1m to 168h; default 1h")
      ->check(kIsDuration);
}

}  // namespace

void AddJoinTokenCommands(CLI::App& node, Session& session) {
  CLI::App& noun = *AddNoun(node, "token", "tokens with which the agents of new nodes join");
  AddCreate(noun, session);
  AddCommand(noun, session, "list", "show the tokens that are valid, without their secrets",
             ListJoinTokens);
  auto id = std::make_shared<std::string>();
  CLI::App* revoke = AddCommand(noun, session, "revoke", "make a token invalid",
                                [id](Session& s) { return RevokeJoinToken(s, *id); });
  revoke->add_option("ID", *id, "see berth node token list")->required();
}

}  // namespace berth
