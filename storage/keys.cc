#include "storage/keys.h"

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace berth {
namespace {

template <class Number>
void AppendBigEndian(Number number, std::string* out) {
  for (int shift = 8 * static_cast<int>(sizeof(Number)) - 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

template <class Number>
std::string BigEndian(Number number) {
  std::string out;
  AppendBigEndian(number, &out);
  return out;
}

template <class Number>
Number ReadBigEndian(absl::string_view bytes) {
  Number number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number = static_cast<Number>((number << 8) | static_cast<uint8_t>(bytes[i]));
  }
  return number;
}

absl::Status CheckLength(absl::string_view key, size_t length) {
  if (key.size() == length) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the key has ", key.size(), " bytes instead of ", length));
}

template <class IdType>
absl::StatusOr<IdType> ParseId(absl::string_view key) {
  using Number = typename IdType::Value;
  if (absl::Status status = CheckLength(key, sizeof(Number)); !status.ok()) return status;
  return IdType{ReadBigEndian<Number>(key)};
}

bool IsPrintable(absl::string_view key) {
  for (char c : key) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return !key.empty();
}

// The key as a number; "" if its length does not fit the kind.
std::string NumericKey(RecordKind kind, absl::string_view key) {
  const bool small =
      kind == RecordKind::kQueue || kind == RecordKind::kNode || kind == RecordKind::kHyperNode;
  if (small && key.size() == 4) return absl::StrCat(ReadBigEndian<uint32_t>(key));
  if (!small && key.size() == 8) return absl::StrCat(ReadBigEndian<uint64_t>(key));
  if (kind != RecordKind::kTask || key.size() != 12) return "";
  return absl::StrCat(ReadBigEndian<uint64_t>(key), "/", ReadBigEndian<uint32_t>(key.substr(8)));
}

}  // namespace

absl::string_view RecordKindName(RecordKind kind) {
  static constexpr std::array<absl::string_view, kRecordKinds> kNames = {
      "meta", "queue", "node", "hyper_node", "job_spec", "job_status", "task", "request", "log"};
  return kNames[static_cast<size_t>(kind)];
}

std::string SequenceKey(uint64_t sequence) { return BigEndian(sequence); }
std::string QueueKey(QueueId id) { return BigEndian(id.value); }
std::string NodeKey(NodeId id) { return BigEndian(id.value); }
std::string HyperNodeKey(HyperNodeId id) { return BigEndian(id.value); }
std::string JobKey(JobId id) { return BigEndian(id.value); }

std::string RunKey(RunId id) { return absl::StrCat(kRunKeys, BigEndian(id.value)); }

absl::StatusOr<RunId> ParseRunKey(absl::string_view key) {
  if (!absl::ConsumePrefix(&key, kRunKeys)) return absl::InvalidArgumentError("not a run key");
  return ParseId<RunId>(key);
}

std::string TaskRecordKey(TaskKey task) {
  std::string key = BigEndian(task.job.value);
  AppendBigEndian(task.task, &key);
  return key;
}

absl::StatusOr<uint64_t> ParseSequenceKey(absl::string_view key) {
  if (absl::Status status = CheckLength(key, 8); !status.ok()) return status;
  return ReadBigEndian<uint64_t>(key);
}

absl::StatusOr<QueueId> ParseQueueKey(absl::string_view key) { return ParseId<QueueId>(key); }
absl::StatusOr<NodeId> ParseNodeKey(absl::string_view key) { return ParseId<NodeId>(key); }
absl::StatusOr<HyperNodeId> ParseHyperNodeKey(absl::string_view key) {
  return ParseId<HyperNodeId>(key);
}
absl::StatusOr<JobId> ParseJobKey(absl::string_view key) { return ParseId<JobId>(key); }

absl::StatusOr<TaskKey> ParseTaskRecordKey(absl::string_view key) {
  if (absl::Status status = CheckLength(key, 12); !status.ok()) return status;
  return TaskKey{.job = JobId{ReadBigEndian<uint64_t>(key)},
                 .task = ReadBigEndian<uint32_t>(key.substr(8))};
}

std::string PrintableKey(RecordKind kind, absl::string_view key) {
  if (kind == RecordKind::kMeta || kind == RecordKind::kRequest) {
    if (IsPrintable(key)) return std::string(key);
  } else if (std::string number = NumericKey(kind, key); !number.empty()) {
    return number;
  }
  return absl::StrCat("0x", absl::BytesToHexString(key));
}

absl::Status NameRecord(const absl::Status& status, RecordKind kind, absl::string_view key) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(RecordKindName(kind), " ",
                                                  PrintableKey(kind, key), ": ", status.message()));
}

}  // namespace berth
