// SimulatedEtcd: a linearizable key-value store with the semantics of etcd's transactions, in
// memory and in one thread, and the faults of a network and of members that are behind:
//
//   lost before    the answer is UNAVAILABLE, and nothing happened
//   lost after     the answer is UNAVAILABLE, and it happened
//   later          the answer is DEADLINE_EXCEEDED, and it happens at some later time, or never
//   behind         a stale read shows an older state, but none older than one it showed before
//   out of order   of CommitAll, any order, and only some
//
// Each client has its own Kv.
#ifndef BERTH_TESTS_SIMULATION_HA_SIMULATED_ETCD_H_
#define BERTH_TESTS_SIMULATION_HA_SIMULATED_ETCD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/etcd/kv.h"
#include "tests/simulation/dice.h"

namespace berth::simulation {

struct EtcdFaults {
  double lost_before = 0, lost_after = 0, later = 0;  // chances, per transaction
  uint64_t behind = 0;                                // revisions, at most
};

class SimulatedEtcd {
 public:
  explicit SimulatedEtcd(uint64_t seed) : dice_(seed, 0x65746364) {}

  struct Client {
    bool cut = false;  // from now on UNAVAILABLE
    EtcdFaults faults;
    // Called before each transaction: the others go on, time passes.
    std::function<void()> between = [] {};
  };
  // `client` outlives it.
  std::unique_ptr<Kv> Connect(Client* client);

  // Writes that were delayed happen now, or are forgotten.
  void DeliverLate();
  bool full = false;  // writes are RESOURCE_EXHAUSTED

  // Called for each write that happened: the key, and the value before and after.
  std::function<void(const std::string& key, const KvItem* before, const KvItem* after)> on_write;

  int64_t revision() const { return revision_; }
  size_t bytes() const { return bytes_; }
  const KvItem* Find(const std::string& key) const;

 private:
  class ClientKv;
  using Items = std::map<std::string, KvItem>;
  struct Change {
    int64_t revision = 0;
    std::string key;
    std::optional<KvItem> after;
  };

  KvResult Apply(const KvTxn& txn);
  static KvResult Run(const Items& items, int64_t revision, const KvTxn& txn);
  void Write(const KvOp& op, int64_t revision);
  void Set(const std::string& key, std::optional<KvItem> item, int64_t revision);

  Dice dice_;
  Items items_;
  int64_t revision_ = 1;
  size_t bytes_ = 0;
  std::vector<KvTxn> late_;
  std::deque<Change> changes_;  // the last, for clients that are behind
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_HA_SIMULATED_ETCD_H_
