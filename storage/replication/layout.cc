#include "storage/replication/layout.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/keys.h"

namespace berth {
namespace {

constexpr size_t kSequenceBytes = 8, kIndexBytes = 4;

std::string BigEndian(uint32_t value) {
  std::string bytes(kIndexBytes, '\0');
  for (size_t i = 0; i < kIndexBytes; ++i) {
    bytes[i] = static_cast<char>(value >> (8 * (kIndexBytes - 1 - i)));
  }
  return bytes;
}

uint32_t FromBigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

ReplicationLayout::ReplicationLayout(absl::string_view cluster_id, uint64_t incarnation)
    : prefix_(absl::StrCat(kReplicationRoot, cluster_id, "/", incarnation, "/")) {}

std::string ReplicationLayout::Member(absl::string_view name) const {
  return absl::StrCat(prefix_, "members/", name);
}

std::string ReplicationLayout::Part(uint64_t sequence, uint32_t part) const {
  return absl::StrCat(prefix_, "log/", SequenceKey(sequence), BigEndian(part));
}

absl::StatusOr<std::pair<uint64_t, uint32_t>> ReplicationLayout::ParsePart(
    absl::string_view key) const {
  if (!absl::ConsumePrefix(&key, prefix_) || !absl::ConsumePrefix(&key, "log/") ||
      key.size() != kSequenceBytes + kIndexBytes) {
    return absl::DataLossError("a key of etcd's log is not a part's");
  }
  const auto sequence = ParseSequenceKey(key.substr(0, kSequenceBytes));
  if (!sequence.ok()) return absl::DataLossError(sequence.status().message());
  return std::pair(*sequence, FromBigEndian(key.substr(kSequenceBytes)));
}

absl::StatusOr<FoundGeneration> ParseGenerationKey(absl::string_view key) {
  FoundGeneration found;
  if (absl::ConsumePrefix(&key, kReplicationRoot)) {
    const std::vector<absl::string_view> words = absl::StrSplit(key, absl::MaxSplits('/', 2));
    if (words.size() == 3 && !words[0].empty() && absl::SimpleAtoi(words[1], &found.incarnation)) {
      found.cluster_id = std::string(words[0]);
      return found;
    }
  }
  return absl::DataLossError("a key of etcd is not one of a Berth cluster");
}

}  // namespace berth
