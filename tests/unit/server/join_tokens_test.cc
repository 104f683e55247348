// Which nodes are admitted, and which tokens are created.
#include "server/commands/join_tokens.h"

#include <catch2/catch.hpp>

#include "core/model/apply.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

class Site {
 public:
  // The token's text.
  std::string Create(const std::string& nodes, int uses, absl::Time now = kStart) {
    const NewJoinToken made = MakeJoinToken().value();
    v1::CreateJoinTokenRequest request;
    request.set_nodes(nodes);
    request.set_uses(uses);
    REQUIRE(ValidateCreateJoinToken(request).ok());
    Happen(CreationOf(request, made.key, "ada", state_, now));
    return made.text;
  }
  void Happen(const AccessChange& change) { Must(AccessChanged{change}); }
  void Must(EventBody body) {
    const absl::Status status = Apply(state_, {kStart, std::move(body)});
    INFO(status);
    REQUIRE(status.ok());
  }
  NodeId Register(const std::string& name) {
    const NodeId id = state_.next_node_id();
    NodeSpec spec;
    spec.name = name;
    Must(NodeRegistered{id, spec, 1, "agent", "boot", "version"});
    return id;
  }
  absl::Status Admit(const std::string& node, const std::string& token, char request = 'r',
                     absl::Time now = kStart) {
    v1::AdmitNodeRequest admission;
    admission.set_node(node);
    admission.set_token(token);
    admission.set_request_hash(std::string(32, request));
    if (token.empty()) admission.set_serial("1a");
    REQUIRE(ValidateAdmitNode(admission).ok());
    const absl::StatusOr<AccessChange> change = AdmissionOf(admission, state_, now);
    if (change.ok() && !change->empty()) Happen(*change);
    return change.status();
  }
  const JoinTokens& tokens() const { return state_.access().join_tokens(); }

 private:
  ClusterState state_;
};

void CheckDenied(const absl::Status& status, const std::string& why) {
  CHECK(absl::IsPermissionDenied(status));
  CHECK_THAT(std::string(status.message()), Contains(why));
}

TEST_CASE("join: a token admits its node as often as it has uses") {
  Site site;
  const std::string token = site.Create("gpu-*", 2);
  CHECK(site.Admit("gpu-1", token, 'a').ok());
  CHECK(site.Admit("gpu-2", token, 'b').ok());
  CheckDenied(site.Admit("gpu-3", token, 'c'), "is used up");
  CHECK(site.Admit("gpu-2", token, 'b').ok());  // the answer was lost
  CheckDenied(site.Admit("gpu-2", token, 'c'), "is used up");
  CheckDenied(site.Admit("gpu-1", token, 'b'), "is used up");
}

TEST_CASE("join: a token is for the nodes of its pattern, and the refusal does not tell it") {
  Site site;
  const std::string token = site.Create("gpu-*", 1);
  CheckDenied(site.Admit("cpu-1", token), "is not for node \"cpu-1\"");
  CHECK_THAT(std::string(site.Admit("cpu-1", token).message()), !Contains("gpu-*"));
  CheckDenied(site.Admit("xgpu-1", token), "is not for node");
  CHECK(site.tokens().all().begin()->second.uses_left == 1);
  const std::string one = site.Create("n1", 1);
  CheckDenied(site.Admit("n10", one), "is not for node");
  CHECK(site.Admit("n1", one).ok());
}

TEST_CASE("join: tokens that expired, were revoked, or are of another cluster") {
  Site site, other;
  const std::string token = site.Create("*", 1);
  CheckDenied(site.Admit("n1", token, 'a', kStart + kDefaultJoinTokenLife), "has expired");
  CHECK(site.Admit("n1", token, 'a', kStart + kDefaultJoinTokenLife - absl::Seconds(1)).ok());
  CheckDenied(other.Admit("n1", token), "this cluster has no such join token");
  // The right id with another secret.
  std::string forged = token;
  forged.back() = forged.back() == 'A' ? 'B' : 'A';
  CheckDenied(site.Admit("n1", forged), "this cluster has no such join token");
  CheckDenied(site.Admit("n1", "berth-join.x"), "this is not a join token");
  AccessChange revoke;
  revoke.join_tokens.drop = {site.tokens().all().begin()->first};
  site.Happen(revoke);
  CheckDenied(site.Admit("n1", token), "this cluster has no such join token");
}

TEST_CASE("join: a refused node is not admitted, with a token or its certificate") {
  Site site;
  const std::string token = site.Create("*", 5);
  CHECK(site.Admit("n1", "").ok());
  AccessChange refuse;
  refuse.refuse = {{Revocation::Kind::kNode, "n1"}};
  site.Happen(refuse);
  CheckDenied(site.Admit("n1", token), "node \"n1\" is revoked");
  CheckDenied(site.Admit("n1", ""), "node \"n1\" is revoked");
  CHECK(site.Admit("n2", "").ok());
  refuse.refuse = {{Revocation::Kind::kSerial, "1a"}};
  site.Happen(refuse);
  CheckDenied(site.Admit("n2", ""), "the certificate of node \"n2\" is revoked");
}

TEST_CASE("join: a token does not take the place of a node that is connected") {
  Site site;
  const std::string token = site.Create("*", 2);
  const NodeId id = site.Register("n1");
  const absl::Status status = site.Admit("n1", token);
  CHECK(absl::IsUnavailable(status));  // the agent tries again
  CHECK_THAT(std::string(status.message()), Contains("node \"n1\" is ready"));
  CHECK(site.tokens().all().begin()->second.uses_left == 2);
  CHECK(site.Admit("n1", "").ok());  // a renewal
  CHECK(site.Admit("n2", token).ok());
  site.Must(NodeSilenced{id});
  CHECK(site.Admit("n1", token, 'b').ok());
}

TEST_CASE("join: a new token drops those that have expired") {
  Site site;
  site.Create("a", 1);
  site.Create("b", 1);
  CHECK(site.tokens().all().size() == 2);
  site.Create("c", 1, kStart + absl::Hours(2));
  REQUIRE(site.tokens().all().size() == 1);
  const JoinToken& token = site.tokens().all().begin()->second;
  CHECK(token.nodes == "c");
  CHECK(token.created_by == "ada");
  CHECK(token.expires == kStart + absl::Hours(3));
}

TEST_CASE("join: requests for tokens that are not valid") {
  const auto error = [](const std::string& nodes, int uses, absl::Duration life) {
    v1::CreateJoinTokenRequest request;
    request.set_nodes(nodes);
    request.set_uses(uses);
    ToProto(life, request.mutable_lifetime());
    return std::string(ValidateCreateJoinToken(request).message());
  };
  CHECK(error("gpu-[*", 1, absl::Hours(1)) != "");
  CHECK(error("gpu-*.rack?", 10'000, absl::Hours(168)) == "");
  CHECK_THAT(error("", 1, absl::Hours(1)), Contains("nodes"));
  CHECK_THAT(error("GPU", 1, absl::Hours(1)), Contains("nodes"));
  CHECK_THAT(error("GPU*", 1, absl::Hours(1)), Contains("nodes"));
  CHECK_THAT(error(std::string(300, '*'), 1, absl::Hours(1)), Contains("nodes"));
  CHECK_THAT(error("n1", 10'001, absl::Hours(1)), Contains("uses"));
  CHECK_THAT(error("n1", -1, absl::Hours(1)), Contains("uses"));
  CHECK_THAT(error("n1", 1, absl::Seconds(59)), Contains("lifetime"));
  CHECK_THAT(error("n1", 1, absl::Hours(169)), Contains("lifetime"));
}

TEST_CASE("join: requests for admission that are not valid") {
  v1::AdmitNodeRequest request;
  request.set_node("n1");
  CHECK_FALSE(ValidateAdmitNode(request).ok());  // neither a token nor a serial number
  request.set_serial("1a");
  CHECK(ValidateAdmitNode(request).ok());
  request.set_token("t");
  CHECK_FALSE(ValidateAdmitNode(request).ok());  // both
  request.clear_serial();
  CHECK_FALSE(ValidateAdmitNode(request).ok());  // without the hash of the request
  request.set_request_hash(std::string(32, 'r'));
  CHECK(ValidateAdmitNode(request).ok());
  request.set_node("N1");
  CHECK_FALSE(ValidateAdmitNode(request).ok());
}

}  // namespace
}  // namespace berth
