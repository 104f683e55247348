// Kv: what Berth needs of etcd: transactions on its keys, and nothing else. No leases, no locks and
// no watches: who leads and what is committed follow from compared revisions alone, and readers ask
// again. Implementations: EtcdClient (storage/etcd/etcd_client.h) and, for tests and simulation,
// SimulatedEtcd (tests/simulation/etcd/simulated_etcd.h).
#ifndef BERTH_STORAGE_ETCD_KV_H_
#define BERTH_STORAGE_ETCD_KV_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace berth {

// One key, as of the transaction that read it. Revisions number etcd's writes.
struct KvItem {
  std::string key, value;
  int64_t create_revision = 0;  // of the write that created it
  int64_t mod_revision = 0;     // of the last write
};

// `revision` is equal to the key's; 0 for a key that does not exist.
struct KvCompare {
  enum class Field : uint8_t { kCreateRevision, kModRevision };
  std::string key;
  Field field = Field::kModRevision;
  int64_t revision = 0;
};

struct KvOp {
  enum class Kind : uint8_t { kGet, kPut, kDelete };
  Kind kind = Kind::kGet;
  std::string key;
  std::string end = {};    // kGet, kDelete: keys from `key` to before `end`; empty: only `key`
  std::string value = {};  // kPut
  int64_t limit = 0;       // kGet: of items; 0: none
};

// Runs `then` if all of `compares` hold, otherwise `otherwise`: all of it at one revision.
struct KvTxn {
  std::vector<KvCompare> compares;
  std::vector<KvOp> then;
  std::vector<KvOp> otherwise = {};
  // Only for transactions that write nothing: answered by one member, which may be behind, and
  // without the others. Otherwise a read sees every write that was answered before it was sent.
  bool stale = false;
};

struct KvResult {
  bool held = false;     // the compares: `then` ran
  int64_t revision = 0;  // of etcd, after the transaction
  // One for each operation that ran, in order; empty but for kGet. Items are in order of keys.
  std::vector<std::vector<KvItem>> items;
};

// Limits of etcd's defaults.
inline constexpr size_t kMaxKvValue = size_t{1} << 20;
inline constexpr size_t kMaxKvOps = 128;

bool WritesNothing(const KvTxn& txn);
// What every Kv refuses: INVALID_ARGUMENT, with a reason. A transaction has at least one operation,
// no empty key, no range that ends before it begins, and keeps to the limits above.
absl::Status CheckTxn(const KvTxn& txn);

// Errors of all calls:
//   UNAVAILABLE, DEADLINE_EXCEEDED  no answer: a write may have happened, or may still happen later
//   RESOURCE_EXHAUSTED              etcd has no space (its quota): nothing was written
//   FAILED_PRECONDITION             this is not the etcd of before, or not one at all: its cluster
//                                   id changed or its revision went back (restored from a snapshot)
//   PERMISSION_DENIED, INVALID_ARGUMENT, INTERNAL  it refuses; nothing was written
// Thread-safe.
class Kv {
 public:
  virtual ~Kv() = default;
  virtual absl::StatusOr<KvResult> Commit(const KvTxn& txn) = 0;
  // The same for several, of which up to `in_flight` are sent without waiting for the ones before:
  // they may take effect in any order. Answers are in the order of `txns`.
  virtual std::vector<absl::StatusOr<KvResult>> CommitAll(absl::Span<const KvTxn> txns,
                                                          size_t in_flight) = 0;
  // Forgets overwritten and deleted values from before `revision`, to free space. OK if it did
  // before; INVALID_ARGUMENT for a revision that etcd has not reached.
  virtual absl::Status Compact(int64_t revision) = 0;
};

}  // namespace berth

#endif  // BERTH_STORAGE_ETCD_KV_H_
