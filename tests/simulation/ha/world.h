// A cluster with high availability in simulated time, from one seed: hosts, etcd, clients and
// agents, with faults, and what must be true of them:
//
//   kept      every acknowledged change is in the final state
//   one log   all hosts learn of the same turn for each revision
//   terms     parts are written in the term of the leader only, and terms never go back in the log
//   history   what clients saw of each job is linearizable
//   fence     a node is fenced only after its agent's lease is over, by true time
//   same      a standby's state gives the leader's records
//   end       without faults a server leads, and all clients get answers
#ifndef BERTH_TESTS_SIMULATION_HA_WORLD_H_
#define BERTH_TESTS_SIMULATION_HA_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "berth/store/v1/replication.pb.h"
#include "tests/simulation/dice.h"
#include "tests/simulation/etcd/simulated_etcd.h"
#include "tests/simulation/ha/history.h"
#include "tests/simulation/ha/host.h"
#include "tests/simulation/scheduler.h"

namespace berth::simulation {

struct HaOptions {
  uint64_t seed = 1;
  double hours = 1;  // with faults
  size_t hosts = 3;
  size_t clients = 4, agents = 2;
  bool print = false;
};

struct HaOutcome {
  std::string failure;  // empty: all rules hold
  uint64_t steps = 0, operations = 0, unanswered = 0, terms = 0, faults = 0, fences = 0, cuts = 0;
};

class HaWorld {
 public:
  explicit HaWorld(const HaOptions& options);
  ~HaWorld();
  HaOutcome Run();

 private:
  struct Client;
  struct Agent;

  void Fail(const std::string& what);
  void Note(const std::string& what);
  void MakeHosts();
  // ---- Clients
  void Begin(Client& client);
  void Try(Client& client, uint64_t attempt);
  void Answered(Client& client, uint64_t attempt, absl::StatusOr<int64_t> result);
  // ---- Agents
  void Beat(Agent& agent);
  void Acked(Agent& agent, absl::Duration sent);
  void CheckFence(const Host& host, const Event& event);
  // ---- Faults
  void Faults();
  void OneFault();
  void Heal();
  // ---- Rules
  void OnWrite(const std::string& key, const KvItem* before, const KvItem* after);
  void OnDurable(const Host& host, uint64_t revision, const std::string& turn);
  void CheckEnd();
  bool Lost() { return dice_.Chance(healed_ ? 0 : 0.02); }
  absl::Duration Delay() { return dice_.Around(absl::Milliseconds(2)); }

  const HaOptions options_;
  Dice dice_;
  Scheduler scheduler_;
  absl::Duration horizon_ = absl::InfiniteDuration();
  SimulatedEtcd etcd_;
  ReplicationLayout layout_{"simulated", 1};
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::vector<std::unique_ptr<Host>>
      hosts_;  // go first: at their end they answer clients and agents
  ActorPtr world_ = std::make_shared<Actor>();
  bool healed_ = false;
  std::map<std::string, std::vector<Operation>> histories_;  // by job
  std::map<uint64_t, std::string> turns_;                    // by revision
  std::map<uint64_t, uint64_t> part_terms_;                  // by the group's first batch
  HaOutcome outcome_;
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_HA_WORLD_H_
