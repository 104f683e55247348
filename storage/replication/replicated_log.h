// ReplicatedLog: the log of all members, in etcd. A batch is durable when etcd has committed all
// parts of its group, in transactions that hold only while the writer's term does. Thread-safe, as
// Kv is; one thread at a time appends.
#ifndef BERTH_STORAGE_REPLICATION_REPLICATED_LOG_H_
#define BERTH_STORAGE_REPLICATION_REPLICATED_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "berth/store/v1/replication.pb.h"
#include "storage/etcd/kv.h"
#include "storage/replication/layout.h"
#include "storage/replication/parts.h"

namespace berth {

// A write that was given up may still happen, as long as its compares hold: so each of them, if it
// happens later than it was meant, either changes nothing or must do no harm then.

// Parts that are sent without waiting for the ones before.
inline constexpr size_t kPartsInFlight = 8;

// Who leads, as a read of etcd showed it.
struct LeaderView {
  int64_t revision = 0;  // of etcd
  uint64_t term = 0;     // 0: nobody has led yet
  store::v1::LeaderRecord leader;
  store::v1::AliveRecord alive;
  int64_t alive_revision = 0;
  store::v1::BaseRecord base;
  uint64_t next_generation = 0;  // 0: this one goes on
  uint64_t earlier_terms = 0;    // GenerationRecord
};

// And the log.
struct ClusterView : LeaderView {
  std::vector<ReplicatedBatches> groups;  // after the batch asked for, in order
  bool more = false;                      // there are more; else these reach to the end
  // After the end: the parts of a group that is not complete.
  struct TornPart {
    std::string key;
    int64_t create_revision = 0;
  };
  std::vector<TornPart> torn;
  bool gap = false;  // after the end there are groups, but not the next one
};

struct ReplicatedLogSize {
  uint64_t bytes = 0, parts = 0;
};

// The transaction came from a term that is over.
absl::Status Deposed(uint64_t term);
bool IsDeposed(const absl::Status& status);

class ReplicatedLog {
 public:
  // `kv` outlives it. `sleep`: between tries; `patience`: of Append, until it reports that etcd
  // does not answer.
  struct Options {
    absl::Duration patience = absl::Seconds(3);
    std::function<void(absl::Duration)> sleep = absl::SleepFor;
  };
  ReplicatedLog(Kv* kv, ReplicationLayout layout, Options options);
  ReplicatedLog(Kv* kv, ReplicationLayout layout);

  // Returns when the batches are durable: etcd has all parts. Safe to repeat with the same batches.
  // ABORTED (IsDeposed): another term has begun, and the batches may or may not be part of it.
  // RESOURCE_EXHAUSTED: etcd is full or does not answer; try the same batches again. Other errors:
  // etcd refuses, or holds something else there.
  // `size`: what is in etcd then, of these batches.
  absl::Status Append(uint64_t term, const ChainHash& hash_before,
                      absl::Span<const Batch* const> batches, ReplicatedLogSize* size);

  // `stale`: by one member of etcd, which may be behind.
  absl::StatusOr<ClusterView> Read(uint64_t after, bool stale);
  absl::StatusOr<std::vector<std::pair<std::string, store::v1::MemberRecord>>> ReadMembers();
  // The term now, by a read that began after the call; 0: none.
  absl::StatusOr<uint64_t> ReadTerm();

  // Begins a term if the term still is `seen`: the new term, or ABORTED. UNAVAILABLE,
  // DEADLINE_EXCEEDED: unknown; a later Read shows whether `leader` was written.
  absl::StatusOr<uint64_t> BeginTerm(uint64_t seen, const store::v1::LeaderRecord& leader);
  // All of these are ABORTED (IsDeposed) once the term is over, and change nothing then.
  // Deletes these parts, unless they were written again since.
  absl::Status Cut(uint64_t term, absl::Span<const ClusterView::TornPart> parts);
  absl::Status Beat(uint64_t term, const store::v1::AliveRecord& alive);
  // Deletes the groups up to the batch `through`, which must be the last of its group. ABORTED also
  // if the base was moved meanwhile; it never goes back.
  absl::Status Trim(uint64_t term, uint64_t through, const ChainHash& hash);

  // As Trim, but only deletes, which a full etcd still does; the base follows with the next Trim.
  absl::Status DeleteThrough(uint64_t term, uint64_t through);

  absl::Status WriteMember(const std::string& name, const store::v1::MemberRecord& record);
  absl::Status DeleteMember(uint64_t term, const std::string& name);
  // Forgets old values in etcd.
  absl::Status Compact(int64_t revision) { return kv_->Compact(revision); }

  const ReplicationLayout& layout() const { return layout_; }
  // Newest revision of etcd that an answer had.
  int64_t revision() const { return revision_.load(); }

 private:
  KvCompare Holds(uint64_t term) const;
  absl::StatusOr<KvResult> Commit(const KvTxn& txn);
  absl::Status Fenced(uint64_t term, std::vector<KvCompare> compares, std::vector<KvOp> ops);
  // Of the parts that are not committed yet, those that are by now; true: all are.
  absl::StatusOr<bool> TryAppend(uint64_t term, const std::vector<KvTxn>& txns,
                                 std::vector<bool>& done);
  absl::Status ReadGroups(uint64_t after, bool stale, ClusterView* view);

  Kv* const kv_;
  const ReplicationLayout layout_;
  const Options options_;
  std::atomic<int64_t> revision_{0};
};

}  // namespace berth

#endif  // BERTH_STORAGE_REPLICATION_REPLICATED_LOG_H_
