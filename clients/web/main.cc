// berth-web: the web page.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "clients/web/assets.h"
#include "clients/web/web_app.h"
#include "clients/web/web_config.h"
#include "support/command_line.h"
#include "support/config_file.h"
#include "support/fetch/https_client.h"
#include "support/file_limit.h"
#include "support/grpc_log.h"
#include "support/log.h"
#include "support/version.h"

namespace berth {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "berth-web: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

int Serve(web::v1::Web& config, const ConfigPlaces& places) {
  if (absl::Status status = web::CompleteWebConfig(&config); !status.ok()) {
    return Fail(Located(status, places));
  }
  if (absl::Status status = StartLog(config.log().level(), config.log().file()); !status.ok()) {
    return Fail(Located(status, places));
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts
  signal(SIGPIPE, SIG_IGN);                       // a browser that has left
  RaiseFileLimit();                               // a connection each
  LogForGrpc(LogLevel::kDebug);
  absl::StatusOr<std::unique_ptr<web::WebApp>> app = web::WebApp::Open(config, &AskHttps);
  if (!app.ok()) return Fail(Located(app.status(), places));
  if (geteuid() == 0) LogWarn("berth-web runs as root, and needs no rights of root");
  if (web::Assets().empty())
    LogWarn("built without the page: npm was missing; only the API is here");
  LogInfo("berth-web is ready", {{"address", web::OriginsOf(config).front()},
                                 {"server", config.server()},
                                 {"sign_in", web::HasSignIn(config) ? "yes" : "no"}});
  int number = 0;
  sigwait(&signals, &number);
  app->reset();
  LogInfo("berth-web has stopped");
  FlushLog();
  return 0;
}

int Main(int argc, char** argv) {
  std::string path, listen, server, log_file;
  CLI::App app(
      "Serves Berth's web page, and its API as JSON, to browsers. Every call is made as the person "
      "who is signed in. Without a configuration: for a berthd on this machine without TLS, on "
      "loopback.",
      "berth-web");
  app.set_version_flag("--version", kBerthVersion);
  app.add_option("--config", path, "configuration file (berth.web.v1.Web as YAML)");
  app.add_option("--listen", listen, "ADDRESS:PORT; default 127.0.0.1:7072");
  app.add_option("--server", server, "HOST:PORT of berthd; default 127.0.0.1:7070");
  app.add_option("--log-file", log_file, "default: standard error");
  if (const auto code = ParseCommandLine(app, argc, argv); code.has_value()) return *code;
  web::v1::Web config;
  ConfigPlaces places;
  if (!path.empty()) {
    if (absl::Status status = ReadConfigFile(path, &config, &places); !status.ok()) {
      return Fail(status);
    }
  }
  if (!listen.empty()) config.set_listen(listen);
  if (!server.empty()) config.set_server(server);
  if (!log_file.empty()) config.mutable_log()->set_file(log_file);
  return Serve(config, places);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
