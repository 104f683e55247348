// Who a client is, by its certificate and the configuration.
#include "server/access/caller.h"

#include <catch2/catch.hpp>

#include "support/pki/certificate.h"

namespace berth {
namespace {

using config::v1::CertificateRule;
using Groups = std::vector<std::string>;

config::v1::Access Default() {
  config::v1::Access access;
  access.set_trust_domain(kDefaultTrustDomain);
  return access;
}

CertificateRule& AddRule(config::v1::Access& access, CertificateRule::Field field) {
  CertificateRule* rule = access.add_certificates();
  rule->set_field(field);
  return *rule;
}

CertificateNames Named(const std::string& common_name) {
  CertificateNames names;
  names.common_name = common_name;
  names.serial = "1f";
  return names;
}

void CheckUnknown(const Caller& caller, const std::string& why) {
  CHECK(caller.principal.name.empty());
  CHECK(caller.principal.groups.empty());
  CHECK(caller.why_unknown == why);
  CHECK(TextOf(caller) == why);
}

TEST_CASE("caller: without TLS it is nobody, or who the configuration says") {
  config::v1::Access access = Default();
  CheckUnknown(CallerWithoutTls(access), "a client without TLS");
  access.mutable_without_tls()->set_user("ada");
  for (const char* group : {"ops", "ml", "ops"}) access.mutable_without_tls()->add_groups(group);
  const Caller caller = CallerWithoutTls(access);
  CHECK(caller.principal == Principal{Principal::Kind::kUser, "ada", {"ml", "ops"}});
  CHECK_FALSE(caller.tls);
  CHECK(TextOf(caller) == "\"ada\"");
}

TEST_CASE("caller: by default the common name is the user") {
  const Caller caller = CallerFrom(Default(), Named("ada"), false);
  CHECK(caller.principal == Principal{Principal::Kind::kUser, "ada", {}});
  CHECK(caller.tls);
  CHECK(caller.common_name == "ada");
  CHECK(caller.serial == "1f");
  CheckUnknown(CallerFrom(Default(), Named(""), false), "a certificate without one common name");
  CheckUnknown(CallerFrom(Default(), Named("a\"b"), false),
               "a certificate with a name that cannot be shown");
  CheckUnknown(CallerFrom(Default(), Named("a\nb"), false),
               "a certificate with a name that cannot be shown");
}

TEST_CASE("caller: an identity of the trust domain goes before everything else") {
  config::v1::Access access = Default();
  AddRule(access, CertificateRule::COMMON_NAME);
  CertificateNames names = Named("somebody");
  names.uris = {"https://example.org", "spiffe://berth/user/ada%40corp"};
  names.groups = {"ml", "a\"b", "ml", "domain users"};
  CHECK(CallerFrom(access, names, false).principal ==
        Principal{Principal::Kind::kUser, "ada@corp", {"domain users", "ml"}});

  names.uris = {"spiffe://berth/node/n1"};
  const Caller node = CallerFrom(access, names, false);
  CHECK(node.principal == Principal{Principal::Kind::kNode, "n1", {}});
  CHECK(TextOf(node) == "node \"n1\"");

  names.uris = {"spiffe://berth/node/n1", "spiffe://berth/user/ada"};
  CheckUnknown(CallerFrom(access, names, false), "a certificate with several identities");
}

TEST_CASE("caller: an agent speaks for the node of its identity, and users for none") {
  CertificateNames names = Named("agent");
  CHECK(MayBeAgentOf(CallerFrom(Default(), names, false), "n1", false).ok());
  CHECK(MayBeAgentOf(CallerWithoutTls(Default()), "n1", false).ok());
  names.uris = {"spiffe://berth/node/n1"};
  CHECK(MayBeAgentOf(CallerFrom(Default(), names, false), "n1", false).ok());
  const absl::Status other = MayBeAgentOf(CallerFrom(Default(), names, false), "n2", false);
  CHECK(absl::IsPermissionDenied(other));
  CHECK(other.message() == "the certificate is that of node \"n1\", and not of node \"n2\"");
  names.uris = {"spiffe://berth/user/n1"};
  CHECK(MayBeAgentOf(CallerFrom(Default(), names, false), "n1", false).message() ==
        "the certificate is that of user \"n1\", and not of node \"n1\"");
}

TEST_CASE("caller: identities of other trust domains are nobody's here") {
  CertificateNames names = Named("ada");
  for (const char* uri : {"spiffe://prod/user/ada", "spiffe://prod/node/n1"}) {
    names.uris = {uri};
    names.groups = {"admins"};
    const Caller caller = CallerFrom(Default(), names, false);
    CheckUnknown(caller, "a certificate of trust domain \"prod\"");
    CHECK(MayBeAgentOf(caller, "n1", false).message() ==
          "a certificate of trust domain \"prod\" is none of an agent");
  }
}

TEST_CASE("caller: groups without an identity, and URIs of other forms, say nothing") {
  CertificateNames names = Named("ada");
  names.uris = {"spiffe://cluster.local/ns/default/sa/ada", "https://example.org/user/root"};
  names.groups = {"admins"};
  CHECK(CallerFrom(Default(), names, false).principal ==
        Principal{Principal::Kind::kUser, "ada", {}});
}

TEST_CASE("caller: the first rule whose field the certificate has decides") {
  config::v1::Access access = Default();
  CertificateRule& mail = AddRule(access, CertificateRule::EMAIL);
  mail.set_suffix("@corp.example");
  mail.add_groups("staff");
  mail.set_groups_from_units(true);
  CertificateRule& robot = AddRule(access, CertificateRule::COMMON_NAME);
  robot.set_prefix("robot-");
  robot.add_groups("robots");

  CertificateNames ada = Named("robot-1");
  ada.emails = {"ada@corp.example"};
  ada.organizational_units = {"ml", "staff"};
  CHECK(CallerFrom(access, ada, false).principal ==
        Principal{Principal::Kind::kUser, "ada", {"ml", "staff"}});
  CHECK(CallerFrom(access, Named("robot-1"), false).principal ==
        Principal{Principal::Kind::kUser, "1", {"robots"}});

  const std::string nobody = "a certificate that no entry of access.certificates fits";
  CheckUnknown(CallerFrom(access, Named("ada"), false), nobody);
  CheckUnknown(CallerFrom(access, Named("robot-"), false), nobody);
  CertificateNames elsewhere = Named("");
  elsewhere.emails = {"ada@corp.example.org"};
  CheckUnknown(CallerFrom(access, elsewhere, false), nobody);
  elsewhere.emails = {"ada@corp.example", "root@corp.example"};
  CheckUnknown(CallerFrom(access, elsewhere, false), nobody);
}

TEST_CASE("caller: hosts and URIs") {
  config::v1::Access access = Default();
  AddRule(access, CertificateRule::HOST).set_suffix(".people.example");
  AddRule(access, CertificateRule::URI).set_prefix("urn:user:");
  CertificateNames names = Named("");
  names.hosts = {"ada.people.example"};
  CHECK(CallerFrom(access, names, false).principal.name == "ada");
  names.hosts.clear();
  names.uris = {"urn:user:bob"};
  CHECK(CallerFrom(access, names, false).principal.name == "bob");
}

TEST_CASE("caller: the authority of users makes users, and nothing else") {
  config::v1::Access access = Default();
  AddRule(access, CertificateRule::COMMON_NAME);
  CertificateNames names = Named("agent");
  const Caller bare = CallerFrom(access, names, true);
  CheckUnknown(bare, "a certificate of the users' authority without the identity of a user");
  CHECK(bare.common_name.empty());  // no rule of runAs fits it
  CHECK(MayBeAgentOf(bare, "n1", false).message() ==
        "a certificate of the users' authority without the identity of a user is none of an agent");

  names.uris = {"spiffe://berth/node/n1"};
  const Caller node = CallerFrom(access, names, true);
  CheckUnknown(node, "a certificate of the users' authority with the identity of a node");
  CHECK(node.principal.kind == Principal::Kind::kUser);
  CHECK(absl::IsPermissionDenied(MayBeAgentOf(node, "n1", false)));

  names.uris = {"spiffe://berth/user/ada"};
  CHECK(CallerFrom(access, names, true).principal.name == "ada");
  CHECK(absl::IsPermissionDenied(MayBeAgentOf(CallerFrom(access, names, true), "n1", false)));
}

TEST_CASE("caller: the authority of nodes makes nodes, and nothing else") {
  config::v1::Access access = Default();
  access.mutable_administrators()->add_users("ada");
  CertificateNames names = Named("agent");
  const Caller bare = CallerFrom(access, names, false, true);
  CheckUnknown(bare, "a certificate of the nodes' authority without the identity of a node");
  CHECK(bare.common_name.empty());
  CHECK(absl::IsPermissionDenied(MayBeAgentOf(bare, "n1", false)));

  names.uris = {"spiffe://berth/user/ada"};
  const Caller user = CallerFrom(access, names, false, true);
  CheckUnknown(user, "a certificate of the nodes' authority with the identity of a user");
  CHECK_FALSE(user.administrator);
  CHECK(absl::IsPermissionDenied(MayBeAgentOf(user, "n1", false)));

  names.uris = {"spiffe://berth/node/n1"};
  const Caller node = CallerFrom(access, names, false, true);
  CHECK(MayBeAgentOf(node, "n1", true).ok());
  CHECK(absl::IsPermissionDenied(MayBeAgentOf(node, "n2", true)));
  // An authority of both makes neither.
  CHECK(CallerFrom(access, names, true, true).principal.name.empty());
  names.uris = {"spiffe://berth/user/ada"};
  CHECK(CallerFrom(access, names, true, true).principal.name.empty());
}

TEST_CASE("caller: with nodeIdentities an agent needs the identity of its node") {
  CertificateNames names = Named("agent");
  CHECK(MayBeAgentOf(CallerFrom(Default(), names, false), "n1", true).message() ==
        "agents need the identity of their node in the certificate (access.nodeIdentities), here "
        "that of \"n1\"");
  names.uris = {"spiffe://berth/node/n1"};
  CHECK(MayBeAgentOf(CallerFrom(Default(), names, false), "n1", true).ok());
}

TEST_CASE("caller: administrators are named whole, as users or by a group") {
  config::v1::Access access = Default();
  access.mutable_administrators()->add_users("root");
  access.mutable_administrators()->add_groups("wheel");
  const auto is_one = [&](const std::string& user, const Groups& groups) {
    CertificateNames names = Named("x");
    names.uris = {ToUri({"berth", SpiffeId::Kind::kUser, user})};
    names.groups = groups;
    return CallerFrom(access, names, false).administrator;
  };
  CHECK(is_one("root", {}));
  CHECK(is_one("ada", {"ml", "wheel"}));
  CHECK_FALSE(is_one("roo", {}));
  CHECK_FALSE(is_one("root2", {"wheels"}));
  CertificateNames node = Named("root");
  node.uris = {"spiffe://berth/node/root"};
  CHECK_FALSE(CallerFrom(access, node, false).administrator);
  access.mutable_without_tls()->set_user("root");
  CHECK(CallerWithoutTls(access).administrator);
}

TEST_CASE("caller: as an actor, with the kind of proof") {
  Caller caller{.principal = {.kind = Principal::Kind::kNode, .name = "n1"},
                .by_identity = true,
                .tls = true,
                .serial = "0a1b"};
  const Actor node = ActorOf(caller, "10.0.0.7:41234");
  CHECK(node == Actor{.kind = Principal::Kind::kNode,
                      .name = "n1",
                      .door = Door::kIdentity,
                      .serial = "0a1b",
                      .address = "10.0.0.7:41234"});
  caller.by_identity = false;
  CHECK(ActorOf(caller, "").door == Door::kCertificate);
  caller.principal.name.clear();
  CHECK(ActorOf(caller, "").door == Door::kUnknown);
  caller.tls = false;
  CHECK(ActorOf(caller, "").door == Door::kWithoutTls);
}

}  // namespace
}  // namespace berth
