#include "tests/etcd/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "storage/etcd/etcd_client.h"

namespace berth::testing {
namespace {

constexpr absl::Duration kStart = absl::Seconds(30);
constexpr absl::Duration kAgain = absl::Milliseconds(50);

bool Succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(concurrency-mt-unsafe)
}

// Another process may take it before etcd does; that is rare.
std::string FreeAddress() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  BERTH_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  BERTH_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(fd);
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

pid_t Run(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t pid = fork();
  BERTH_CHECK(pid >= 0);
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(argv[0], argv.data());
  _exit(127);
}

}  // namespace

bool EtcdCluster::Available() {
  static const bool available = [] {
    if (Succeeds("etcd --version")) return true;
    std::cerr << "skipped: no etcd (Debian's etcd-server)\n";
    return false;
  }();
  return available;
}

EtcdCluster::EtcdCluster(EtcdClusterOptions options) : options_(options) {
  for (size_t i = 0; i < options_.members; ++i) {
    const std::string name = absl::StrCat("m", i);
    members_.push_back(
        {.name = name, .client = FreeAddress(), .peer = FreeAddress(), .data = directory_ / name});
  }
  if (options_.tls) MakeCertificates();
  for (size_t i = 0; i < members_.size(); ++i) Start(i);
  for (size_t i = 0; i < members_.size(); ++i) Await(i);
}

EtcdCluster::~EtcdCluster() {
  for (size_t i = 0; i < members_.size(); ++i) Kill(i);
}

std::vector<std::string> EtcdCluster::endpoints() const {
  std::vector<std::string> endpoints;
  for (const Member& member : members_) endpoints.push_back(member.client);
  return endpoints;
}

TlsFiles EtcdCluster::tls() const {
  if (!options_.tls) return {};
  return {.certificate = directory_ / "cert.pem",
          .key = directory_ / "cert.key",
          .ca = directory_ / "ca.pem"};
}

// One certificate serves members and clients.
void EtcdCluster::MakeCertificates() const {
  const std::string home = directory_.path();
  std::ofstream(home + "/names") << "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
  const std::string key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
  BERTH_CHECK(Succeeds(absl::StrCat("cd ", home, " && openssl req -x509 -days 2 ", key,
                                    " -subj /CN=ca -keyout ca.key -out ca.pem && openssl req -new ",
                                    key, " -subj /CN=member -keyout cert.key -out cert.csr && ",
                                    "openssl x509 -req -days 2 -in cert.csr -CA ca.pem -CAkey ",
                                    "ca.key -CAcreateserial -extfile names -out cert.pem")));
}

std::vector<std::string> EtcdCluster::Arguments(const Member& member) const {
  const std::string scheme = options_.tls ? "https://" : "http://";
  std::string all;
  for (const Member& each : members_) {
    absl::StrAppend(&all, all.empty() ? "" : ",", each.name, "=http://", each.peer);
  }
  std::vector<std::string> arguments = {"etcd",
                                        "--name",
                                        member.name,
                                        "--data-dir",
                                        member.data,
                                        "--heartbeat-interval",
                                        "50",
                                        "--election-timeout",
                                        "500",
                                        "--log-level",
                                        "warn",
                                        "--snapshot-count",
                                        "500",
                                        "--quota-backend-bytes",
                                        absl::StrCat(options_.quota_bytes),
                                        "--listen-client-urls",
                                        scheme + member.client,
                                        "--advertise-client-urls",
                                        scheme + member.client,
                                        "--listen-peer-urls",
                                        "http://" + member.peer,
                                        "--initial-advertise-peer-urls",
                                        "http://" + member.peer,
                                        "--initial-cluster",
                                        all,
                                        "--initial-cluster-token",
                                        directory_.path()};
  if (options_.tls) {
    const TlsFiles files = tls();
    arguments.insert(arguments.end(), {"--cert-file", files.certificate, "--key-file", files.key,
                                       "--trusted-ca-file", files.ca, "--client-cert-auth"});
  }
  // Newer than Debian 12's.
  static const bool without_sync = Succeeds("etcd --help 2>&1 | grep -q unsafe-no-fsync");
  if (without_sync) arguments.emplace_back("--unsafe-no-fsync");
  return arguments;
}

void EtcdCluster::Start(size_t index) {
  Member& member = members_[index];
  BERTH_CHECK(member.pid < 0);
  member.pid = Run(Arguments(member), directory_ / (member.name + ".log"));
}

void EtcdCluster::Await(size_t index) {
  const Member& member = members_[index];
  auto client = EtcdClient::Create({.endpoints = {member.client}, .tls = tls()});
  BERTH_CHECK(client.ok());
  absl::Status status;
  for (absl::Time end = absl::Now() + kStart; absl::Now() < end; absl::SleepFor(kAgain)) {
    status = (*client)->Commit({.compares = {}, .then = {{.key = "ready"}}}).status();
    if (status.ok()) return;
  }
  std::ifstream log(directory_ / (member.name + ".log"));
  std::cerr << status << "\n" << log.rdbuf();
  BERTH_CHECK(status.ok());
}

void EtcdCluster::Kill(size_t index) {
  Member& member = members_[index];
  if (member.pid < 0) return;
  kill(member.pid, SIGKILL);
  waitpid(member.pid, nullptr, 0);
  member.pid = -1;
}

void EtcdCluster::Pause(size_t index) { kill(members_[index].pid, SIGSTOP); }
void EtcdCluster::Continue(size_t index) { kill(members_[index].pid, SIGCONT); }

}  // namespace berth::testing
