// berth-authd and its client, over a real socket.
#include "clients/authd/authd.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "clients/authd/account.h"
#include "clients/authd/authd_config.h"
#include "clients/cpp/auth_socket.h"
#include "support/log.h"
#include "support/pki/auth_protocol.h"
#include "support/pki/certificate.h"
#include "support/proto_time.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const bool kQuiet = StartLog("error", "").ok();

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The status of a second daemon.
absl::Status OpenedAt(const auth::v1::Authd& config) {
  const auto issuer = CertificateIssuer::Open(config);
  return issuer.ok() ? AuthDaemon::Create(config, *issuer).status() : issuer.status();
}

// A daemon that serves the user of the test, even root.
class Site {
 public:
  Site() {
    const NewAuthority made = MakeAuthority("site", absl::Hours(240), absl::Now()).value();
    WriteText(directory_ / "ca.pem", made.certificate);
    WriteText(directory_ / "ca.key", made.key);
    config_.set_listen(directory_ / "auth.sock");
    config_.set_certificate(directory_ / "ca.pem");
    config_.set_key(directory_ / "ca.key");
    config_.set_first_uid(1);
    config_.set_allow_root(true);
  }
  ~Site() { Stop(); }

  auth::v1::Authd& config() { return config_; }
  void Start() {
    REQUIRE(CompleteAuthdConfig(&config_).ok());
    const auto issuer = CertificateIssuer::Open(config_);
    INFO(issuer.status().ToString());
    REQUIRE(issuer.ok());
    absl::StatusOr<std::unique_ptr<AuthDaemon>> daemon = AuthDaemon::Create(config_, *issuer);
    INFO(daemon.status().ToString());
    REQUIRE(daemon.ok());
    daemon_ = *std::move(daemon);
    thread_ = std::thread([this] { CHECK(daemon_->Run()); });
  }
  void Stop() {
    if (daemon_ == nullptr) return;
    daemon_->Stop();
    thread_.join();
    daemon_.reset();
  }
  std::string socket() const { return config_.listen(); }
  std::string kept() const { return directory_ / "kept"; }
  std::string operator/(const std::string& name) const { return directory_ / name; }

  absl::StatusOr<TlsFiles> Get(absl::Time now = absl::Now()) const {
    return CertificateFrom(socket(), kept(), now);
  }
  CertificateNames MustGet(absl::Time now = absl::Now()) const {
    const absl::StatusOr<TlsFiles> files = Get(now);
    INFO(files.status().ToString());
    REQUIRE(files.ok());
    return ReadCertificateNames(ReadText(files->certificate)).value();
  }
  // Sends these bytes, and returns the answer.
  auth::v1::CertificateAnswer Say(const std::string& packet) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) >= 0);
    std::vector<char> buffer(size_t{256} << 10);
    const ssize_t size = recv(fd, buffer.data(), buffer.size(), 0);
    close(fd);
    auth::v1::CertificateAnswer answer;
    REQUIRE(answer.ParseFromArray(buffer.data(), static_cast<int>(size)));
    return answer;
  }

 private:
  TempDirectory directory_;
  auth::v1::Authd config_;
  std::unique_ptr<AuthDaemon> daemon_;
  std::thread thread_;
};

TEST_CASE("authd: a user gets a certificate with the account's name and groups") {
  Site site;
  site.Start();
  const CertificateNames names = site.MustGet();
  const Account account = AccountOf(geteuid()).value();
  REQUIRE(names.uris.size() == 1);
  CHECK(ParseSpiffeId(names.uris[0]).value() ==
        SpiffeId{"berth", SpiffeId::Kind::kUser, account.name});
  CHECK(names.groups == account.groups);
  CHECK(absl::AbsDuration(names.not_after - absl::Now() - absl::Hours(12)) < absl::Minutes(1));
  const TlsFiles files = site.Get().value();
  CHECK(ReadText(files.ca) == ReadText(site / "ca.pem"));
  CHECK(MakeChannelCredentials(files).ok());
  for (const std::string& file : {files.certificate, files.ca, site.kept() + "/lock"}) {
    struct stat found {};
    REQUIRE(stat(file.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
}

TEST_CASE("authd: a certificate is used again until two thirds of its life are over") {
  Site site;
  site.Start();
  const absl::Time now = absl::Now();
  const std::string first = site.MustGet().serial;
  CHECK(site.MustGet(now + absl::Hours(7)).serial == first);
  const std::string second = site.MustGet(now + absl::Hours(9)).serial;
  CHECK(second != first);
  // Without the daemon, as long as it is valid.
  site.Stop();
  CHECK(site.MustGet(now + absl::Hours(11)).serial == second);
  const absl::Status gone = site.Get(now + absl::Hours(13)).status();
  CHECK(absl::IsUnavailable(gone));
  CHECK_THAT(std::string(gone.message()), Contains("berth-authd at " + site.socket()));
}

TEST_CASE("authd: several processes at once get one certificate") {
  Site site;
  site.Start();
  std::vector<std::thread> threads;
  std::array<std::string, 8> serials;
  for (std::string& serial : serials) {
    threads.emplace_back([&site, &serial] {
      const absl::StatusOr<TlsFiles> files = site.Get();
      if (files.ok()) serial = ReadCertificateNames(ReadText(files->certificate))->serial;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& serial : serials) CHECK(serial == site.MustGet().serial);
}

TEST_CASE("authd: a broken file of an earlier certificate is replaced") {
  Site site;
  site.Start();
  site.MustGet();
  WriteText(site.Get()->certificate, "nonsense");
  site.MustGet();
}

TEST_CASE("authd: a directory that others can use is refused") {
  Site site;
  site.Start();
  REQUIRE(mkdir(site.kept().c_str(), 0755) == 0);
  const absl::Status refused = site.Get().status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("only you can use"));
  REQUIRE(rmdir(site.kept().c_str()) == 0);
  REQUIRE(symlink("/tmp", site.kept().c_str()) == 0);
  CHECK(absl::IsFailedPrecondition(site.Get().status()));
}

TEST_CASE("authd: root and system users get none by default") {
  Site site;
  site.config().set_allow_root(false);
  site.config().set_first_uid(geteuid() + 1);
  site.Start();
  const absl::Status refused = site.Get().status();
  CHECK(absl::IsPermissionDenied(refused));
  CHECK_THAT(std::string(refused.message()), Contains("gets no certificate"));
}

TEST_CASE("authd: what is no request is refused, and the daemon goes on") {
  Site site;
  site.Start();
  CHECK_THAT(site.Say("\xff\xff").error(), Contains("not a CertificateOrder"));
  CHECK_THAT(site.Say("x").error(), Contains("not a CertificateOrder"));
  auth::v1::CertificateOrder order;
  order.set_request("nonsense");
  CHECK_THAT(site.Say(order.SerializeAsString()).error(), Contains("not a request"));
  CHECK(site.Say(order.SerializeAsString()).certificate().empty());
  order.set_request(std::string(kMaxAuthPacket, 'a'));
  CHECK_THAT(site.Say(order.SerializeAsString()).error(), Contains("too large"));
  site.MustGet();
}

TEST_CASE("authd: one user cannot take all of its calls") {
  Site site;
  site.Start();
  std::vector<int> silent;
  for (int i = 0; i < AuthDaemon::kMaxCallsOfUser; ++i) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    site.socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
    silent.push_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    REQUIRE(connect(silent.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
            0);
  }
  const absl::Status busy = site.Get().status();
  CHECK(absl::IsUnavailable(busy));
  CHECK_THAT(std::string(busy.message()), Contains("try again"));
  for (const int fd : silent) close(fd);
  absl::Status again = absl::UnknownError("");
  for (int i = 0; i < 100 && !again.ok(); ++i) {
    again = site.Get().status();
    if (!again.ok()) absl::SleepFor(absl::Milliseconds(20));
  }
  CHECK(again.ok());
}

TEST_CASE("authd: a socket that is in use is left alone, one of a crash is replaced") {
  Site site;
  site.Start();
  const absl::Status second = OpenedAt(site.config());
  CHECK(absl::IsUnavailable(second));
  CHECK_THAT(std::string(second.message()), Contains("is in use"));
  site.MustGet();
  site.Stop();

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  site.socket().copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  close(fd);  // nobody listens, and the file stays
  site.Start();
  site.MustGet();
  site.Stop();

  WriteText(site.socket(), "");
  CHECK_THAT(std::string(OpenedAt(site.config()).message()), Contains("is no socket"));
}

TEST_CASE("authd: configurations that cannot work are refused") {
  const auto problem = [](const std::function<void(auth::v1::Authd&)>& change) {
    auth::v1::Authd config;
    config.set_certificate("/ca.pem");
    config.set_key("/ca.key");
    change(config);
    return std::string(CompleteAuthdConfig(&config).message());
  };
  CHECK(problem([](auth::v1::Authd&) {}).empty());
  CHECK(problem([](auth::v1::Authd& c) { c.clear_key(); }) == "key: required: a PEM file");
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.set_key("ca.key"); }),
             Contains("key: must be an absolute path"));
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.set_listen("sock"); }), Contains("listen: "));
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.set_trust_domain("A"); }),
             Contains("trust_domain: "));
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.mutable_lifetime()->set_seconds(1); }),
             Contains("lifetime: must be 5m..168h"));
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.set_first_uid(0); }),
             Contains("first_uid: must be at least 1"));
  CHECK_THAT(problem([](auth::v1::Authd& c) { c.mutable_log()->set_level("loud"); }),
             Contains("log.level: "));
  Site site;
  site.config().set_key(site / "ca.pem");
  REQUIRE(CompleteAuthdConfig(&site.config()).ok());
  CHECK_THAT(std::string(OpenedAt(site.config()).message()), Contains("not a private key"));
  site.config().set_key(site / "no.key");
  CHECK_THAT(std::string(OpenedAt(site.config()).message()), Contains("cannot read"));
}

TEST_CASE("authd: uids without an account have no name") {
  const absl::Status unknown = AccountOf(3'999'999'999).status();
  CHECK(absl::IsNotFound(unknown));
  CHECK(unknown.message() == "uid 3999999999 has no account on this machine");
}

}  // namespace
}  // namespace berth
