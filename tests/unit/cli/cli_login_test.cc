// login and logout without a berth-authd, and when a login counts. tests/unit/login has the
// protocols.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "clients/login/login.h"
#include "support/pki/authority.h"
#include "tests/unit/cli/cli_harness.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;

// A home of its own for the certificates, and no variables of the caller.
class Home {
 public:
  Home() {
    REQUIRE(mkdtemp(directory_.data()) != nullptr);
    setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
    for (const char* name : {"BERTH_AUTH", "BERTH_AUTH_CA", "BERTH_ID_TOKEN"}) unsetenv(name);
  }
  ~Home() {
    unsetenv("XDG_RUNTIME_DIR");
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;

  TlsFiles files() const { return LoginFiles(directory_ + "/berth"); }
  void LogIn(absl::Time now, absl::Duration lifetime) {
    REQUIRE(PrepareCertificateDirectory(directory_ + "/berth").ok());
    const NewAuthority made = MakeAuthority("ada", lifetime, now).value();
    REQUIRE(KeepCertificate(files(), made.certificate, made.key, made.certificate).ok());
  }

 private:
  std::string directory_ = "/tmp/berth-test-XXXXXX";
};

TEST_CASE("login: what is missing or wrong is named", "[login]") {
  Home home;
  Cli cli;
  CHECK(cli.Run({"login"}) == 4);
  CHECK_THAT(cli.err(), Contains("--auth or BERTH_AUTH names berth-authd"));
  CHECK(cli.Run({"login", "--auth", "http://a", "--token-file", "/nowhere"}) == 4);
  CHECK(cli.err() == "berth: cannot read /nowhere\n");
  cli.answer = " \n";
  CHECK(cli.Run({"login", "--auth", "https://a", "--token-file", "-"}) == 4);
  CHECK(cli.err() == "berth: standard input contains no token\n");
  cli.answer = "token";
  CHECK(cli.Run({"login", "--auth", "http://a", "--token-file", "-"}) == 4);
  CHECK_THAT(cli.err(), Contains("berth-authd at http://a: not a URL such as https://"));
  CHECK(cli.Run({"login", "-o", "json"}) == 2);
}

TEST_CASE("logout: removes what login has kept", "[login]") {
  Home home;
  Cli cli;
  CHECK(cli.Run({"logout"}) == 0);
  CHECK(cli.out() == "You were not logged in.\n");
  home.LogIn(cli.world.Now(), absl::Hours(12));
  CHECK(cli.Run({"logout"}) == 0);
  CHECK(cli.out() == "Logged out.\n");
  CHECK(!std::filesystem::exists(home.files().certificate));
  CHECK(!std::filesystem::exists(home.files().ca));
}

TEST_CASE("login: counts for other machines, and on this one if somebody says so", "[login]") {
  Home home;
  Cli cli;
  home.LogIn(cli.world.Now() - absl::Hours(13), absl::Hours(12));
  CHECK(cli.Run({"queue", "list", "--auth", "https://a"}) == 1);
  CHECK(cli.err() == "berth: your login has ended; run berth login again, or berth logout\n");
  const std::vector<std::string> elsewhere = {
      "--server", "berthd.invalid:7070", "--request-timeout", "1s", "--auth-socket", "off", "queue",
      "list"};
  CHECK(cli.RunBare(elsewhere) == 1);
  CHECK_THAT(cli.err(), Contains("your login has ended"));
  cli.Run({"queue", "list", "--request-timeout", "1s"});
  CHECK_THAT(cli.err(), !Contains("login"));  // a server without TLS on this machine

  std::filesystem::permissions(std::filesystem::path(home.files().ca).parent_path(),
                               std::filesystem::perms::all);
  CHECK(cli.RunBare(elsewhere) == 1);
  CHECK_THAT(cli.err(), Contains("must be a directory that only you can use"));
  std::filesystem::remove(home.files().certificate);
  CHECK(cli.RunBare({"--server", "berthd.invalid:7070", "--auth-socket", "off", "--auth",
                     "https://a", "queue", "list"}) == 1);
  CHECK(cli.err() == "berth: you are not logged in; run berth login\n");
}

}  // namespace
}  // namespace berth
