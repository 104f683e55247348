// berth-authd: certificates for users, and for the agents of nodes.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "clients/authd/authd.h"
#include "clients/authd/authd_config.h"
#include "clients/authd/issuing.h"
#include "clients/authd/node_door.h"
#include "clients/authd/oidc/token_door.h"
#include "support/clock.h"
#include "support/command_line.h"
#include "support/config_file.h"
#include "support/grpc_log.h"
#include "support/log.h"
#include "support/version.h"

namespace berth {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "berth-authd: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

struct Doors {
  std::unique_ptr<AuthDaemon> socket;       // null: none
  std::unique_ptr<oidc::TokenDoor> tokens;  // null: none
  std::unique_ptr<NodeDoor> nodes;          // null: none
};

absl::Status OpenNodeDoor(const auth::v1::Authd& config, Doors* doors) {
  const absl::StatusOr<std::shared_ptr<const CertificateIssuer>> issuer =
      CertificateIssuer::OpenForNodes(config);
  if (!issuer.ok()) return issuer.status();
  absl::StatusOr<Admit> admit = AdmitByBerthd(config.nodes());
  if (!admit.ok()) return admit.status();
  absl::StatusOr<std::unique_ptr<NodeDoor>> nodes =
      NodeDoor::Open(config.nodes(), *issuer, *std::move(admit), SystemClock());
  if (!nodes.ok()) return nodes.status();
  doors->nodes = *std::move(nodes);
  return absl::OkStatus();
}

absl::StatusOr<Doors> OpenDoors(const auth::v1::Authd& config) {
  Doors doors;
  if (config.has_nodes()) {
    if (absl::Status status = OpenNodeDoor(config, &doors); !status.ok()) return status;
  }
  if (!HasDoorForUsers(config)) return doors;
  const absl::StatusOr<std::shared_ptr<const CertificateIssuer>> issuer =
      CertificateIssuer::Open(config);
  if (!issuer.ok()) return issuer.status();
  if (config.listen() != kNoSocket) {
    absl::StatusOr<std::unique_ptr<AuthDaemon>> socket = AuthDaemon::Create(config, *issuer);
    if (!socket.ok()) return socket.status();
    doors.socket = *std::move(socket);
  }
  if (config.has_oidc()) {
    absl::StatusOr<std::unique_ptr<oidc::TokenDoor>> tokens =
        oidc::TokenDoor::Open(config.oidc(), *issuer, &oidc::FetchFor, SystemClock());
    if (!tokens.ok()) return tokens.status();
    doors.tokens = *std::move(tokens);
  }
  return doors;
}

// False: threads of the socket still wait for a directory server.
bool RunUntilSignal(const sigset_t& signals, Doors& doors) {
  int number = 0;
  if (doors.socket == nullptr) {
    sigwait(&signals, &number);
    return true;
  }
  std::thread stopper([&] {
    sigwait(&signals, &number);
    doors.socket->Stop();
  });
  const bool ended = doors.socket->Run();
  stopper.join();
  return ended;
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
  signal(SIGPIPE, SIG_IGN);                       // a client that has left
  LogForGrpc(LogLevel::kDebug);
  absl::StatusOr<Doors> doors = OpenDoors(config);
  if (!doors.ok()) return Fail(Located(doors.status(), places));
  if (geteuid() == 0) LogWarn("berth-authd runs as root, and needs no rights of root");
  LogInfo("berth-authd is ready", {{"listen", config.listen()},
                                   {"oidc", config.oidc().listen()},
                                   {"nodes", config.nodes().listen()},
                                   {"trust_domain", config.trust_domain()}});
  const bool ended = RunUntilSignal(signals, *doors);
  LogInfo("berth-authd has stopped");
  FlushLog();
  doors->tokens.reset();
  doors->nodes.reset();
  if (!ended) {  // threads wait for a directory server
    unlink(config.listen().c_str());
    _exit(0);
  }
  return 0;
}

int Main(int argc, char** argv) {
  std::string config = "/etc/berth/authd.yaml";
  CLI::App app(
      "Gives users certificates for Berth. Users of this machine: berth asks it by itself, and the "
      "kernel and the machine's name services say who a user is. People elsewhere and CI: over "
      "HTTPS, for tokens of trusted OpenID Connect issuers. Agents: over HTTPS, for join tokens.",
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
