// How an agent gets its certificate, keeps it, and renews it.
#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "berth/auth/v1/auth.pb.h"
#include "clients/agent/join/membership.h"
#include "support/log.h"
#include "support/pki/authority.h"
#include "support/pki/join_token.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

const bool kQuietLog = StartLog("error", "").ok();

// A clock that the test sets; steady time is the machine's.
class SetClock final : public Clock {
 public:
  absl::Time Now() override { return now; }
  absl::Duration Steady() override { return SystemClock().Steady(); }
  absl::Time now = absl::Now();
};

// An agent's directory, and a berth-authd that issues whatever is asked for.
class Joining {
 public:
  Joining() {
    settings_ = {.url = "https://authd:7081/",
                 .ca_file = "",
                 .node = "n1",
                 .directory = directory_ / "state/identity"};
    std::ofstream(token_file()) << token_ << "\n";
  }
  std::string token_file() const { return directory_ / "token"; }

  Ask ask() {
    return [this](const HttpsRequest& request, const HttpsTrust&) { return Answer(request); };
  }
  absl::Status Ensure(const std::string& token_file) {
    return EnsureNodeCertificate(settings_, token_file, ask(), clock_, Random(1),
                                 [this](absl::Duration) { return ++pauses_ < 5; });
  }
  // An error for the next calls.
  void Refuse(const std::string& error, bool retry, int times) {
    refusals_.insert(refusals_.end(), static_cast<size_t>(times), {error, retry});
  }
  std::string Pem() const {
    std::ifstream file(NodeCertificateFiles(settings_.directory).certificate);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  const std::string token_ = MakeJoinToken()->text;
  JoinSettings settings_;
  SetClock clock_;
  int pauses_ = 0;
  std::string issue_to_ = "n1";
  absl::Duration lifetime_ = absl::Hours(24);
  std::vector<HttpsRequest> requests_;
  std::vector<auth::v1::NodeOrder> orders_;

 private:
  absl::StatusOr<HttpsAnswer> Answer(const HttpsRequest& request) {
    requests_.push_back(request);
    auth::v1::NodeOrder& order = orders_.emplace_back();
    REQUIRE(google::protobuf::util::JsonStringToMessage(request.body, &order).ok());
    auth::v1::CertificateAnswer answer;
    int code = 200;
    if (!refusals_.empty()) {
      answer.set_error(refusals_.front().first);
      answer.set_retry(refusals_.front().second);
      refusals_.erase(refusals_.begin());
      code = answer.retry() ? 503 : 403;
    } else {
      answer.set_certificate(authority_
                                 .Issue(order.request(),
                                        {"berth", SpiffeId::Kind::kNode, issue_to_}, {}, lifetime_,
                                        clock_.now)
                                 .value());
      answer.set_servers(made_.certificate);
    }
    std::string json;
    REQUIRE(google::protobuf::util::MessageToJsonString(answer, &json).ok());
    return HttpsAnswer{.code = code, .body = json};
  }

  TempDirectory directory_;
  const NewAuthority made_ = MakeAuthority("nodes", absl::Hours(2400), absl::Now()).value();
  const Authority authority_ = Authority::Open(made_.certificate, made_.key, absl::Now()).value();
  std::vector<std::pair<std::string, bool>> refusals_;
};

TEST_CASE("join: an agent without a certificate says what it needs") {
  Joining agent;
  const absl::Status status = agent.Ensure("");
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message() ==
        "node n1 needs a join token: there is no certificate yet; create one (berth node token "
        "create --node n1) and pass its file with --join");
  CHECK(agent.requests_.empty());
}

TEST_CASE("join: a token gives a certificate, which is kept for the agent alone") {
  Joining agent;
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  REQUIRE(agent.orders_.size() == 1);
  CHECK(agent.requests_[0].url == "https://authd:7081/v1/node-certificate");
  CHECK(agent.requests_[0].client_file.empty());
  CHECK(agent.orders_[0].token() == agent.token_);
  CHECK(agent.orders_[0].node() == "n1");
  const TlsFiles files = NodeCertificateFiles(agent.settings_.directory);
  for (const std::string& path : {files.certificate, files.ca}) {
    struct stat found {};
    REQUIRE(stat(path.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0600);
  }
  CHECK(MakeLastingChannelCredentials(files).ok());
  const HeldCertificate held = HeldNodeCertificate(agent.settings_, agent.clock_.now).value();
  CHECK(held.end - held.issued > absl::Hours(23));
  // The certificate is there: nobody is asked, and no token is read.
  REQUIRE(agent.Ensure("/nowhere").ok());
  CHECK(agent.orders_.size() == 1);
}

TEST_CASE("join: a certificate that expired, or is another node's, needs a token again") {
  Joining agent;
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  agent.clock_.now += absl::Hours(25);
  CHECK_THAT(std::string(agent.Ensure("").message()), Contains("expired at"));
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  REQUIRE(agent.Ensure("").ok());
  agent.settings_.node = "n2";
  CHECK_THAT(std::string(agent.Ensure("").message()), Contains("is that of node n1, not of n2"));
}

TEST_CASE("join: a refusal is final, and is told") {
  Joining agent;
  agent.Refuse("join token 12 is used up", false, 1);
  const absl::Status status = agent.Ensure(agent.token_file());
  CHECK(absl::IsPermissionDenied(status));
  CHECK(status.message() == "berth-authd at https://authd:7081/: join token 12 is used up");
  CHECK(agent.orders_.size() == 1);
}

TEST_CASE("join: while berth-authd cannot answer, the agent asks again with the same key") {
  Joining agent;
  agent.Refuse("no connection to berthd", true, 3);
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  REQUIRE(agent.orders_.size() == 4);
  for (const auto& order : agent.orders_) CHECK(order.request() == agent.orders_[0].request());
  CHECK(agent.pauses_ == 3);
}

TEST_CASE("join: an agent that was stopped asks again with the same key") {
  Joining agent;
  agent.Refuse("no connection to berthd", true, 5);
  CHECK(absl::IsCancelled(agent.Ensure(agent.token_file())));
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  REQUIRE(agent.orders_.size() == 6);
  CHECK(agent.orders_[5].request() == agent.orders_[0].request());
  // The next join has a key of its own.
  agent.clock_.now += absl::Hours(25);
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  CHECK(agent.orders_[6].request() != agent.orders_[0].request());
}

TEST_CASE("join: a certificate for another node is not kept") {
  Joining agent;
  agent.issue_to_ = "n2";
  CHECK(absl::IsCancelled(agent.Ensure(agent.token_file())));
  CHECK(agent.Pem().empty());
}

TEST_CASE("join: files that contain no token, and errors that do not repeat it") {
  Joining agent;
  CHECK_THAT(std::string(agent.Ensure("/nowhere").message()),
             Contains("cannot read the join token in /nowhere"));
  std::ofstream(agent.token_file()) << agent.token_ << "x";
  const absl::Status status = agent.Ensure(agent.token_file());
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), !Contains(agent.token_.substr(30)));
  CHECK(agent.requests_.empty());
}

TEST_CASE("join: a renewal has a new key, and is asked for with the certificate before") {
  Joining agent;
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  const std::string before = agent.Pem();
  REQUIRE(RenewNodeCertificate(agent.settings_, agent.ask()).ok());
  REQUIRE(agent.orders_.size() == 2);
  CHECK(agent.orders_[1].token().empty());
  CHECK(agent.orders_[1].request() != agent.orders_[0].request());
  CHECK(agent.requests_[1].client_file ==
        NodeCertificateFiles(agent.settings_.directory).certificate);
  const std::string after = agent.Pem();
  CHECK(after != before);
  agent.Refuse("node \"n1\" is revoked", false, 1);
  CHECK(absl::IsPermissionDenied(RenewNodeCertificate(agent.settings_, agent.ask())));
  CHECK(agent.Pem() == after);
}

TEST_CASE("join: certificates are renewed at two thirds of their life, or a little before") {
  const absl::Time start = absl::UnixEpoch();
  const HeldCertificate held = {.issued = start, .end = start + absl::Hours(30), .serial = ""};
  CHECK(RenewalTime(held, 0) == start + absl::Hours(18));
  CHECK(RenewalTime(held, 0.999) > start + absl::Hours(19));
  CHECK(RenewalTime(held, 0.999) < start + absl::Hours(20));
}

TEST_CASE("join: the renewer renews a certificate that is due, once") {
  Joining agent;
  agent.lifetime_ = absl::Hours(24);
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  agent.clock_.now += absl::Hours(17);
  const std::string before = agent.Pem();
  {
    CertificateRenewer renewer(agent.settings_, "", agent.ask(), agent.clock_, 1);
    for (int i = 0; i < 200 && agent.Pem() == before; ++i) absl::SleepFor(absl::Milliseconds(20));
  }
  CHECK(agent.Pem() != before);
  CHECK(agent.orders_.size() == 2);
}

TEST_CASE("join: after its certificate has expired, the renewer joins with the token") {
  Joining agent;
  REQUIRE(agent.Ensure(agent.token_file()).ok());
  agent.clock_.now += absl::Hours(25);
  const std::string before = agent.Pem();
  {
    CertificateRenewer renewer(agent.settings_, agent.token_file(), agent.ask(), agent.clock_, 1);
    for (int i = 0; i < 200 && agent.Pem() == before; ++i) absl::SleepFor(absl::Milliseconds(20));
  }
  CHECK(agent.Pem() != before);
  REQUIRE(agent.orders_.size() == 2);
  CHECK(agent.orders_[1].token() == agent.token_);
}

}  // namespace
}  // namespace berth
