// berth-authd: certificates for the users of a login node.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "clients/authd/authd.h"
#include "support/command_line.h"
#include "support/config_file.h"
#include "support/log.h"
#include "support/version.h"

namespace berth {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "berth-authd: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

int Serve(const std::string& path) {
  auth::v1::Authd config;
  ConfigPlaces places;
  if (absl::Status status = ReadConfigFile(path, &config, &places); !status.ok()) {
    return Fail(status);
  }
  if (absl::Status status = CompleteAuthdConfig(&config); !status.ok()) {
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
  absl::StatusOr<std::unique_ptr<AuthDaemon>> daemon = AuthDaemon::Create(config);
  if (!daemon.ok()) return Fail(daemon.status());
  if (geteuid() == 0) LogWarn("berth-authd runs as root, and needs no rights of root");
  LogInfo("berth-authd is ready",
          {{"listen", config.listen()}, {"trust_domain", config.trust_domain()}});
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    (*daemon)->Stop();
  });
  const bool ended = (*daemon)->Run();
  stopper.join();
  LogInfo("berth-authd has stopped");
  FlushLog();
  if (!ended) {  // threads wait for a directory server
    unlink(config.listen().c_str());
    _exit(0);
  }
  return 0;
}

int Main(int argc, char** argv) {
  std::string config = "/etc/berth/authd.yaml";
  CLI::App app(
      "Gives users of this machine certificates for Berth: berth asks it by itself. Who a user is, "
      "the kernel and the machine's name services say.",
      "berth-authd");
  app.set_version_flag("--version", kBerthVersion);
  app.add_option("--config", config,
                 "configuration file (berth.auth.v1.Authd as YAML); default /etc/berth/authd.yaml");
  if (const auto code = ParseCommandLine(app, argc, argv); code.has_value()) return *code;
  return Serve(config);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
