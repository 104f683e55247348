// berth-agent: runs the tasks of one node, or simulates many nodes with --simulate.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "clients/agent/agent_config.h"
#include "clients/agent/agent_loop.h"
#include "clients/agent/device_inventory.h"
#include "clients/agent/discover_command.h"
#include "clients/agent/identity.h"
#include "clients/agent/join/membership.h"
#include "clients/agent/simulation.h"
#include "support/clock.h"
#include "support/command_line.h"
#include "support/config_file.h"
#include "support/file_limit.h"
#include "support/grpc_log.h"
#include "support/log.h"
#include "support/random.h"
#include "support/server_list.h"
#include "support/version.h"

namespace berth {
namespace {

constexpr absl::Duration kProgressInterval = absl::Seconds(10);

struct Flags {
  std::string config;
  std::string server;
  std::string node_name;
  std::string state_directory;
  std::string supervisor;
  std::string probe;
  std::string simulate;
  bool discover = false;
  DiscoverFlags discovery;
  std::string topology;
  std::string join;
  std::string join_url;
  std::string join_ca;
  bool forget_term = false;
  bool check_config = false;
};

// Signals that the main thread, or a thread that stops the loop, waits for.
sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Also includes the signal that makes the agent scan its devices.
sigset_t AgentSignals() {
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGHUP);
  return signals;
}

int Fail(const absl::Status& status) {
  std::cerr << "berth-agent: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kExitUsage : 1;  // invalid configuration
}

// The path of a program that is installed in the same directory.
std::string Beside(const char* program) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / program;
}

std::string ProbeOf(const Flags& flags) {
  return flags.probe.empty() ? Beside("berth-probe") : flags.probe;
}

// A value from a flag has no position in the configuration file.
void TakeFlag(const std::string& value, const char* field, ConfigPlaces* places, std::string* out) {
  if (value.empty()) return;
  *out = value;
  places->positions.erase(field);
}

int RunSimulation(const Flags& flags) {
  config::v1::Simulation config;
  ConfigPlaces places;
  if (absl::Status status = ReadConfigFile(flags.simulate, &config, &places); !status.ok())
    return Fail(status);
  TakeFlag(flags.server, "server", &places, config.mutable_server());
  if (config.server().empty()) config.set_server("127.0.0.1:7070");
  if (absl::Status status = CheckServerList(config.server()); !status.ok()) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat(places.Of("server"), "server: ", status.message())));
  }
  auto credentials = MakeLastingChannelCredentials(ToTlsFiles(config.tls()));
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

void TakeJoinFlags(const Flags& flags, ConfigPlaces* places, config::v1::Agent* config) {
  const bool file = !flags.join.empty() && flags.join != "-";
  const std::string token = file ? std::filesystem::absolute(flags.join).string() : flags.join;
  const std::string ca =
      flags.join_ca.empty() ? "" : std::filesystem::absolute(flags.join_ca).string();
  if (token.empty() && ca.empty() && flags.join_url.empty()) return;
  config::v1::Join* join = config->mutable_join();
  TakeFlag(token, "join.token_file", places, join->mutable_token_file());
  TakeFlag(ca, "join.ca", places, join->mutable_ca());
  TakeFlag(flags.join_url, "join.url", places, join->mutable_url());
}

absl::StatusOr<config::v1::Agent> ReadConfig(const Flags& flags, ConfigPlaces* places) {
  config::v1::Agent config;
  if (!flags.config.empty()) {
    if (absl::Status status = ReadConfigFile(flags.config, &config, places); !status.ok())
      return status;
  }
  TakeFlag(flags.server, "server", places, config.mutable_server());
  TakeFlag(flags.node_name, "node_name", places, config.mutable_node_name());
  if (!flags.state_directory.empty()) {  // relative to the working directory, as in a shell
    TakeFlag(std::filesystem::absolute(flags.state_directory), "state_directory", places,
             config.mutable_state_directory());
  }
  TakeJoinFlags(flags, places, &config);
  if (!flags.topology.empty()) {
    TakeFlag(std::filesystem::absolute(flags.topology), "discovery.topology_file", places,
             config.mutable_discovery()->mutable_topology_file());
  }
  return config;
}

int RunDiscover(const Flags& flags) {
  ConfigPlaces places;
  const absl::StatusOr<config::v1::Agent> config = ReadConfig(flags, &places);
  if (!config.ok()) return Fail(config.status());
  const absl::StatusOr<std::string> text =
      DiscoverText(ProbeOf(flags), flags.discovery, config->discovery());
  if (!text.ok()) return Fail(text.status());
  std::cout << *text << std::flush;
  return std::cout.good() ? 0 : 1;
}

// If the configuration sets no memory, it is the host memory without GPU memory.
DiscoveredDevices FindDevices(const Flags& flags, bool memory_declared, config::v1::Agent* config) {
  if (!memory_declared) config->clear_memory_bytes();
  DiscoveredDevices found = DiscoverInto(ProbeOf(flags), config);
  SetAgentDefaults(config);  // memory, if discovery did not find it
  for (const std::string& line : found.lines)
    LogWarn("devices", {{"node", config->node_name()}, {"warning", line}});
  LogInfo("devices", {{"node", config->node_name()}, {"registered", config->devices_size()}});
  return found;
}

// False: a signal came.
bool WaitForSignal(absl::Duration duration) {
  const sigset_t signals = StopSignals();
  const timespec time = absl::ToTimespec(duration);
  return sigtimedwait(&signals, nullptr, &time) < 0;
}

uint64_t SeedFromKernel() { return std::random_device{}(); }

JoinSettings JoinSettingsOf(const config::v1::Agent& config) {
  return {.url = config.join().url(),
          .ca_file = config.join().ca(),
          .node = config.node_name(),
          .directory = IdentityDirectory(config)};
}

// With `join`: a valid certificate, whose files become those of `tls`.
absl::Status JoinCluster(config::v1::Agent* config) {
  if (!config->has_join()) return absl::OkStatus();
  absl::Status status =
      EnsureNodeCertificate(JoinSettingsOf(*config), config->join().token_file(), &AskHttps,
                            SystemClock(), Random(SeedFromKernel()), &WaitForSignal);
  if (!status.ok()) return status;
  const TlsFiles files = NodeCertificateFiles(IdentityDirectory(*config));
  config->mutable_tls()->set_certificate(files.certificate);
  config->mutable_tls()->set_key(files.key);
  config->mutable_tls()->set_ca(files.ca);
  return absl::OkStatus();
}

// Null without `join`.
std::unique_ptr<CertificateRenewer> StartRenewer(
    const config::v1::Agent& config, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    AgentLoop* loop) {
  if (!config.has_join()) return nullptr;
  const auto renewed = [server = config.server(), credentials, loop] {
    loop->CertificateRenewed(MakeAgentChannels(server, credentials));
  };
  return std::make_unique<CertificateRenewer>(JoinSettingsOf(config), config.join().token_file(),
                                              &AskHttps, SystemClock(), SeedFromKernel(), renewed);
}

int RunForgetTerm(const Flags& flags) {
  ConfigPlaces places;
  absl::StatusOr<config::v1::Agent> config = ReadConfig(flags, &places);
  if (!config.ok()) return Fail(config.status());
  SetAgentDefaults(&*config);
  if (absl::Status status = ForgetTerm(SystemDisk(), config->state_directory()); !status.ok())
    return Fail(status);
  std::cout << "the agent of " << config->state_directory() << " obeys any server again\n";
  return 0;
}

// What --check-config does: without devices, a server or the state directory.
int CheckConfig(const Flags& flags) {
  ConfigPlaces places;
  absl::StatusOr<config::v1::Agent> config = ReadConfig(flags, &places);
  if (!config.ok()) return Fail(config.status());
  SetAgentDefaults(&*config);
  if (absl::Status status = CheckAgentConfig(*config, geteuid()); !status.ok())
    return Fail(Located(status, places));
  if (!config->has_join()) {  // which gets the certificate
    const auto tls = MakeChannelCredentials(ToTlsFiles(config->tls()));
    if (!tls.ok()) return Fail(tls.status());
  }
  std::cout << (flags.config.empty() ? "the defaults" : flags.config) << ": valid\n";
  return 0;
}

int RunAgent(const Flags& flags) {
  ConfigPlaces places;
  absl::StatusOr<config::v1::Agent> read = ReadConfig(flags, &places);
  if (!read.ok()) return Fail(read.status());
  config::v1::Agent config = *std::move(read);
  const bool memory_declared = config.memory_bytes() != 0;
  SetAgentDefaults(&config);
  if (absl::Status status = CheckAgentConfig(config, geteuid()); !status.ok())
    return Fail(Located(status, places));
  if (absl::Status status = StartLog(config.log().level(), config.log().file()); !status.ok())
    return Fail(Located(status, places));
  if (absl::Status status = JoinCluster(&config); !status.ok()) {
    if (absl::IsCancelled(status)) return 0;
    LogError("not joined", {{"node", config.node_name()}, {"error", status}});
    FlushLog();
    Fail(status);
    return kExitUsage;  // a restart would not help
  }
  AgentDevices devices;
  if (!config.discovery().disabled()) {
    devices.probe = ProbeOf(flags);
    devices.declared = config;
    devices.found = FindDevices(flags, memory_declared, &config);
  }
  auto credentials = MakeLastingChannelCredentials(ToTlsFiles(config.tls()));
  if (!credentials.ok()) return Fail(credentials.status());
  const std::string supervisor =
      flags.supervisor.empty() ? Beside("berth-supervisor") : flags.supervisor;
  const AgentChannels channels = {.own = MakeAgentChannels(config.server(), *credentials),
                                  .tasks = MakeTaskChannels(config.server(), *credentials)};
  auto loop = AgentLoop::Create(config, supervisor, channels, devices);
  if (!loop.ok()) return Fail(loop.status());
  if (!config.discovery().disabled()) {
    if (absl::Status status = SaveKnownDevices(devices.found.known, config.state_directory());
        !status.ok())
      LogWarn("devices", {{"node", config.node_name()}, {"error", status}});
  }
  const std::unique_ptr<CertificateRenewer> renewer =
      StartRenewer(config, *credentials, loop->get());
  std::thread stopper([&loop] {
    const sigset_t signals = AgentSignals();
    int signal = 0;
    while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) (*loop)->LookAgain();
    (*loop)->Stop();
  });
  const absl::Status status = (*loop)->Run();
  if (!status.ok()) {
    LogError("agent failed, tasks keep running", {{"error", status}});
    FlushLog();
    _exit(1);  // the stopper waits for a signal that may never come
  }
  stopper.join();
  LogInfo("stopped, tasks keep running", {{"node", config.node_name()}});
  return 0;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Runs the tasks of one node for Berth.", "berth-agent");
  app.set_version_flag("--version", kBerthVersion);
  app.add_option("--config", flags.config, "configuration file (berth.config.v1.Agent as YAML)");
  app.add_option("--server", flags.server,
                 "HOST:PORT of berthd, or of several that share a cluster, with commas");
  app.add_option("--node-name", flags.node_name, "default: the host name");
  app.add_option("--state-dir", flags.state_directory, "default: /var/lib/berth-agent");
  app.add_option("--supervisor", flags.supervisor,
                 "path of berth-supervisor; default: next to berth-agent");
  app.add_option("--probe", flags.probe, "path of berth-probe; default: next to berth-agent");
  app.add_option("--topology", flags.topology,
                 "NCCL or hwloc XML with device positions, for machines that hide them");
  app.add_option("--join", flags.join,
                 "file with a join token, or - for standard input: gets a certificate with it from "
                 "berth-authd, unless there is a valid one; berth node token create");
  app.add_option("--join-url", flags.join_url, "https URL of berth-authd");
  app.add_option("--join-ca", flags.join_ca,
                 "PEM file: signs the certificate of berth-authd's HTTPS; default: the system's");
  CLI::Option* discover = app.add_flag("--discover", flags.discover,
                                       "print the devices and their distances, without a server");
  app.add_option("--from", flags.discovery.from,
                 "read a saved machine: hwloc or NCCL XML, or a copy of /proc and /sys")
      ->needs(discover);
  app.add_option("-o,--output", flags.discovery.output, "table (default) or json")->needs(discover);
  app.add_option("--compare", flags.discovery.compare,
                 "compare distances with this saved output of nvidia-smi topo -m")
      ->needs(discover);
  app.add_flag("--forget-term", flags.forget_term,
               "forget which servers have led, and end: the agent, when it is started again, obeys "
               "a server that led before them")
      ->excludes(discover);
  app.add_flag(
         "--check-config", flags.check_config,
         "check the configuration and the certificates that it names, and exit: 0 if they are "
         "valid, else 2")
      ->excludes(discover);
  app.add_option("--simulate", flags.simulate,
                 "simulate the nodes of this file (berth.config.v1.Simulation)")
      ->excludes("--config")
      ->excludes("--discover")
      ->excludes("--forget-term")
      ->excludes("--check-config")
      ->excludes("--topology")
      ->excludes("--join")
      ->excludes("--join-url")
      ->excludes("--join-ca")
      ->excludes("--node-name")
      ->excludes("--state-dir");
  if (const auto code = ParseCommandLine(app, argc, argv); code.has_value()) return *code;
  RaiseFileLimit();  // every task needs a few descriptors
  LogForGrpc(LogLevel::kDebug);
  const bool runs_tasks = !flags.discover && flags.simulate.empty();
  const sigset_t signals = runs_tasks ? AgentSignals() : StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread starts
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit fails as on a full disk
  if (flags.discover) return RunDiscover(flags);
  if (flags.forget_term) return RunForgetTerm(flags);
  if (flags.check_config) return CheckConfig(flags);
  return flags.simulate.empty() ? RunAgent(flags) : RunSimulation(flags);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
