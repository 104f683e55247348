// Keys of a cluster's high availability in etcd: /berth/CLUSTER-ID/INCARNATION/...
//
//   leader                       LeaderRecord; who leads. Its mod_revision is the term
//   alive                        AliveRecord
//   members/NAME                 MemberRecord
//   base                         BaseRecord
//   generation                   GenerationRecord
//   log/SEQUENCE/PART            ReplicatedPart; 8 and 4 bytes, big-endian. SEQUENCE: the group's
//                                first batch
//
// A restored store has another incarnation, and so begins anew under other keys.
#ifndef BERTH_STORAGE_REPLICATION_LAYOUT_H_
#define BERTH_STORAGE_REPLICATION_LAYOUT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr char kReplicationRoot[] = "/berth/";

class ReplicationLayout {
 public:
  ReplicationLayout(absl::string_view cluster_id, uint64_t incarnation);

  std::string Leader() const { return prefix_ + "leader"; }
  std::string Alive() const { return prefix_ + "alive"; }
  std::string Base() const { return prefix_ + "base"; }
  std::string Generation() const { return prefix_ + "generation"; }
  std::string Member(absl::string_view name) const;
  std::string Members() const { return prefix_ + "members/"; }
  std::string MembersEnd() const { return prefix_ + "members0"; }  // '0' follows '/'
  std::string Part(uint64_t sequence, uint32_t part) const;
  std::string LogEnd() const { return prefix_ + "log0"; }
  const std::string& prefix() const { return prefix_; }

  // From a key below log/: first batch of the group, part. DATA_LOSS: it is no such key.
  absl::StatusOr<std::pair<uint64_t, uint32_t>> ParsePart(absl::string_view key) const;

 private:
  std::string prefix_;
};

// GenerationRecord.next of a cluster that left etcd.
inline constexpr uint64_t kNoGeneration = UINT64_MAX;

// What a key of a cluster's generation tells of it.
struct FoundGeneration {
  std::string cluster_id;
  uint64_t incarnation = 0;
  bool operator==(const FoundGeneration&) const = default;
};
// DATA_LOSS: not a key of a generation.
absl::StatusOr<FoundGeneration> ParseGenerationKey(absl::string_view key);

}  // namespace berth

#endif  // BERTH_STORAGE_REPLICATION_LAYOUT_H_
