// A cluster with all its events, from one seed.
#ifndef BERTH_TESTS_SIMULATION_WORLD_H_
#define BERTH_TESTS_SIMULATION_WORLD_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/clients.h"
#include "tests/simulation/collectives.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/network.h"
#include "tests/simulation/options.h"
#include "tests/simulation/safety.h"
#include "tests/simulation/server.h"

namespace berth::simulation {

struct Outcome {
  std::string failure;  // empty: no rule was violated
  uint64_t hash = 0;    // over all events
  absl::Duration simulated;
  uint64_t steps = 0, starts = 0, jobs = 0, hangs = 0;
};

class World final : public FaultTarget {
 public:
  explicit World(const Options& options);
  ~World() override;

  // Runs with faults for the given hours, then without until all nodes and jobs have recovered.
  Outcome Run();
  const Trace& trace() const { return trace_; }

  // FaultTarget
  Network& network() override { return *network_; }
  Server& server() override { return *server_; }
  size_t nodes() const override { return machines_.size(); }
  Machine& machine(size_t node) override { return *machines_[node]; }
  Clients& clients() override { return *clients_; }
  const Safety& safety() const override { return *safety_; }
  void JumpServerClock(absl::Duration by) override;
  void StartServer() override;
  void Backup() override;
  void RestoreServer(bool fresh) override;

 private:
  void Fail(const std::string& what);
  void MakeMachines();
  void Install(std::vector<NodeRoom> rooms, std::vector<MachineSpec> specs);
  void MakeServer();
  void MakeClients();
  void CreateQueues(int count);
  void CreateRacks();
  bool StepUntil(absl::Duration limit);
  // Fails unless `missing` returns "" within the bound.
  void Expect(absl::Duration bound, const std::function<std::string()>& missing);
  // The rule "still": now, and every few seconds.
  void WatchHangs();
  void CheckHang(const Job& job);
  std::string UnwellNodes();
  std::string UnfinishedJobs();

  const Options options_;
  Dice dice_;
  Scheduler scheduler_;
  Trace trace_;
  std::string failure_;
  const absl::Time start_ = absl::FromUnixSeconds(1'800'000'000);
  std::unique_ptr<Network> network_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Safety> safety_;
  std::unique_ptr<Collectives> collectives_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::unique_ptr<Clients> clients_;
  std::unique_ptr<Faults> faults_;
  std::vector<std::string> queues_;
  const ActorPtr watcher_ = std::make_shared<Actor>();
  std::set<std::pair<JobId, uint32_t>> hangs_;  // found by the server: the job, and its epoch
  int64_t shared_memory_bytes_ = 0;             // see Workload
  int rack_nodes_ = 0;
  bool borrows_ = false;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_WORLD_H_
