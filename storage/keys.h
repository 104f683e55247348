// Names of record kinds, and keys: big-endian numbers, so that byte order is numeric order
// (storage/FORMAT.md).
#ifndef BERTH_STORAGE_KEYS_H_
#define BERTH_STORAGE_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/ids.h"
#include "storage/store.h"

namespace berth {

// "meta", "queue", ...: the name of the column family, also used in messages.
absl::string_view RecordKindName(RecordKind kind);

// Keys of kMeta. The first belongs to the Store itself: it is written with every batch, and a batch
// must not contain it. The last belongs to the server's LeaseKeeper and is not part of the state.
inline constexpr absl::string_view kStoreKey = "store";
inline constexpr absl::string_view kNextIdsKey = "next_ids";
inline constexpr absl::string_view kRequestMixKey = "request_mix";
inline constexpr absl::string_view kAccessKey = "access";
inline constexpr absl::string_view kPriorityClassesKey = "priority_classes";
inline constexpr absl::string_view kLeaseKey = "lease";
inline constexpr absl::string_view kRunKeys = "run/";  // prefix of RunKey

std::string SequenceKey(uint64_t sequence);
std::string QueueKey(QueueId id);
std::string NodeKey(NodeId id);
std::string HyperNodeKey(HyperNodeId id);
std::string JobKey(JobId id);
std::string TaskRecordKey(TaskKey task);
std::string RunKey(RunId id);  // for kMeta

// INVALID_ARGUMENT if the length does not fit the kind.
absl::StatusOr<uint64_t> ParseSequenceKey(absl::string_view key);
absl::StatusOr<QueueId> ParseQueueKey(absl::string_view key);
absl::StatusOr<NodeId> ParseNodeKey(absl::string_view key);
absl::StatusOr<HyperNodeId> ParseHyperNodeKey(absl::string_view key);
absl::StatusOr<JobId> ParseJobKey(absl::string_view key);
absl::StatusOr<TaskKey> ParseTaskRecordKey(absl::string_view key);
absl::StatusOr<RunId> ParseRunKey(absl::string_view key);

// The key for people: "42", "42/3", "request-7", "0x00ff" if it does not parse.
std::string PrintableKey(RecordKind kind, absl::string_view key);

// "job_status 42: REASON": adds the record's name to an error and keeps its code.
absl::Status NameRecord(const absl::Status& status, RecordKind kind, absl::string_view key);

}  // namespace berth

#endif  // BERTH_STORAGE_KEYS_H_
