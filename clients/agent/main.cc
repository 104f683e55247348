// berth-agent: runs the tasks of one node, or with --simulate plays many nodes.
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <thread>

#include "clients/agent/agent_config.h"
#include "clients/agent/agent_loop.h"
#include "clients/agent/simulation.h"
#include "support/grpc_log.h"
#include "support/log.h"
#include "support/version.h"
#include "support/yaml_proto.h"

namespace berth {
namespace {

constexpr int kExitUsage = 2;  // bad configuration; 1 = anything else
constexpr absl::Duration kProgressInterval = absl::Seconds(10);

struct Flags {
  std::string config;
  std::string server;
  std::string node_name;
  std::string state_directory;
  std::string supervisor;
  std::string simulate;
};

// Waited for by the main thread, or by a thread that stops the loop.
sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

int Fail(const absl::Status& status) {
  std::cerr << "berth-agent: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;
}

// Every task needs a few descriptors.
void RaiseFileLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string DefaultSupervisor() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() /
         "berth-supervisor";
}

int RunSimulation(const Flags& flags) {
  config::v1::Simulation config;
  if (absl::Status status = ReadYamlFile(flags.simulate, &config); !status.ok())
    return Fail(status);
  if (!flags.server.empty()) config.set_server(flags.server);
  if (config.server().empty()) config.set_server("127.0.0.1:7070");
  auto credentials = MakeChannelCredentials(ToTlsFiles(config.tls()));
  if (!credentials.ok()) return Fail(credentials.status());
  auto simulation = Simulation::Create(config, *credentials);
  if (!simulation.ok()) return Fail(simulation.status());
  const timespec interval = absl::ToTimespec(kProgressInterval);
  const sigset_t signals = StopSignals();
  while (sigtimedwait(&signals, nullptr, &interval) < 0) {
    const Simulation::Counters counters = (*simulation)->counters();
    LogInfo("simulation", {{"nodes", counters.nodes},
                           {"registered", counters.registered},
                           {"running", counters.running},
                           {"started", counters.started}});
    if (counters.trouble.empty()) continue;
    LogWarn("not registered", {{"nodes", counters.nodes - counters.registered},
                               {"server", config.server()},
                               {"error", ExplainedError(config.tls(), counters.trouble)}});
  }
  return 0;
}

int RunAgent(const Flags& flags) {
  config::v1::Agent config;
  if (!flags.config.empty()) {
    if (absl::Status status = ReadYamlFile(flags.config, &config); !status.ok())
      return Fail(status);
  }
  if (!flags.server.empty()) config.set_server(flags.server);
  if (!flags.node_name.empty()) config.set_node_name(flags.node_name);
  if (!flags.state_directory.empty()) config.set_state_directory(flags.state_directory);
  SetAgentDefaults(&config);
  if (absl::Status status = CheckAgentConfig(config, geteuid()); !status.ok()) return Fail(status);
  if (absl::Status status = StartLog(config.log().level(), config.log().file()); !status.ok())
    return Fail(status);
  auto credentials = MakeChannelCredentials(ToTlsFiles(config.tls()));
  if (!credentials.ok()) return Fail(credentials.status());
  const std::string supervisor = flags.supervisor.empty() ? DefaultSupervisor() : flags.supervisor;
  auto loop =
      AgentLoop::Create(config, supervisor, MakeAgentChannel(config.server(), *credentials));
  if (!loop.ok()) return Fail(loop.status());
  std::thread stopper([&loop] {
    const sigset_t signals = StopSignals();
    int signal = 0;
    sigwait(&signals, &signal);
    (*loop)->Stop();
  });
  const absl::Status status = (*loop)->Run();
  if (!status.ok()) {
    LogError("the agent ends, its tasks live on", {{"error", status}});
    FlushLog();
    _exit(1);  // the stopper waits for a signal that need not come
  }
  stopper.join();
  LogInfo("stopped, tasks live on", {{"node", config.node_name()}});
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Runs the tasks of one node for Berth.", "berth-agent");
  app.set_version_flag("--version", kBerthVersion);
  app.add_option("--config", flags.config, "configuration file (berth.config.v1.Agent as YAML)");
  app.add_option("--server", flags.server, "HOST:PORT of berthd");
  app.add_option("--node-name", flags.node_name, "default: the host name");
  app.add_option("--state-dir", flags.state_directory, "default: /var/lib/berth-agent");
  app.add_option("--supervisor", flags.supervisor,
                 "berth-supervisor; default: beside this program");
  app.add_option("--simulate", flags.simulate,
                 "play the nodes of this file (berth.config.v1.Simulation)")
      ->excludes("--config")
      ->excludes("--node-name")
      ->excludes("--state-dir");
  CLI11_PARSE(app, argc, argv);
  RaiseFileLimit();
  LogForGrpc(LogLevel::kDebug);
  const sigset_t signals = StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread
  signal(SIGPIPE, SIG_IGN);
  return flags.simulate.empty() ? RunAgent(flags) : RunSimulation(flags);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
