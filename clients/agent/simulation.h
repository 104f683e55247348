// Simulates any number of nodes in one process, each a real AgentLogic on a real stream, with a
// runner that only waits.
//
// Nodes are distributed over a few shards. A shard is a mutex, a heap of timers and one thread that
// serves them; messages are handled on gRPC's threads under the same mutex, so that a task start
// needs no thread switch.
#ifndef BERTH_CLIENTS_AGENT_SIMULATION_H_
#define BERTH_CLIENTS_AGENT_SIMULATION_H_

#include <grpcpp/security/credentials.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "berth/config/v1/config.pb.h"
#include "clients/agent/sim_node.h"

namespace berth {

inline constexpr size_t kMaxSimulatedNodes = 200000;
inline constexpr int kMaxConnections = 64;

class SimShard;

class Simulation {
 public:
  struct Counters {
    size_t nodes = 0;
    size_t registered = 0;
    size_t running = 0;    // tasks, now
    uint64_t started = 0;  // tasks, ever
    std::string trouble;   // why one of the nodes is not registered; empty: unknown or none
  };
  // Starts to connect at once. INVALID_ARGUMENT for an invalid configuration. `on_prepare` is
  // called for each Prepare that a node gets, on any thread, and must be quick.
  static absl::StatusOr<std::unique_ptr<Simulation>> Create(
      const config::v1::Simulation& config,
      const std::shared_ptr<grpc::ChannelCredentials>& credentials,
      const std::function<void(const TaskId&)>& on_prepare = nullptr);
  ~Simulation();

  Counters counters() const;
  // The task sends `datagram` to its NOTIFY_SOCKET. False: it does not run on any of the nodes.
  bool Tell(const TaskId& id, absl::string_view datagram);

 private:
  Simulation();
  std::vector<SimBehaviour> behaviours_;  // shards have pointers into it
  std::vector<std::unique_ptr<SimShard>> shards_;
};

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_SIMULATION_H_
