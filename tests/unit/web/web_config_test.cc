// The configuration of berth-web: defaults, and what it refuses.
#include "clients/web/web_config.h"

#include "catch2/catch.hpp"

namespace berth::web {
namespace {

std::string ProblemsOf(v1::Web config) { return std::string(CompleteWebConfig(&config).message()); }

v1::Web Public() {
  v1::Web config;
  config.set_listen("0.0.0.0:443");
  config.set_certificate("/c");
  config.set_key("/k");
  config.set_ca("/ca");
  config.set_url("https://berth.example");
  config.mutable_authd()->set_url("https://login.example:7080");
  return config;
}

TEST_CASE("web configuration: none is needed on one machine") {
  v1::Web config;
  REQUIRE(CompleteWebConfig(&config).ok());
  CHECK(config.listen() == "127.0.0.1:7072");
  CHECK(config.server() == "127.0.0.1:7070");
  CHECK_FALSE(HasSignIn(config));
  CHECK(OriginsOf(config) == std::vector<std::string>{"http://127.0.0.1:7072",
                                                      "http://localhost:7072",
                                                      "http://[::1]:7072"});
}

TEST_CASE("web configuration: with sign-in") {
  v1::Web config = Public();
  REQUIRE(CompleteWebConfig(&config).ok());
  CHECK(HasSignIn(config));
  CHECK(OriginsOf(config) == std::vector<std::string>{"https://berth.example"});
}

TEST_CASE("web configuration: nobody else reaches what has no sign-in") {
  v1::Web config;
  config.set_listen("0.0.0.0:7072");
  const std::string problems = ProblemsOf(config);
  CHECK(problems.find("ca: required, as `listen` is not loopback") != std::string::npos);
  CHECK(problems.find("certificate: required") != std::string::npos);
  v1::Web proxied;
  proxied.set_url("https://berth.example");
  CHECK(ProblemsOf(proxied) == "ca: required for url, authd and certificates");
  v1::Web far;
  far.set_server("berth.example:7070");
  CHECK(ProblemsOf(far) == "server: must be on this machine without `ca`");
}

TEST_CASE("web configuration: what is wrong is named") {
  const auto wrong = [](void (*change)(v1::Web*)) {
    v1::Web config = Public();
    change(&config);
    return ProblemsOf(config);
  };
  CHECK(wrong([](v1::Web* c) { c->clear_authd(); }) ==
        "authd: people need authd or certificates to sign in");
  CHECK(wrong([](v1::Web* c) { c->clear_key(); }) == "key: required: a PEM file");
  CHECK(wrong([](v1::Web* c) { c->set_ca("ca.pem"); }) == "ca: must be an absolute path");
  for (const char* url : {"berth.example", "https://", "https://berth.example/", "https://a b",
                          "https://Berth.example", "https://a@b"}) {
    v1::Web config = Public();
    config.set_url(url);
    CHECK(ProblemsOf(config).find("url: must be like") != std::string::npos);
  }
  CHECK(wrong([](v1::Web* c) {
          c->mutable_authd()->set_url("http://login");
        }).find("authd.url: must be like") != std::string::npos);
  CHECK(wrong([](v1::Web* c) {
          c->mutable_certificates()->set_ca("/a");
        }).find("certificates.authority: required") != std::string::npos);
  CHECK(wrong([](v1::Web* c) { c->mutable_log()->set_level("loud"); }).find("log.level: must be") !=
        std::string::npos);
  CHECK(wrong([](v1::Web* c) { c->set_listen("unix:/x"); }).find("listen: must be") !=
        std::string::npos);
}

}  // namespace
}  // namespace berth::web
