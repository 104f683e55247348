#include "storage/replication/parts.h"

#include <openssl/sha.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/replication.pb.h"

namespace berth {
namespace {

namespace pb = store::v1;

constexpr int kLevel = 1;  // zstd: measured 7 times smaller for submits, at 400 MB/s

std::string Checksum(absl::string_view bytes) {
  std::string hash(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(),
         reinterpret_cast<uint8_t*>(hash.data()));
  return hash;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("etcd's log: ", what));
}

std::string Serialize(const ChainHash& hash_before, absl::Span<const Batch* const> batches) {
  pb::ReplicatedGroup group;
  group.set_hash_before(ChainHashBytes(hash_before));
  for (const Batch* batch : batches) {
    pb::ReplicatedBatch* out = group.add_batches();
    out->set_log(batch->log);
    out->set_newest_format(batch->newest_format);
    out->mutable_records()->Reserve(static_cast<int>(batch->records.size()));
    for (const Record& record : batch->records) {
      pb::ReplicatedRecord* to = out->add_records();
      to->set_kind(static_cast<uint32_t>(record.kind));
      to->set_key(record.key);
      if (record.value.has_value()) to->set_value(*record.value);
    }
  }
  return group.SerializeAsString();
}

absl::StatusOr<std::string> Compress(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return absl::InternalError(ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

absl::StatusOr<std::string> Decompress(const std::string& bytes) {
  const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size > kMaxReplicatedGroupBytes) return Damaged("a group of unknown or excessive size");
  std::string out(size, '\0');
  const size_t done = ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(done) != 0) return Damaged(ZSTD_getErrorName(done));
  if (done != size) return Damaged("a group ends early");
  return out;
}

absl::Status Decode(pb::ReplicatedBatch& from, Batch* to) {
  to->log = std::move(*from.mutable_log());
  to->newest_format = from.newest_format();
  to->records.reserve(static_cast<size_t>(from.records_size()));
  for (pb::ReplicatedRecord& record : *from.mutable_records()) {
    if (record.kind() >= kRecordKinds) return Damaged("a record of an unknown kind");
    Record& out = to->records.emplace_back();
    out.kind = static_cast<RecordKind>(record.kind());
    out.key = std::move(*record.mutable_key());
    if (record.has_value()) out.value = std::move(*record.mutable_value());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> EncodeParts(uint64_t term, const ChainHash& hash_before,
                                                     absl::Span<const Batch* const> batches) {
  const std::string group = Serialize(hash_before, batches);
  if (group.size() > kMaxReplicatedGroupBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a group of ", group.size(), " bytes is too large for etcd's log"));
  }
  absl::StatusOr<std::string> compressed = Compress(group);
  if (!compressed.ok()) return compressed.status();
  const absl::string_view data = *compressed;
  pb::ReplicatedPart part;
  part.set_term(term);
  part.set_first(batches.front()->sequence);
  part.set_last(batches.back()->sequence);
  part.set_checksum(Checksum(data));
  const size_t parts = (data.size() + kPartBytes - 1) / kPartBytes;
  part.set_parts(static_cast<uint32_t>(parts));
  std::vector<std::string> values;
  values.reserve(parts);
  for (size_t i = 0; i < parts; ++i) {
    part.set_part(static_cast<uint32_t>(i));
    const absl::string_view piece = data.substr(i * kPartBytes, kPartBytes);
    part.set_data(piece.data(), piece.size());
    values.push_back(part.SerializeAsString());
  }
  return values;
}

absl::Status PartCollector::Add(uint64_t sequence, uint32_t part, absl::string_view value) {
  pb::ReplicatedPart got;
  if (!got.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return Damaged(absl::StrCat("part ", part, " of batch ", sequence, " is not valid"));
  }
  if (got.first() != sequence || got.part() != part || got.last() < got.first() ||
      got.parts() > kMaxParts || part >= got.parts()) {
    return Damaged(absl::StrCat("part ", part, " of batch ", sequence, " does not belong there"));
  }
  const bool same = next_ != 0 && first_ == got.first() && term_ == got.term() &&
                    checksum_ == got.checksum() && part == next_;
  if (!same) *this = PartCollector();
  if (part != next_) return absl::OkStatus();  // its beginning is missing
  first_ = got.first();
  last_ = got.last();
  term_ = got.term();
  parts_ = got.parts();
  checksum_ = std::move(*got.mutable_checksum());
  data_ += got.data();
  bytes_ += value.size();
  ++next_;
  return absl::OkStatus();
}

absl::StatusOr<ReplicatedBatches> PartCollector::Take() {
  const PartCollector taken = std::exchange(*this, PartCollector());
  const std::string at = absl::StrCat("the group of batch ", taken.first_);
  if (Checksum(taken.data_) != taken.checksum_) return Damaged(at + " has another checksum");
  absl::StatusOr<std::string> bytes = Decompress(taken.data_);
  if (!bytes.ok()) return bytes.status();
  pb::ReplicatedGroup group;
  if (!group.ParseFromString(*bytes)) return Damaged(at + " is not valid");
  absl::StatusOr<ChainHash> hash = ParseChainHash(group.hash_before());
  if (!hash.ok()) return Damaged(at + " has no valid hash");
  if (static_cast<uint64_t>(group.batches_size()) != taken.last_ - taken.first_ + 1) {
    return Damaged(at + " has another number of batches");
  }
  ReplicatedBatches out{.hash_before = *hash, .bytes = taken.bytes_, .parts = taken.parts_};
  uint64_t sequence = taken.first_;
  for (pb::ReplicatedBatch& batch : *group.mutable_batches()) {
    Batch& to = out.batches.emplace_back();
    to.sequence = sequence++;
    if (absl::Status status = Decode(batch, &to); !status.ok()) return status;
  }
  return out;
}

}  // namespace berth
