// A berthd with simulated agents, for one benchmark.
#ifndef BERTH_TESTS_BENCH_CLUSTER_H_
#define BERTH_TESTS_BENCH_CLUSTER_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/access.grpc.pb.h"
#include "berth/v1/cluster.grpc.pb.h"
#include "berth/v1/job.grpc.pb.h"
#include "berth/v1/node.grpc.pb.h"
#include "berth/v1/queue.grpc.pb.h"
#include "berth/v1/watch.grpc.pb.h"
#include "support/pki/authority.h"
#include "tests/bench/bench.h"
#include "tests/bench/process.h"

namespace berth::bench {

using Clock = std::chrono::steady_clock;
inline double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Simulated nodes: `count` of them, named after `prefix`.
struct NodeSet {
  std::string prefix;
  int64_t count = 0;
  std::string run_time = "1h";
  int connections = 0;  // 0 = the default of the simulation
  std::string labels = "{}";
  double failure_rate = 0;
  std::string step_time = {};  // such as "1s": tasks report steps this often
};

// How clients connect: as on loopback, with client certificates, or also with access rules, of
// which each user here has some hundred around its own.
enum class Security { kNone, kTls, kRules };

class BenchCluster {
 public:
  // `server_config`: additional lines of berthd's YAML.
  explicit BenchCluster(const Options& options, std::string server_config = "",
                        Security security = Security::kNone);

  // Starts berthd with the same ports and data as before, and returns at once.
  void StartServer();
  // Runs berthd to its end with one more flag.
  void RunServer(const std::string& flag);
  void WaitServer();
  void WaitStandby();  // as WaitServer, for a server that refuses most calls
  void KillServer() { server_.reset(); }

  // Starts another berth-agent --simulate; 64 CPUs, 1 TiB and 8 GPUs a node. Returns its number.
  size_t StartNodes(const NodeSet& nodes);
  // Stops that process (SIGSTOP), as if its machines had lost their power: connections stay open.
  void FreezeNodes(size_t number) { agents_[number]->Stop(); }
  // Ends it, and starts its nodes again without tasks.
  void RebootNodes(size_t number);
  void WaitNodes(int64_t ready);
  void KillNodes() {
    agents_.clear();
    prefixes_.clear();
  }
  // Stops the process started last (SIGSTOP); its connections stay open.
  void StopLastNodes() { agents_.back()->Stop(); }
  // For nodes that this program simulates.
  std::string NodesYaml(const NodeSet& nodes) const;

  void CreateQueue(const std::string& name, bool no_gpus = false);

  Process& server() { return *server_; }
  v1::JobService::StubInterface& jobs() { return *jobs_; }
  v1::ClusterService::StubInterface& cluster() { return *cluster_; }
  v1::WatchService::StubInterface& watch() { return *watch_; }
  v1::JobService::Stub& async_jobs() { return *jobs_; }
  // A channel with a separate connection: one gRPC connection is one stream of bytes.
  std::shared_ptr<grpc::Channel> NewChannel() const { return NewChannel("bench"); }
  std::shared_ptr<grpc::Channel> NewChannel(const std::string& user) const;
  // Writes and enforces rules under which `users` may submit; call after WaitServer.
  void WriteRules(const std::vector<std::string>& users);
  v1::ClusterInfo Info();
  // By node name: the epoch of its registration; 0 while it is not READY.
  std::map<std::string, uint64_t> ReadyEpochs();

 private:
  void MakeCertificates();
  std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const std::string& user) const;

  const Options options_;
  const Security security_;
  TempDirectory home_;
  std::unique_ptr<Authority> authority_;  // with TLS
  std::string ca_;
  int port_;
  int http_port_;
  std::unique_ptr<Process> server_;
  std::vector<std::unique_ptr<Process>> agents_;
  std::vector<std::string> prefixes_;  // of their nodes
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::WatchService::Stub> watch_;
  std::unique_ptr<v1::ClusterService::Stub> cluster_;
};

// Registers `nodes` nodes, ten thousand at a time, and disconnects their agents again. The server
// needs a long lease (kPatient).
void RegisterNodes(BenchCluster& cluster, int64_t nodes);
// A long lease: simulated nodes that disconnect after they have registered remain in the state.
inline constexpr char kPatient[] = "lease: 1h\nheartbeatInterval: 5s\n";
// `jobs` pending jobs of 1, 2, 4 and 8 GPUs in a queue "full" that may use no GPUs.
void FillQueue(BenchCluster& cluster, int64_t jobs);

// A job of one task. `gpus` 0 = one CPU only.
v1::Job MakeJob(std::string name, const std::string& queue, int gpus = 0);

// Requests of `batch` jobs each, `total` jobs in total, named PREFIX-NUMBER, with request ids.
std::vector<v1::SubmitJobsRequest> MakeRequests(const std::string& prefix, const std::string& queue,
                                                int64_t total, int64_t batch, int gpus = 0);

// Sends all requests, `in_flight` at a time over `connections` connections, and returns the seconds
// until the last answer. Any refusal ends the program.
double SendAll(const BenchCluster& cluster, const std::vector<v1::SubmitJobsRequest>& requests,
               int in_flight, int connections);

// Ends the program unless `status` is OK.
void Check(const grpc::Status& status, const std::string& what);

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_CLUSTER_H_
