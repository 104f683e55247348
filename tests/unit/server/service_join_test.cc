// Join tokens over the API: who may create, see and use them.
#include <catch2/catch.hpp>

#include "support/pki/join_token.h"
#include "tests/unit/server/service_access_world.h"

namespace berth::testing {
namespace {

using Catch::Matchers::Contains;
using NodeStub = v1::NodeService::Stub;

class Joins : public AccessWorld {
 public:
  Joins() : operator_(User("op")), authd_(User("authd")) {
    Grant("op", "operator", "");
    v1::ChangeAccessRequest change;
    v1::AccessRole* role = change.add_set_roles();
    role->set_name("admitter");
    role->add_verbs("node.admit");
    REQUIRE(Change(root(), change).ok());
    Grant("authd", "admitter", "");
  }

  v1::CreateJoinTokenResponse Create(const std::string& nodes, int uses) {
    v1::CreateJoinTokenRequest request;
    request.set_nodes(nodes);
    request.set_uses(uses);
    v1::CreateJoinTokenResponse response;
    const absl::Status status =
        Call(*operator_->nodes, &NodeStub::CreateJoinToken, request, &response);
    INFO(status);
    REQUIRE(status.ok());
    return response;
  }
  v1::ListJoinTokensResponse List() {
    v1::ListJoinTokensResponse response;
    REQUIRE(
        Call(*operator_->nodes, &NodeStub::ListJoinTokens, v1::ListJoinTokensRequest(), &response)
            .ok());
    return response;
  }
  absl::Status Revoke(const std::string& id) {
    v1::RevokeJoinTokenRequest request;
    request.set_id(id);
    v1::RevokeJoinTokenResponse response;
    return Call(*operator_->nodes, &NodeStub::RevokeJoinToken, request, &response);
  }
  absl::Status Admit(Door& by, const std::string& node, const std::string& token) {
    v1::AdmitNodeRequest request;
    request.set_node(node);
    request.set_token(token);
    request.set_request_hash(Sha256(node));
    v1::AdmitNodeResponse response;
    return Call(*by.nodes, &NodeStub::AdmitNode, request, &response);
  }

  const std::unique_ptr<Door> operator_, authd_;
};

TEST_CASE("join tokens: created by an operator, told once, used by berth-authd") {
  Joins world;
  const v1::CreateJoinTokenResponse made = world.Create("gpu-*", 2);
  CHECK(ReadJoinToken(made.secret())->id == made.token().id());
  v1::ListJoinTokensResponse listed = world.List();
  REQUIRE(listed.tokens_size() == 1);
  CHECK(listed.tokens(0).SerializeAsString() == made.token().SerializeAsString());
  CHECK(listed.tokens(0).created_by() == "op");
  CHECK(listed.tokens(0).uses_left() == 2);

  CHECK(world.Admit(*world.authd_, "gpu-1", made.secret()).ok());
  CHECK(world.Admit(*world.authd_, "gpu-1", made.secret()).ok());  // the same request again
  CHECK(world.List().tokens(0).uses_left() == 1);
  CHECK_THAT(std::string(world.Admit(*world.authd_, "cpu-1", made.secret()).message()),
             Contains("is not for node"));
  CHECK(world.Admit(*world.authd_, "gpu-2", made.secret()).ok());
  CHECK_THAT(std::string(world.Admit(*world.authd_, "gpu-3", made.secret()).message()),
             Contains("is used up"));
}

TEST_CASE("join tokens: a revoked one admits nobody") {
  Joins world;
  const v1::CreateJoinTokenResponse made = world.Create("n1", 1);
  REQUIRE(world.Revoke(made.token().id()).ok());
  CHECK(world.List().tokens().empty());
  CHECK(absl::IsPermissionDenied(world.Admit(*world.authd_, "n1", made.secret())));
  CHECK(absl::IsNotFound(world.Revoke(made.token().id())));
  CHECK(absl::IsNotFound(world.Revoke("\"\n")));
}

TEST_CASE("join tokens: operators do not admit nodes, and berth-authd creates no tokens") {
  Joins world;
  const v1::CreateJoinTokenResponse made = world.Create("n1", 1);
  const absl::Status status = world.Admit(*world.operator_, "n1", made.secret());
  CHECK(absl::IsPermissionDenied(status));
  CHECK_THAT(std::string(status.message()), Contains("may not admit nodes (node.admit)"));
  v1::CreateJoinTokenRequest request;
  request.set_nodes("*");
  v1::CreateJoinTokenResponse response;
  CHECK(absl::IsPermissionDenied(
      Call(*world.authd_->nodes, &NodeStub::CreateJoinToken, request, &response)));
  CHECK(world.List().tokens(0).uses_left() == 1);
  request.set_nodes("");
  CHECK(absl::IsInvalidArgument(
      Call(*world.operator_->nodes, &NodeStub::CreateJoinToken, request, &response)));
}

}  // namespace
}  // namespace berth::testing
