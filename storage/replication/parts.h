// Groups of batches as bytes: compressed with zstd and cut into parts that etcd holds well.
#ifndef BERTH_STORAGE_REPLICATION_PARTS_H_
#define BERTH_STORAGE_REPLICATION_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/hash_chain.h"
#include "storage/store.h"

namespace berth {

// Of a part's data: larger values make etcd slow and use much memory
// (docs/developers/high-availability.md).
inline constexpr size_t kPartBytes = size_t{64} << 10;
// Of a group, not compressed: more than a committer puts into one, so larger means damaged.
inline constexpr size_t kMaxReplicatedGroupBytes = size_t{256} << 20;
inline constexpr size_t kMaxParts = kMaxReplicatedGroupBytes / kPartBytes;

struct ReplicatedBatches {
  ChainHash hash_before{};
  std::vector<Batch> batches;  // with consecutive sequences
  size_t bytes = 0;            // of its parts in etcd
  size_t parts = 0;
};

// Values of the parts, in order: ReplicatedPart. The same group gives the same bytes.
// INVALID_ARGUMENT: too large.
absl::StatusOr<std::vector<std::string>> EncodeParts(uint64_t term, const ChainHash& hash_before,
                                                     absl::Span<const Batch* const> batches);

// Puts the parts of one group together, in order.
class PartCollector {
 public:
  // `sequence` and `part` from the key. DATA_LOSS: not a part, or not where it belongs. A part of
  // another group for the same batches, of another term, begins anew.
  absl::Status Add(uint64_t sequence, uint32_t part, absl::string_view value);
  bool complete() const { return parts_ != 0 && next_ == parts_; }
  bool empty() const { return next_ == 0; }
  // The group. DATA_LOSS: damaged.
  absl::StatusOr<ReplicatedBatches> Take();

 private:
  uint64_t first_ = 0, last_ = 0, term_ = 0;
  uint32_t next_ = 0, parts_ = 0;
  size_t bytes_ = 0;
  std::string checksum_, data_;
};

}  // namespace berth

#endif  // BERTH_STORAGE_REPLICATION_PARTS_H_
