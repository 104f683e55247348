// Certificates with identities: what Berth issues and reads, against the openssl command.
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "support/pki/authority.h"
#include "support/pki/certificate.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const absl::Time kNow = absl::Now();
const SpiffeId kAda{"prod.example", SpiffeId::Kind::kUser, "ada"};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The openssl command in a directory of its own. Its output; checks that it succeeded.
class OpenSsl {
 public:
  std::string operator()(const std::string& arguments) {
    const std::string out = directory_ / "out";
    const std::string command = absl::StrCat("cd ", directory_ / "", " && openssl ", arguments,
                                             " >", out, " 2>&1 </dev/null");
    const int result = std::system(command.c_str());
    std::string text = ReadAll(out);
    INFO(command << "\n" << text);
    CHECK(result == 0);
    return text;
  }
  std::string Read(const std::string& name) const { return ReadAll(directory_ / name); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  // ca.pem and ca.key.
  void MakeAuthority(const std::string& key = kNewKey, const std::string& options = kSigns) {
    (*this)(
        absl::StrCat(key, " -x509 -days 30 -keyout ca.key -out ca.pem -subj /CN=berth ", options));
  }
  Authority Open() const {
    absl::StatusOr<Authority> authority = Authority::Open(Read("ca.pem"), Read("ca.key"), kNow);
    INFO(authority.status().ToString());
    REQUIRE(authority.ok());
    return *std::move(authority);
  }
  // A certificate with these lines of OpenSSL's configuration as extensions.
  std::string Certificate(const std::string& subject, const std::string& extensions) {
    (*this)(absl::StrCat(kNewKey, " -keyout x.key -out x.csr -subj '", subject, "'"));
    Write("x.ext", extensions);
    (*this)(
        "x509 -req -in x.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out x.pem "
        "-extfile x.ext");
    return Read("x.pem");
  }

  static constexpr char kSigns[] = "-addext keyUsage=critical,keyCertSign,cRLSign";
  static constexpr char kNewKey[] = "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

 private:
  TempDirectory directory_;
};

absl::StatusOr<std::string> Issue(const Authority& authority, const std::string& request,
                                  const SpiffeId& id = kAda,
                                  const std::vector<std::string>& groups = {}) {
  return authority.Issue(request, id, groups, kCertificateLifetime, kNow);
}

std::string NewRequest() {
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  REQUIRE(made.ok());
  return made->request;
}

TEST_CASE(
    "pki: a certificate carries the name and the groups that were ordered, and openssl accepts "
    "it") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  const absl::StatusOr<CertificateRequest> made = MakeCertificateRequest();
  REQUIRE(made.ok());
  const auto pem = Issue(authority, made->request, kAda, {"ml", "domain users"});
  REQUIRE(pem.ok());

  openssl.Write("ada.pem", *pem);
  openssl.Write("ada.key", made->key);
  CHECK_THAT(openssl("verify -purpose sslclient -x509_strict -CAfile ca.pem ada.pem"),
             Contains("ada.pem: OK"));
  const std::string text = openssl("x509 -noout -text -in ada.pem");
  CHECK_THAT(text, Contains("URI:spiffe://prod.example/user/ada") &&
                       Contains("Subject: CN = ada") && Contains("TLS Web Client Authentication") &&
                       Contains("CA:FALSE"));
  CHECK_THAT(openssl("pkey -pubout -in ada.key"), Contains("PUBLIC KEY"));
  CHECK(openssl("pkey -pubout -in ada.key") == openssl("x509 -pubkey -noout -in ada.pem"));

  const auto names = ReadCertificateNames(*pem);
  REQUIRE(names.ok());
  CHECK(names->common_name == "ada");
  CHECK(names->uris == std::vector<std::string>{"spiffe://prod.example/user/ada"});
  CHECK(names->groups == std::vector<std::string>{"ml", "domain users"});
  CHECK(ParseSpiffeId(names->uris[0]).value() == kAda);
  CHECK(names->serial.size() == 32);
  CHECK_THAT(openssl("x509 -noout -serial -in ada.pem"),
             Catch::Matchers::Contains(names->serial, Catch::CaseSensitive::No));
  CHECK(absl::AbsDuration(names->not_after - kNow - kCertificateLifetime) <= absl::Seconds(1));
  CHECK(absl::AbsDuration(kNow - kClockSkew - names->not_before) <= absl::Seconds(1));
}

TEST_CASE("pki: two certificates of one request have different serial numbers") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  const std::string request = NewRequest();
  CHECK(ReadCertificateNames(*Issue(authority, request))->serial !=
        ReadCertificateNames(*Issue(authority, request))->serial);
}

TEST_CASE("pki: nothing of a request counts but its key") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  openssl(absl::StrCat(OpenSsl::kNewKey,
                       " -keyout eve.key -out eve.csr -subj /CN=root/OU=admins -addext "
                       "subjectAltName=URI:spiffe://prod.example/user/root -addext "
                       "basicConstraints=critical,CA:TRUE"));
  const auto pem = Issue(openssl.Open(), openssl.Read("eve.csr"));
  REQUIRE(pem.ok());
  const auto names = ReadCertificateNames(*pem);
  REQUIRE(names.ok());
  CHECK(names->common_name == "ada");
  CHECK(names->organizational_units.empty());
  CHECK(names->uris == std::vector<std::string>{"spiffe://prod.example/user/ada"});
  openssl.Write("eve.pem", *pem);
  CHECK_THAT(openssl("x509 -noout -text -in eve.pem"), !Contains("CA:TRUE"));
}

TEST_CASE("pki: requests without proof of the key, and weak keys, are refused") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  // The signature of one over the content of another.
  openssl(absl::StrCat(OpenSsl::kNewKey, " -keyout a.key -out a.der -outform DER -subj /CN=a"));
  std::string der = openssl.Read("a.der");
  der.back() = static_cast<char>(der.back() ^ 1);
  openssl.Write("b.der", der);
  openssl("req -inform DER -in b.der -out b.csr");
  CHECK_THAT(std::string(Issue(authority, openssl.Read("b.csr")).status().message()),
             Contains("not signed with its own key"));
  openssl("req -newkey rsa:1024 -nodes -keyout w.key -out w.csr -subj /CN=w");
  CHECK(Issue(authority, openssl.Read("w.csr")).status().message() ==
        "an RSA key needs at least 2048 bits");
  openssl(
      "req -newkey ec -pkeyopt ec_paramgen_curve:secp224r1 -nodes -keyout w.key -out w.csr -subj "
      "/CN=w");
  CHECK(Issue(authority, openssl.Read("w.csr")).status().message() ==
        "a key on a curve needs P-256, P-384 or Ed25519, by name");
  // P-256, spelled out: OpenSSL verifies no certificate with such a key.
  openssl(
      "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit -nodes "
      "-keyout e.key -out e.csr -subj /CN=e");
  CHECK(Issue(authority, openssl.Read("e.csr")).status().message() ==
        "a key on a curve needs P-256, P-384 or Ed25519, by name");
  CHECK_THAT(std::string(Issue(authority, "nonsense").status().message()),
             Contains("not a request for a certificate"));
  CHECK(Issue(authority, std::string(kMaxRequestBytes + 1, 'a')).status().message() ==
        "the request for a certificate is too large");
}

TEST_CASE("pki: keys of other kinds get certificates") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  for (const char* key : {"rsa:2048", "ed25519", "ec -pkeyopt ec_paramgen_curve:P-384"}) {
    INFO(key);
    openssl(absl::StrCat("req -newkey ", key, " -nodes -keyout k.key -out k.csr -subj /CN=k"));
    const auto pem = Issue(authority, openssl.Read("k.csr"));
    REQUIRE(pem.ok());
    openssl.Write("k.pem", *pem);
    CHECK_THAT(openssl("verify -CAfile ca.pem k.pem"), Contains("k.pem: OK"));
  }
}

TEST_CASE("pki: authorities with other keys, and without a key identifier") {
  const std::pair<std::string, std::string> authorities[] = {
      {"req -newkey rsa:2048 -nodes", OpenSsl::kSigns},
      {"req -newkey ed25519 -nodes", OpenSsl::kSigns},
      {OpenSsl::kNewKey, "-addext subjectKeyIdentifier=none"}};
  for (const auto& [key, options] : authorities) {
    INFO(key << " " << options);
    OpenSsl openssl;
    openssl.MakeAuthority(key, options);
    const auto pem = Issue(openssl.Open(), NewRequest());
    REQUIRE(pem.ok());
    openssl.Write("a.pem", *pem);
    CHECK_THAT(openssl("verify -CAfile ca.pem a.pem"), Contains("a.pem: OK"));
  }
}

TEST_CASE("pki: certificates end with their authority") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  const absl::Time last = ReadCertificateNames(openssl.Read("ca.pem"))->not_after;
  const auto pem = authority.Issue(NewRequest(), kAda, {}, absl::Hours(24) * 365, kNow);
  REQUIRE(pem.ok());
  CHECK(ReadCertificateNames(*pem)->not_after == last);
  CHECK(absl::IsFailedPrecondition(
      authority.Issue(NewRequest(), kAda, {}, absl::Hours(1), last).status()));
}

TEST_CASE("pki: an authority of Berth's own signs certificates that openssl accepts") {
  const auto made = MakeAuthority("prod", absl::Hours(24) * 3650, kNow);
  REQUIRE(made.ok());
  OpenSsl openssl;
  openssl.Write("ca.pem", made->certificate);
  openssl.Write("ca.key", made->key);
  const auto pem = Issue(openssl.Open(), NewRequest());
  REQUIRE(pem.ok());
  openssl.Write("a.pem", *pem);
  CHECK_THAT(openssl("verify -purpose sslclient -x509_strict -CAfile ca.pem a.pem"),
             Contains("a.pem: OK"));
  CHECK_THAT(openssl("x509 -noout -text -in ca.pem"), Contains("CA:TRUE, pathlen:0"));
  CHECK_FALSE(MakeAuthority("", absl::Hours(1), kNow).ok());
  CHECK_FALSE(MakeAuthority(std::string(65, 'a'), absl::Hours(1), kNow).ok());
}

TEST_CASE("pki: what is no authority is refused") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const std::string ca = openssl.Read("ca.pem"), key = openssl.Read("ca.key");
  const auto refusal = [](const std::string& certificate, const std::string& private_key,
                          absl::Time now = kNow) {
    return std::string(Authority::Open(certificate, private_key, now).status().message());
  };
  CHECK(refusal(ca, key).empty());
  CHECK_THAT(refusal("nonsense", key), Contains("not a certificate"));
  CHECK_THAT(refusal(ca, "nonsense"), Contains("not a private key"));
  CHECK_THAT(refusal(ca, key, kNow + absl::Hours(24 * 31)), Contains("has expired"));
  CHECK_THAT(refusal(ca, MakeCertificateRequest()->key), Contains("not the key"));
  const std::string user = openssl.Certificate("/CN=ada", "");
  CHECK_THAT(refusal(user, openssl.Read("x.key")), Contains("may not sign others"));
  openssl(absl::StrCat("pkcs8 -topk8 -in ca.key -out locked.key -passout pass:secret"));
  CHECK_THAT(refusal(ca, openssl.Read("locked.key")), Contains("with a password"));
}

TEST_CASE("pki: names of a site's own certificates") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const auto names = ReadCertificateNames(
      openssl.Certificate("/O=Example/OU=ml/OU=staff/CN=Ada L",
                          "subjectAltName=email:ada@corp.example,DNS:laptop.corp.example,URI:urn:"
                          "uuid:1,URI:spiffe://a/user/b"));
  REQUIRE(names.ok());
  CHECK(names->common_name == "Ada L");
  CHECK(names->organizational_units == std::vector<std::string>{"ml", "staff"});
  CHECK(names->emails == std::vector<std::string>{"ada@corp.example"});
  CHECK(names->hosts == std::vector<std::string>{"laptop.corp.example"});
  CHECK(names->uris == std::vector<std::string>{"urn:uuid:1", "spiffe://a/user/b"});
  CHECK(names->groups.empty());
  CHECK(ReadCertificateNames(openssl.Certificate("/CN=a/CN=b", ""))->common_name.empty());
  CHECK(ReadCertificateNames(openssl.Certificate("/O=x", ""))->common_name.empty());
}

TEST_CASE("pki: a certificate with names that cannot be compared identifies nobody") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const auto refusal = [&](const std::string& extensions) {
    const auto names = ReadCertificateNames(openssl.Certificate("/CN=a", extensions));
    CHECK(absl::IsInvalidArgument(names.status()));
    return std::string(names.status().message());
  };
  const std::string groups = absl::StrCat(kGroupsOid, "=");
  CHECK_THAT(refusal(groups + "DER:04:00"), Contains("list of groups"));
  CHECK_THAT(refusal(groups + "DER:30:02:02:00"), Contains("list of groups"));  // an INTEGER
  CHECK_THAT(refusal(groups + "DER:30:03:0c:01:61:00"),
             Contains("list of groups"));  // more after it
  CHECK_THAT(refusal(groups + "DER:30:02:0c:00"), Contains("empty name"));
  CHECK_THAT(refusal(groups + "DER:30:03:0c:01:00"), Contains("contains NUL"));
  CHECK_THAT(refusal(groups + "DER:30:03:0c:01:ff"), Contains("list of groups"));
  CHECK_THAT(
      refusal(absl::StrCat("subjectAltName=URI:spiffe://a/user/", std::string(kMaxUriBytes, 'b'))),
      Contains("too long"));
  CHECK_FALSE(ReadCertificateNames("").ok());
  CHECK_FALSE(ReadCertificateNames(std::string(kMaxCertificateBytes + 1, 'a')).ok());
}

TEST_CASE("pki: names that no certificate can carry are not issued") {
  OpenSsl openssl;
  openssl.MakeAuthority();
  const Authority authority = openssl.Open();
  const std::string request = NewRequest();
  const auto refused = [&](SpiffeId id, const std::vector<std::string>& groups = {}) {
    return absl::IsInvalidArgument(Issue(authority, request, id, groups).status());
  };
  using Kind = SpiffeId::Kind;
  CHECK(refused({"prod", Kind::kUser, ""}));
  CHECK(refused({"", Kind::kUser, "ada"}));
  CHECK(refused({"Prod", Kind::kUser, "ada"}));
  CHECK(refused({"a/b", Kind::kUser, "ada"}));
  CHECK(refused({"prod", Kind::kUser, "\xff"}));
  CHECK(refused({"prod", Kind::kUser, std::string("a\0b", 3)}));
  CHECK(refused({"prod", Kind::kUser, std::string(254, 'a')}));
  CHECK(refused(kAda, {""}));
  CHECK(refused(kAda, {"\xff"}));
  CHECK(refused(kAda, std::vector<std::string>(kMaxCertificateGroups + 1, "g")));
  CHECK_FALSE(refused(kAda, std::vector<std::string>(kMaxCertificateGroups, "g")));
  CHECK(Issue(authority, request, kAda,
              std::vector<std::string>(kMaxCertificateGroups, std::string(kMaxNameBytes, 'g')))
            .status()
            .message() == "these groups do not fit into a certificate: too many bytes");
  // As long as a name may be, of characters that are encoded.
  const SpiffeId longest{"prod", Kind::kUser, std::string(kMaxNameBytes, '@')};
  CHECK(ParseSpiffeId(ReadCertificateNames(Issue(authority, request, longest).value())->uris.at(0))
            .value() == longest);
  // Longer than a common name may be.
  const std::string host = absl::StrCat(std::string(63, 'n'), ".", std::string(63, 'n'));
  const auto pem = Issue(authority, request, {"prod", Kind::kNode, host});
  REQUIRE(pem.ok());
  openssl.Write("node.pem", *pem);
  CHECK_THAT(openssl("verify -x509_strict -CAfile ca.pem node.pem"), Contains("node.pem: OK"));
  CHECK(ReadCertificateNames(*pem)->common_name.empty());
  CHECK(ParseSpiffeId(ReadCertificateNames(*pem)->uris[0])->name == host);
}

TEST_CASE("pki: names that a certificate can carry") {
  CHECK(CanBeInCertificate("domain users"));
  CHECK(CanBeInCertificate(std::string(kMaxNameBytes, 'a')));
  CHECK_FALSE(CanBeInCertificate(""));
  CHECK_FALSE(CanBeInCertificate("gr\xfcppe"));
  CHECK_FALSE(CanBeInCertificate(std::string("a\0b", 3)));
  CHECK_FALSE(CanBeInCertificate(std::string(kMaxNameBytes + 1, 'a')));
}

TEST_CASE("pki: an identity has one form") {
  for (const char* name :
       {"ada", "ada@corp.example", "a b", "a/b", "\xc3\xa9t\xc3\xa9", "100%", "n1.rack-2_x~"}) {
    const SpiffeId id{"prod", SpiffeId::Kind::kNode, name};
    INFO(ToUri(id));
    REQUIRE(ParseSpiffeId(ToUri(id)).ok());
    CHECK(ParseSpiffeId(ToUri(id)).value() == id);
  }
  CHECK(ToUri({"prod", SpiffeId::Kind::kUser, "a/b@c"}) == "spiffe://prod/user/a%2fb%40c");
  for (const char* other : {"",
                            "spiffe://",
                            "spiffe://prod/user",
                            "spiffe://prod/user/",
                            "spiffe://prod/user/a/b",
                            "spiffe://prod/user/a%2Fb",
                            "spiffe://prod/user/%61da",
                            "spiffe://prod/user/a%2",
                            "spiffe://prod/user/%zz",
                            "spiffe://prod/user/%00",
                            "spiffe://prod/user/%ff",
                            "spiffe://prod/group/ada",
                            "spiffe://prod/User/ada",
                            "SPIFFE://prod/user/ada",
                            "spiffe://Prod/user/ada",
                            "spiffe:///user/ada",
                            "spiffe://prod:1/user/ada",
                            "spiffe://prod/user/ada?x",
                            "spiffe://prod/user/ada#x",
                            "spiffe://prod/user/a b",
                            "https://prod/user/ada"}) {
    INFO(other);
    CHECK_FALSE(ParseSpiffeId(other).ok());
  }
}

TEST_CASE("authority: a given serial number") {
  const NewAuthority made = MakeAuthority("a", absl::Hours(1), kNow).value();
  const Authority authority = Authority::Open(made.certificate, made.key, kNow).value();
  const auto serial_of = [&](const std::string& serial) -> absl::StatusOr<std::string> {
    const auto pem = authority.Issue(NewRequest(), kAda, {}, absl::Minutes(5), kNow, serial);
    if (!pem.ok()) return pem.status();
    return ReadCertificateNames(*pem)->serial;
  };
  CHECK(serial_of("5f3a").value() == "5f3a");
  CHECK(serial_of("1").value() == "1");
  CHECK(serial_of(std::string(40, '7')).value() == std::string(40, '7'));
  for (const std::string& bad : {std::string("0"), std::string("xyz"), std::string("5f 3a"),
                                 std::string("-5"), std::string(41, '7')}) {
    CHECK(absl::IsInvalidArgument(serial_of(bad).status()));
  }
}

}  // namespace
}  // namespace berth
