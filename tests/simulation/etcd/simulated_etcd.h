// SimulatedEtcd: a linearizable key-value store with the semantics of etcd's transactions, in
// memory and in one thread, and the faults of a network and of members that are behind:
//
//   lost before    the answer is UNAVAILABLE, and nothing happened
//   lost after     the answer is UNAVAILABLE, and it happened
//   later          the answer is DEADLINE_EXCEEDED, and it happens at some later time, or never
//   behind         a stale read shows an older state, but none older than one it showed before
//   out of order   of CommitAll, any order, and only some
//
// Each client has its own Kv. The same seed and the same calls give the same answers.
#ifndef BERTH_TESTS_SIMULATION_ETCD_SIMULATED_ETCD_H_
#define BERTH_TESTS_SIMULATION_ETCD_SIMULATED_ETCD_H_

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
  // Chance, per transaction, that a late write of any client happens just before it.
  double delivered = 0;
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
  size_t late() const { return late_.size(); }

  // Puts are RESOURCE_EXHAUSTED, until it is set to false (an operator disarms the alarm).
  bool full = false;
  // A put that needs more than this, with all that is not compacted, makes it full. 0: no limit.
  size_t quota_bytes = 0;

  // Called for each write that happened: the key, and the value before and after.
  std::function<void(const std::string& key, const KvItem* before, const KvItem* after)> on_write;

  int64_t revision() const { return revision_; }
  size_t bytes() const { return bytes_; }                            // of what is current
  size_t bytes_with_history() const { return bytes_ + old_bytes_; }  // what the quota limits
  const KvItem* Find(const std::string& key) const;

 private:
  class ClientKv;
  using Items = std::map<std::string, KvItem>;
  struct Change {
    int64_t revision = 0;
    std::string key;
    std::optional<KvItem> after;
  };

  struct Old {  // a value that was overwritten or deleted
    int64_t revision = 0;
    size_t bytes = 0;
  };

  bool HasSpace(const KvTxn& txn);
  KvResult Apply(const KvTxn& txn);
  static KvResult Read(const Items& items, int64_t revision, const KvTxn& txn);
  void Write(const KvOp& op, int64_t revision);
  void Set(const std::string& key, std::optional<KvItem> item, int64_t revision);
  absl::Status Compact(int64_t revision);
  void DeliverOne();

  Dice dice_;
  Items items_;
  int64_t revision_ = 1;
  size_t bytes_ = 0, old_bytes_ = 0;
  int64_t compacted_ = 0;
  std::vector<KvTxn> late_;
  std::deque<Old> old_;
  std::deque<Change> changes_;  // the last, for clients that are behind
};

}  // namespace berth::simulation

#endif  // BERTH_TESTS_SIMULATION_ETCD_SIMULATED_ETCD_H_
