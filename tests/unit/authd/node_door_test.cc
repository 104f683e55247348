// Certificates for nodes: what berth-authd asks berthd, and what it gives out.
#include "clients/authd/node_door.h"

#include <google/protobuf/util/json_util.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "clients/authd/authd_config.h"
#include "support/log.h"
#include "support/pki/authority.h"
#include "support/pki/join_token.h"
#include "support/proto_time.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const bool kSilent = StartLog("error", "").ok();

std::string JsonText(const google::protobuf::Message& message) {
  std::string json;
  REQUIRE(google::protobuf::util::MessageToJsonString(message, &json).ok());
  return json;
}

auth::v1::CertificateAnswer AnswerIn(const oidc::HttpsReply& reply) {
  auth::v1::CertificateAnswer answer;
  REQUIRE(google::protobuf::util::JsonStringToMessage(reply.body, &answer).ok());
  return answer;
}

class Nodes {
 public:
  Nodes()
      : made_(MakeAuthority("nodes", absl::Hours(240), absl::Now()).value()),
        authority_(Authority::Open(made_.certificate, made_.key, absl::Now()).value()) {
    std::ofstream(directory_ / "ca.pem") << made_.certificate;
    std::ofstream(directory_ / "ca.key") << made_.key;
    auth::v1::Authd config;
    config.set_listen(kNoSocket);
    config.set_servers(directory_ / "ca.pem");
    config.set_trust_domain("prod");
    auth::v1::Nodes& nodes = *config.mutable_nodes();
    nodes.set_authority(directory_ / "ca.pem");
    nodes.set_authority_key(directory_ / "ca.key");
    certifier_ = std::make_unique<NodeCertifier>(
        absl::Hours(24), CertificateIssuer::OpenForNodes(config).value(),
        [this](const v1::AdmitNodeRequest& request) {
          asked_.push_back(request);
          return verdict_;
        },
        SystemClock());
  }

  oidc::HttpsReply Order(const std::string& node, const std::string& token,
                         const std::string& certificate = "") {
    auth::v1::NodeOrder order;
    order.set_node(node);
    order.set_token(token);
    order.set_request(request_);
    return certifier_->Answer({JsonText(order), "peer", certificate});
  }
  void MustRefuse(const oidc::HttpsReply& reply, int code, const std::string& why) {
    CHECK(reply.code == code);
    CHECK_THAT(AnswerIn(reply).error(), Contains(why));
    CHECK(AnswerIn(reply).certificate().empty());
    CHECK(AnswerIn(reply).retry() == (code == 503));
  }
  std::string CertificateOf(const SpiffeId& id, absl::Duration lifetime = absl::Hours(1),
                            absl::Time now = absl::Now()) {
    return authority_.Issue(request_, id, {}, lifetime, now).value();
  }

  std::string request_ = MakeCertificateRequest()->request;
  const std::string token_ = MakeJoinToken()->text;
  absl::Status verdict_;
  std::vector<v1::AdmitNodeRequest> asked_;

 private:
  TempDirectory directory_;
  const NewAuthority made_;
  const Authority authority_;
  std::unique_ptr<NodeCertifier> certifier_;
};

const SpiffeId kNodeOne = {"prod", SpiffeId::Kind::kNode, "n1"};

TEST_CASE("node door: a token gives a certificate of the node, once berthd admits it") {
  Nodes nodes;
  const oidc::HttpsReply reply = nodes.Order("n1", nodes.token_);
  REQUIRE(reply.code == 200);
  const CertificateNames names = ReadCertificateNames(AnswerIn(reply).certificate()).value();
  REQUIRE(names.uris.size() == 1);
  CHECK(ParseSpiffeId(names.uris[0]).value() == kNodeOne);
  CHECK(names.groups.empty());
  CHECK(names.not_after - absl::Now() > absl::Hours(23));
  CHECK_FALSE(AnswerIn(reply).servers().empty());
  REQUIRE(nodes.asked_.size() == 1);
  CHECK(nodes.asked_[0].node() == "n1");
  CHECK(nodes.asked_[0].token() == nodes.token_);
  CHECK(nodes.asked_[0].request_hash() == Sha256(nodes.request_));
  CHECK(nodes.asked_[0].serial().empty());
}

TEST_CASE("node door: what berthd refuses is refused, and what it does not answer is tried again") {
  Nodes nodes;
  nodes.verdict_ = absl::PermissionDeniedError("join token 12 is used up");
  nodes.MustRefuse(nodes.Order("n1", nodes.token_), 403, "is used up");
  nodes.verdict_ = absl::UnavailableError("no connection");
  nodes.MustRefuse(nodes.Order("n1", nodes.token_), 503, "no connection");
}

TEST_CASE("node door: berthd is not asked about what gets no certificate anyway") {
  Nodes nodes;
  nodes.MustRefuse(nodes.Order("n1", ""), 403, "needs a join token");
  nodes.MustRefuse(nodes.Order("n1", "hello"), 403, "not a join token");
  nodes.MustRefuse(nodes.Order("N1", nodes.token_), 400, "no name of a node");
  nodes.MustRefuse(nodes.Order("", nodes.token_), 400, "no name of a node");
  CHECK(nodes.asked_.empty());
}

TEST_CASE("node door: a broken request takes no use of the token") {
  Nodes nodes;
  nodes.request_ = "not a request";
  nodes.MustRefuse(nodes.Order("n1", nodes.token_), 400, "not a request for a certificate");
  CHECK(nodes.asked_.empty());
}

TEST_CASE("node door: a node renews with its certificate, and no other one") {
  Nodes nodes;
  const std::string own = nodes.CertificateOf(kNodeOne);
  CHECK(nodes.Order("n1", "", own).code == 200);
  REQUIRE(nodes.asked_.size() == 1);
  CHECK(nodes.asked_[0].token().empty());
  CHECK(nodes.asked_[0].serial() == ReadCertificateNames(own)->serial);
  nodes.MustRefuse(nodes.Order("n2", "", own), 403, "is that of node \"n1\"");
  nodes.MustRefuse(
      nodes.Order("n1", "", nodes.CertificateOf({"prod", SpiffeId::Kind::kUser, "n1"})), 403,
      "none of a node here");
  nodes.MustRefuse(
      nodes.Order("n1", "", nodes.CertificateOf({"test", SpiffeId::Kind::kNode, "n1"})), 403,
      "none of a node here");
  CHECK(nodes.asked_.size() == 1);
}

TEST_CASE("node door: certificates that expired, or are of another authority, renew nothing") {
  Nodes nodes, others;
  const std::string old =
      nodes.CertificateOf(kNodeOne, absl::Hours(1), absl::Now() - absl::Hours(2));
  nodes.MustRefuse(nodes.Order("n1", "", old), 403, "expired");
  const std::string foreign = others.CertificateOf(kNodeOne);
  nodes.MustRefuse(nodes.Order("n1", "", foreign), 403, "the certificate: ");
  nodes.MustRefuse(nodes.Order("n1", "", "no certificate"), 403, "no certificate");
  // The first one counts, whatever follows.
  nodes.MustRefuse(nodes.Order("n1", "", foreign + nodes.CertificateOf(kNodeOne)), 403,
                   "the certificate: ");
  CHECK(nodes.asked_.empty());
}

TEST_CASE("node door: with a token, a certificate does not count") {
  Nodes nodes;
  CHECK(nodes.Order("n2", nodes.token_, nodes.CertificateOf(kNodeOne)).code == 200);
  REQUIRE(nodes.asked_.size() == 1);
  CHECK(nodes.asked_[0].token() == nodes.token_);
}

auth::v1::Authd GoodConfig() {
  auth::v1::Authd config;
  config.set_listen(kNoSocket);
  config.set_servers("/ca.pem");
  auth::v1::Nodes& nodes = *config.mutable_nodes();
  nodes.set_listen("0.0.0.0:7081");
  nodes.set_certificate("/https.pem");
  nodes.set_key("/https.key");
  nodes.set_authority("/nodes.pem");
  nodes.set_authority_key("/nodes.key");
  nodes.set_server("berthd:7070");
  nodes.mutable_tls()->set_certificate("/authd.pem");
  nodes.mutable_tls()->set_key("/authd.key");
  nodes.mutable_tls()->set_ca("/ca.pem");
  return config;
}

TEST_CASE("node door: its configuration") {
  auth::v1::Authd good = GoodConfig();
  REQUIRE(CompleteAuthdConfig(&good).ok());  // without the authority of users
  CHECK(DurationFrom(good.nodes().lifetime()) == absl::Hours(24));
  const auto error = [](const std::function<void(auth::v1::Authd&)>& change) {
    auth::v1::Authd config = GoodConfig();
    change(config);
    return std::string(CompleteAuthdConfig(&config).message());
  };
  using Config = auth::v1::Authd;
  CHECK_THAT(error([](Config& c) { c.clear_servers(); }), Contains("servers: required"));
  CHECK_THAT(error([](Config& c) { c.mutable_nodes()->set_listen("unix:/a"); }),
             Contains("nodes.listen"));
  CHECK_THAT(error([](Config& c) { c.mutable_nodes()->set_authority("nodes.pem"); }),
             Contains("nodes.authority: must be the absolute path"));
  CHECK_THAT(error([](Config& c) { c.set_certificate("/nodes.pem"); }),
             Contains("must not be the authority of users"));
  CHECK_THAT(error([](Config& c) { c.mutable_nodes()->clear_server(); }), Contains("nodes.server"));
  CHECK_THAT(error([](Config& c) { c.mutable_nodes()->clear_tls(); }),
             Contains("nodes.tls: required unless berthd is on loopback"));
  CHECK_THAT(error([](Config& c) { c.mutable_nodes()->mutable_tls()->clear_key(); }),
             Contains("nodes.tls: must have"));
  CHECK_THAT(
      error([](Config& c) { ToProto(absl::Seconds(59), c.mutable_nodes()->mutable_lifetime()); }),
      Contains("nodes.lifetime: must be 1m..168h"));
  CHECK_THAT(error([](Config& c) { c.clear_nodes(); }), Contains("needs oidc or nodes"));
}

}  // namespace
}  // namespace berth
