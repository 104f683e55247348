#include "storage/rocksdb/rocksdb_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "berth/store/v1/store.pb.h"
#include "storage/codec_common.h"
#include "storage/keys.h"

namespace berth {
namespace {

namespace pb = codec::pb;
using rocksdb::Slice;

Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view ToView(Slice slice) { return {slice.data(), slice.size()}; }

absl::Status RefuseGap(uint64_t expected, uint64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch ", found, " where batch ", expected, " must follow"));
}

bool BelongsToStore(const Record& record) {
  return record.kind == RecordKind::kLog ||
         (record.kind == RecordKind::kMeta && record.key == kStoreKey);
}

}  // namespace

// ---- Opening

RocksDbStore::RocksDbStore(RocksDbOptions options)
    : options_(std::move(options)),
      troubles_(std::make_shared<DiskTroubles>()),
      complaints_(std::make_shared<ComplaintLog>(options_.directory)) {
  std::shared_ptr<rocksdb::FileSystem> below = options_.file_system;
  if (below == nullptr) below = rocksdb::FileSystem::Default();
  env_ = rocksdb::NewCompositeEnv(std::make_shared<WatchedFileSystem>(below, troubles_));
}

RocksDbStore::~RocksDbStore() {
  if (database_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    database_->DestroyColumnFamilyHandle(family);
  }
  database_->Close();
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(RocksDbOptions options) {
  std::unique_ptr<RocksDbStore> store(new RocksDbStore(std::move(options)));
  if (absl::Status status = store->OpenDatabase(); !status.ok()) return status;
  if (absl::Status status = store->ReadMeta(); !status.ok()) return status;
  if (absl::Status status = store->VerifyTail(); !status.ok()) return status;
  return store;
}

absl::Status RocksDbStore::OpenDatabase() {
  const std::string& directory = options_.directory;
  const std::vector<rocksdb::ColumnFamilyDescriptor> known = ColumnFamilies();
  if (absl::Status status = CheckFamilies(known); !status.ok()) return status;

  rocksdb::DB* database = nullptr;
  const rocksdb::DBOptions settings = DatabaseOptions(env_.get(), complaints_);
  const rocksdb::Status status =
      options_.read_only
          ? rocksdb::DB::OpenForReadOnly(settings, directory, known, &families_, &database)
          : rocksdb::DB::Open(settings, directory, known, &families_, &database);
  database_.reset(database);
  if (status.ok()) return absl::OkStatus();
  if (status.IsIOError() && absl::StrContains(status.ToString(), "lock")) {
    return absl::UnavailableError(
        absl::StrCat(directory, ": in use by another process (", status.ToString(), ")"));
  }
  return Translate(status);
}

// A newer version may keep more kinds of records: refuse before anything is changed.
absl::Status RocksDbStore::CheckFamilies(
    const std::vector<rocksdb::ColumnFamilyDescriptor>& known) {
  const std::string& directory = options_.directory;
  if (env_->FileExists(directory + "/CURRENT").IsNotFound()) {
    if (options_.read_only) return absl::NotFoundError(directory + ": no store there");
    return Translate(env_->CreateDirIfMissing(directory));
  }
  std::vector<std::string> present;
  const rocksdb::Status status = rocksdb::DB::ListColumnFamilies(
      DatabaseOptions(env_.get(), complaints_), directory, &present);
  if (!status.ok()) return Translate(status);
  for (const std::string& name : present) {
    if (std::none_of(known.begin(), known.end(),
                     [&](const auto& family) { return family.name == name; })) {
      return absl::FailedPreconditionError(absl::StrCat(
          directory, ": holds \"", name, "\" records: written by a newer version of berthd"));
    }
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::ReadMeta() {
  std::string value;
  const rocksdb::Status found =
      database_->Get(rocksdb::ReadOptions(), Family(RecordKind::kMeta), ToSlice(kStoreKey), &value);
  if (found.IsNotFound()) return MakeMeta();
  if (!found.ok()) return Translate(found);

  pb::Meta meta;
  if (!meta.ParseFromString(value)) return Damaged("meta store: not a valid record");
  if (meta.format_version() > kStoreFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.directory, ": store format ", meta.format_version(),
                     ", this berthd reads up to ", kStoreFormat, ": written by a newer version"));
  }
  absl::StatusOr<ChainHash> hash = ParseChainHash(meta.last_hash());
  if (!hash.ok()) return Damaged(absl::StrCat("meta store: ", hash.status().message()));
  last_hash_ = *hash;
  last_sequence_ = meta.last_sequence();
  cluster_id_ = meta.cluster_id();
  meta.clear_last_hash();
  meta.clear_last_sequence();
  meta_rest_ = meta.SerializeAsString();
  return absl::OkStatus();
}

// Only for an empty database: one that has records but no meta record has lost it.
absl::Status RocksDbStore::MakeMeta() {
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    const auto records = Iterate(static_cast<RecordKind>(kind), /*fill_cache=*/false);
    records->SeekToFirst();
    if (!records->status().ok()) return Translate(records->status());
    if (records->Valid()) return Damaged("holds records but no meta record");
  }
  if (options_.read_only) return absl::NotFoundError(options_.directory + ": an empty store");
  pb::Meta meta;
  meta.set_format_version(kStoreFormat);
  meta.set_cluster_id(options_.cluster_id.empty() ? env_->GenerateUniqueId() : options_.cluster_id);
  codec::SetTime(absl::Now(), meta.mutable_created());
  cluster_id_ = meta.cluster_id();
  meta_rest_ = meta.SerializeAsString();
  pending_.Clear();
  pending_.Put(Family(RecordKind::kMeta), ToSlice(kStoreKey), EncodeMeta(0, last_hash_));
  return Write(/*sync=*/true);
}

std::string RocksDbStore::EncodeMeta(uint64_t sequence, const ChainHash& hash) const {
  pb::Meta changing;
  changing.set_last_sequence(sequence);
  changing.set_last_hash(ChainHashBytes(hash));
  return meta_rest_ + changing.SerializeAsString();
}

// ---- Verifying

absl::Status RocksDbStore::VerifyTail() const {
  const auto log = Iterate(RecordKind::kLog, /*fill_cache=*/false);
  uint64_t first = last_sequence_ + 1;
  size_t bytes = 0;
  for (log->SeekToLast(); log->Valid() && bytes < kVerifiedTailBytes; log->Prev()) {
    absl::StatusOr<uint64_t> sequence = ParseSequenceKey(ToView(log->key()));
    if (!sequence.ok()) return Damaged(absl::StrCat("log: ", sequence.status().message()));
    first = *sequence;
    bytes += log->value().size();
  }
  if (!log->status().ok()) return Translate(log->status());
  return VerifyFrom(first, [](uint64_t, absl::string_view) { return absl::OkStatus(); });
}

absl::Status RocksDbStore::VerifyChain(
    absl::FunctionRef<absl::Status(uint64_t, absl::string_view)> visit) const {
  const auto log = Iterate(RecordKind::kLog, /*fill_cache=*/false);
  log->SeekToFirst();
  if (!log->status().ok()) return Translate(log->status());
  absl::StatusOr<uint64_t> first =
      log->Valid() ? ParseSequenceKey(ToView(log->key())) : last_sequence_ + 1;
  if (!first.ok()) return Damaged(absl::StrCat("log: ", first.status().message()));
  return VerifyFrom(*first, visit);
}

// The hash before the oldest kept entry is gone with the entry before it; that one is taken as it
// stands.
absl::Status RocksDbStore::VerifyFrom(
    uint64_t first, absl::FunctionRef<absl::Status(uint64_t, absl::string_view)> visit) const {
  uint64_t expected = first;
  ChainHash hash{};
  bool have_hash = first <= 1;
  const auto log = Iterate(RecordKind::kLog, /*fill_cache=*/false);
  for (log->Seek(SequenceKey(first)); log->Valid(); log->Next(), ++expected) {
    const absl::StatusOr<ChainLink> link = ParseChainEntry(ToView(log->value()));
    if (log->key() != Slice(SequenceKey(expected)) || !link.ok()) {
      return Damaged(absl::StrCat("log ", expected, ": missing or not an entry"));
    }
    hash = have_hash ? NextChainHash(hash, expected, link->turn) : link->hash;
    if (hash != link->hash) return Damaged(absl::StrCat("log ", expected, ": broken hash chain"));
    have_hash = true;
    if (absl::Status status = visit(expected, link->turn); !status.ok()) return status;
  }
  if (!log->status().ok()) return Translate(log->status());
  if (expected != last_sequence_ + 1 || hash != last_hash_) {
    return Damaged(absl::StrCat("the log ends with batch ", expected - 1,
                                ", the meta record with batch ", last_sequence_.load(),
                                expected == last_sequence_ + 1 ? " of another hash" : ""));
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::VerifyChecksums() { return Translate(database_->VerifyChecksum()); }

// ---- Reading

std::unique_ptr<rocksdb::Iterator> RocksDbStore::Iterate(RecordKind kind, bool fill_cache) const {
  rocksdb::ReadOptions options;
  options.fill_cache = fill_cache;
  if (!fill_cache) options.readahead_size = size_t{2} << 20;
  return std::unique_ptr<rocksdb::Iterator>(database_->NewIterator(options, Family(kind)));
}

absl::Status RocksDbStore::Load(
    absl::FunctionRef<absl::Status(RecordKind, absl::string_view, absl::string_view)> visit) {
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    if (static_cast<RecordKind>(kind) == RecordKind::kLog) continue;
    absl::Status status = LoadKind(static_cast<RecordKind>(kind), visit);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::LoadKind(
    RecordKind kind,
    absl::FunctionRef<absl::Status(RecordKind, absl::string_view, absl::string_view)> visit) const {
  const auto records = Iterate(kind, /*fill_cache=*/false);
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    const absl::string_view key = ToView(records->key());
    if (kind == RecordKind::kMeta && key == kStoreKey) continue;
    absl::Status status = visit(kind, key, ToView(records->value()));
    if (!status.ok()) return status;
  }
  return Translate(records->status());
}

absl::StatusOr<std::string> RocksDbStore::Read(RecordKind kind, absl::string_view key) const {
  std::string value;
  const rocksdb::Status status =
      database_->Get(rocksdb::ReadOptions(), Family(kind), ToSlice(key), &value);
  if (status.ok()) return value;
  if (!status.IsNotFound()) return Translate(status);
  return absl::NotFoundError(
      absl::StrCat(RecordKindName(kind), " ", PrintableKey(kind, key), ": no such record"));
}

absl::StatusOr<std::vector<LogEntry>> RocksDbStore::ReadLog(uint64_t after, size_t limit) const {
  std::vector<LogEntry> entries;
  if (after >= last_sequence_.load()) return entries;
  const auto log = Iterate(RecordKind::kLog, /*fill_cache=*/true);
  size_t bytes = 0;
  for (log->Seek(SequenceKey(after + 1)); log->Valid(); log->Next()) {
    const absl::StatusOr<uint64_t> sequence = ParseSequenceKey(ToView(log->key()));
    const absl::StatusOr<ChainLink> link = ParseChainEntry(ToView(log->value()));
    if (!sequence.ok() || !link.ok()) return Damaged("log: an entry that is none");
    if (entries.empty() && *sequence != after + 1) break;
    bytes += link->turn.size();
    if (entries.size() == limit || (!entries.empty() && bytes > kMaxReadLogBytes)) break;
    entries.push_back({.sequence = *sequence, .turn = std::string(link->turn)});
  }
  if (!log->status().ok()) return Translate(log->status());
  if (!entries.empty() || limit == 0) return entries;
  return absl::OutOfRangeError(absl::StrCat("log ", after + 1, ": no longer kept"));
}

// ---- Writing

absl::Status RocksDbStore::Append(const std::vector<const Batch*>& batches) {
  if (batches.empty()) return absl::OkStatus();
  uint64_t sequence = last_sequence_.load();
  ChainHash hash = last_hash_;
  pending_.Clear();
  for (const Batch* batch : batches) {
    if (absl::Status status = AddBatch(*batch, ++sequence, &hash); !status.ok()) return status;
  }
  pending_.Put(Family(RecordKind::kMeta), ToSlice(kStoreKey), EncodeMeta(sequence, hash));
  if (absl::Status status = Write(/*sync=*/true); !status.ok()) return status;
  last_hash_ = hash;
  last_sequence_ = sequence;
  return absl::OkStatus();
}

absl::Status RocksDbStore::AddBatch(const Batch& batch, uint64_t sequence, ChainHash* hash) {
  if (batch.sequence != sequence) return RefuseGap(sequence, batch.sequence);
  for (const Record& record : batch.records) {
    if (BelongsToStore(record)) {
      return absl::InvalidArgumentError("a batch holds a record that belongs to the store");
    }
    if (record.value.has_value()) {
      pending_.Put(Family(record.kind), record.key, *record.value);
    } else {
      pending_.Delete(Family(record.kind), record.key);
    }
  }
  *hash = NextChainHash(*hash, sequence, batch.log);
  const std::string key = SequenceKey(sequence);
  const Slice key_slice(key);
  const std::array<Slice, 2> value = {
      Slice(reinterpret_cast<const char*>(hash->data()), hash->size()), Slice(batch.log)};
  pending_.Put(Family(RecordKind::kLog), rocksdb::SliceParts(&key_slice, 1),
               rocksdb::SliceParts(value.data(), static_cast<int>(value.size())));
  return absl::OkStatus();
}

// After a write that found no space RocksDB refuses all others until it is resumed, which begins a
// new write-ahead log file; the end of the old one, cut off in the middle of the batch, is skipped
// by a restart. A write that failed in any other way is never tried again, and neither is anything
// after a failed sync.
absl::Status RocksDbStore::Write(bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  rocksdb::Status status;
  if (full_) status = database_->Resume();
  if (status.ok()) status = database_->Write(options, &pending_);
  full_ = false;
  if (const std::string failed = troubles_->FailedSync(); !failed.empty()) {
    return absl::InternalError(absl::StrCat("sync failed: ", failed));
  }
  if (status.ok()) return absl::OkStatus();
  full_ = status.IsNoSpace() || status.IsBusy();
  if (!full_) return Translate(status);
  return absl::ResourceExhaustedError(absl::StrCat("disk full: ", troubles_->NoSpace()));
}

absl::Status RocksDbStore::TrimLog(uint64_t sequence) {
  const uint64_t last = last_sequence_.load();
  const uint64_t end = std::min(sequence, last == 0 ? 0 : last - 1) + 1;
  const std::string begin_key = SequenceKey(0);
  const std::string end_key = SequenceKey(end);
  rocksdb::Status status =
      database_->DeleteRange(rocksdb::WriteOptions(), Family(RecordKind::kLog), begin_key, end_key);
  return Translate(status);
}

// ---- Errors

absl::Status RocksDbStore::Translate(const rocksdb::Status& status) const {
  if (status.ok()) return absl::OkStatus();
  const std::string complaints = complaints_->Recent();
  const std::string text =
      absl::StrCat(options_.directory, ": ", status.ToString(),
                   complaints.empty() ? "" : absl::StrCat(" [", complaints, "]"));
  if (status.IsCorruption()) return absl::DataLossError(text);
  if (status.IsNoSpace()) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

absl::Status RocksDbStore::Damaged(absl::string_view reason) const {
  return absl::DataLossError(absl::StrCat(options_.directory, ": damaged: ", reason));
}

}  // namespace berth
