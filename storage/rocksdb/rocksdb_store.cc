#include "storage/rocksdb/rocksdb_store.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "storage/codec.h"
#include "storage/codec_common.h"
#include "storage/files.h"
#include "storage/incarnation.h"
#include "storage/keys.h"

namespace berth {
namespace {

namespace pb = codec::pb;
using rocksdb::Slice;

constexpr char kRoomName[] = "/ROOM";  // written and deleted to test for free space

absl::Status RefuseGap(uint64_t expected, uint64_t found) {
  return absl::InvalidArgumentError(
      absl::StrCat("got batch ", found, ", expected batch ", expected));
}

bool BelongsToStore(const Record& record) {
  return record.kind == RecordKind::kLog ||
         (record.kind == RecordKind::kMeta && record.key == kStoreKey);
}

// With the incarnation of the store that it was copied from, agents would take it for that store.
absl::Status RefuseBackup(const RocksDbOptions& options) {
  std::error_code error;
  const auto mark = std::filesystem::path(options.directory) / kBackupMark;
  if (options.read_only || options.restored || !std::filesystem::exists(mark, error)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      options.directory, ": a backup, which agents would take for the original store: ",
      "move it away and create a store from it with `berthd --restore BACKUP --data ",
      options.directory, "`"));
}

}  // namespace

// ---- Opening

RocksDbStore::RocksDbStore(RocksDbOptions options)
    : health_(std::move(options.health)),
      file_system_(options.file_system != nullptr ? std::move(options.file_system)
                                                  : rocksdb::FileSystem::Default()),
      disk_errors_(std::make_shared<DiskErrors>()),
      wals_(std::make_shared<WalList>(file_system_, options.directory)),
      env_(rocksdb::NewCompositeEnv(
          std::make_shared<WatchedFileSystem>(file_system_, disk_errors_, wals_))),
      write_buffer_bytes_(options.write_buffer_bytes),
      place_{options.directory, options.read_only, env_.get(),
             std::make_shared<WarningLog>(options.directory),
             std::make_shared<rocksdb::WriteBufferManager>(options.write_buffer_bytes)},
      now_(std::move(options.now)),
      cluster_id_(std::move(options.cluster_id)) {}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(RocksDbOptions options) {
  const bool writes = options.health != nullptr && !options.read_only;
  auto store = TryOpen(options);
  while (writes && absl::IsResourceExhausted(store.status()) &&
         options.health->reserve().GiveUp(/*keep=*/0)) {
    store = TryOpen(options);
  }
  if (writes && store.ok()) options.health->reserve().Fill();
  return store;
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::TryOpen(const RocksDbOptions& options) {
  const bool restored = options.restored;
  if (absl::Status status = RefuseBackup(options); !status.ok()) return status;
  std::unique_ptr<RocksDbStore> store(new RocksDbStore(options));
  if (absl::Status status = store->CheckLogs(); !status.ok()) return status;
  auto database = store->OpenDatabase();
  if (!database.ok()) return database.status();
  if (!store->place_.read_only) store->env_->DeleteFile(store->place_.directory + kRoomName);
  if (absl::Status status = store->ReadMeta(**database); !status.ok()) return status;
  if (absl::Status status = store->VerifyTail(**database); !status.ok()) return status;
  if (restored) {
    if (absl::Status status = store->BeginIncarnation(**database, options.longest_lease);
        !status.ok()) {
      return status;
    }
  }
  store->Set(*std::move(database));
  return store;
}

// Before RocksDB changes anything, and not while another process writes them.
absl::Status RocksDbStore::CheckLogs() {
  const DirectoryLock lock(place_);
  if (!lock.status().ok()) return lock.status();
  absl::Status status = wals_->Check();
  if (status.ok()) return wals_->Mend(place_.read_only);
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(status.message(), MissingBatches()));
}

// RocksDB names the write-ahead log that it cannot read, but not the position.
absl::StatusOr<std::unique_ptr<Database>> RocksDbStore::OpenDatabase() {
  auto database = Database::Open(place_);
  const std::string damage = absl::IsDataLoss(database.status()) ? wals_->Damage() : "";
  if (damage.empty()) return database;
  return absl::DataLossError(absl::StrCat(database.status().message(), " [", damage, "]"));
}

// ": 7 batches are missing, after batch 193", if that is known without changing anything.
std::string RocksDbStore::MissingBatches() const {
  DatabasePlace looking = place_;
  looking.read_only = true;
  const auto database = Database::Open(looking);
  std::string value;
  pb::Meta meta;
  if (!database.ok() ||
      !(*database)
           ->db()
           .Get(rocksdb::ReadOptions(), (*database)->Family(RecordKind::kMeta), ToSlice(kStoreKey),
                &value)
           .ok() ||
      !meta.ParseFromString(value) || meta.last_sequence() >= wals_->acknowledged()) {
    return "";
  }
  return absl::StrCat(": ", wals_->acknowledged() - meta.last_sequence(),
                      " batches are missing, after batch ", meta.last_sequence());
}

absl::StatusOr<std::shared_ptr<const Database>> RocksDbStore::Get() const {
  absl::ReaderMutexLock lock(&mutex_);
  if (database_ != nullptr) return database_;
  return absl::UnavailableError(
      absl::StrCat(place_.directory, ": closed until the disk has space again"));
}

void RocksDbStore::Set(std::shared_ptr<const Database> database) {
  absl::MutexLock lock(&mutex_);
  database_ = std::move(database);
}

absl::Status RocksDbStore::ReadMeta(const Database& database) {
  std::string value;
  const rocksdb::Status found = database.db().Get(
      rocksdb::ReadOptions(), database.Family(RecordKind::kMeta), ToSlice(kStoreKey), &value);
  if (found.IsNotFound()) return MakeMeta(database);
  if (!found.ok()) return ToStatus(found, place_);

  pb::Meta meta;
  if (!meta.ParseFromString(value)) return Damaged("meta store: not a valid record");
  if (meta.format_version() > kStoreFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(place_.directory, ": store format ", meta.format_version(),
                     ", this berthd reads up to ", kStoreFormat, ": written by a newer version"));
  }
  if (meta.format_version() < kOldestStoreFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        place_.directory, ": store format ", meta.format_version(), ", this berthd reads from ",
        kOldestStoreFormat, ": written by an older version"));
  }
  absl::StatusOr<ChainHash> hash = ParseChainHash(meta.last_hash());
  if (!hash.ok()) return Damaged(absl::StrCat("meta store: ", hash.status().message()));
  last_hash_ = *hash;
  last_sequence_ = meta.last_sequence();
  synced_sequence_ = std::max(synced_sequence_.load(), wals_->acknowledged());
  cluster_id_ = meta.cluster_id();
  incarnation_ = meta.incarnation();
  if (last_sequence_ < wals_->acknowledged()) return LostBatches();
  meta.clear_last_hash();
  meta.clear_last_sequence();
  format_ = meta.format_version();
  meta.clear_format_version();
  meta_rest_ = meta.SerializeAsString();
  return absl::OkStatus();
}

// Only for an empty database: one that has records but no meta record has lost it.
absl::Status RocksDbStore::MakeMeta(const Database& database) {
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    const auto records = database.Page(static_cast<RecordKind>(kind));
    records->SeekToFirst();
    if (!records->status().ok()) return ToStatus(records->status(), place_);
    if (records->Valid()) return Damaged("contains records but no meta record");
  }
  if (wals_->acknowledged() > 0) return LostBatches();
  if (place_.read_only) return absl::NotFoundError(place_.directory + ": an empty store");
  pb::Meta meta;
  if (cluster_id_.empty()) cluster_id_ = env_->GenerateUniqueId();
  meta.set_cluster_id(cluster_id_);
  const absl::Time now = now_();
  codec::SetTime(now, meta.mutable_created());
  incarnation_ = NextIncarnation(0, now);
  meta.set_incarnation(incarnation_);
  meta_rest_ = meta.SerializeAsString();
  pending_.Clear();
  pending_.Put(database.Family(RecordKind::kMeta), ToSlice(kStoreKey),
               EncodeMeta(0, last_hash_, kStoreFormat));
  return Write(database, /*sync=*/true);
}

// Made durable before the copy serves any response.
absl::Status RocksDbStore::BeginIncarnation(const Database& database,
                                            absl::Duration longest_lease) {
  pb::Meta meta;
  if (!meta.ParseFromString(meta_rest_)) return Damaged("meta store: not a valid record");
  incarnation_ = NextIncarnation(incarnation_, now_());
  meta.set_incarnation(incarnation_);
  meta_rest_ = meta.SerializeAsString();
  format_ = kStoreFormat;
  pending_.Clear();
  pending_.Put(database.Family(RecordKind::kMeta), ToSlice(kStoreKey),
               EncodeMeta(last_sequence_, last_hash_, format_));
  std::string value;
  const rocksdb::Status found = database.db().Get(
      rocksdb::ReadOptions(), database.Family(RecordKind::kMeta), ToSlice(kLeaseKey), &value);
  if (!found.ok() && !found.IsNotFound()) return ToStatus(found, place_);
  if (found.ok()) {  // else no agent was ever granted a lease, and nothing runs
    absl::StatusOr<GrantedLease> granted = DecodeLeaseRecord(value);
    if (!granted.ok()) return granted.status();
    granted->longest = std::max(granted->longest, longest_lease);
    granted->restored = true;
    pending_.Put(database.Family(RecordKind::kMeta), ToSlice(kLeaseKey),
                 EncodeLeaseRecord(*granted));
  }
  return Write(database, /*sync=*/true);
}

std::string RocksDbStore::EncodeMeta(uint64_t sequence, const ChainHash& hash,
                                     uint32_t format) const {
  pb::Meta changing;
  changing.set_format_version(format);
  changing.set_last_sequence(sequence);
  changing.set_last_hash(ChainHashBytes(hash));
  return meta_rest_ + changing.SerializeAsString();
}

// ---- Verifying

absl::Status RocksDbStore::VerifyTail(const Database& database) const {
  const auto log = database.Scan(RecordKind::kLog);
  uint64_t first = last_sequence_ + 1;
  size_t bytes = 0;
  for (log->SeekToLast(); log->Valid() && bytes < kVerifiedTailBytes; log->Prev()) {
    absl::StatusOr<uint64_t> sequence = ParseSequenceKey(ToView(log->key()));
    if (!sequence.ok()) return Damaged(absl::StrCat("log: ", sequence.status().message()));
    first = *sequence;
    bytes += log->value().size();
  }
  if (!log->status().ok()) return ToStatus(log->status(), place_);
  return VerifyFrom(database, first, [](uint64_t, absl::string_view) { return absl::OkStatus(); });
}

absl::Status RocksDbStore::VerifyChain(LogVisitor visit) const {
  const auto database = Get();
  if (!database.ok()) return database.status();
  const auto log = (*database)->Scan(RecordKind::kLog);
  log->SeekToFirst();
  if (!log->status().ok()) return ToStatus(log->status(), place_);
  absl::StatusOr<uint64_t> first =
      log->Valid() ? ParseSequenceKey(ToView(log->key())) : last_sequence_ + 1;
  if (!first.ok()) return Damaged(absl::StrCat("log: ", first.status().message()));
  return VerifyFrom(**database, *first, visit);
}

// The hash before the oldest kept entry was deleted with the entry before it, so the oldest hash is
// trusted.
absl::Status RocksDbStore::VerifyFrom(const Database& database, uint64_t first,
                                      LogVisitor visit) const {
  uint64_t expected = first;
  ChainHash hash{};
  bool have_hash = first <= 1;
  const auto log = database.Scan(RecordKind::kLog);
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
  if (!log->status().ok()) return ToStatus(log->status(), place_);
  if (expected != last_sequence_ + 1 || hash != last_hash_) {
    return Damaged(absl::StrCat("the log ends with batch ", expected - 1,
                                ", the meta record with batch ", last_sequence_.load(),
                                expected == last_sequence_ + 1 ? " of another hash" : ""));
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::VerifyChecksums() const {
  const auto database = Get();
  if (!database.ok()) return database.status();
  return ToStatus((*database)->db().VerifyChecksum(), place_);
}

// ---- Reading

absl::Status RocksDbStore::Load(RecordVisitor visit) {
  const auto database = Get();
  if (!database.ok()) return database.status();
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    if (static_cast<RecordKind>(kind) == RecordKind::kLog) continue;
    absl::Status status = LoadKind(**database, static_cast<RecordKind>(kind), visit);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RocksDbStore::LoadKind(const Database& database, RecordKind kind,
                                    RecordVisitor visit) const {
  const auto records = database.Scan(kind);
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    const absl::string_view key = ToView(records->key());
    if (kind == RecordKind::kMeta && key == kStoreKey) continue;
    absl::Status status = visit(kind, key, ToView(records->value()));
    if (!status.ok()) return status;
  }
  return ToStatus(records->status(), place_);
}

absl::StatusOr<std::string> RocksDbStore::Read(RecordKind kind, absl::string_view key) const {
  const auto database = Get();
  if (!database.ok()) return database.status();
  std::string value;
  const rocksdb::Status status = (*database)->db().Get(
      rocksdb::ReadOptions(), (*database)->Family(kind), ToSlice(key), &value);
  if (status.ok()) return value;
  if (!status.IsNotFound()) return NoteRead(ToStatus(status, place_));
  return absl::NotFoundError(
      absl::StrCat(RecordKindName(kind), " ", PrintableKey(kind, key), ": no such record"));
}

absl::StatusOr<std::vector<LogEntry>> RocksDbStore::ReadLog(uint64_t after, size_t limit) const {
  std::vector<LogEntry> entries;
  if (after >= last_sequence_.load()) return entries;
  const auto database = Get();
  if (!database.ok()) return database.status();
  const auto log = (*database)->Page(RecordKind::kLog);
  size_t bytes = 0;
  for (log->Seek(SequenceKey(after + 1)); log->Valid(); log->Next()) {
    const absl::StatusOr<uint64_t> sequence = ParseSequenceKey(ToView(log->key()));
    const absl::StatusOr<ChainLink> link = ParseChainEntry(ToView(log->value()));
    if (!sequence.ok() || !link.ok()) return NoteRead(Damaged("log: an invalid entry"));
    if (entries.empty() && *sequence != after + 1) break;
    bytes += link->turn.size();
    if (entries.size() == limit || (!entries.empty() && bytes > kMaxReadLogBytes)) break;
    entries.push_back({.sequence = *sequence, .turn = std::string(link->turn)});
  }
  if (!log->status().ok()) return NoteRead(ToStatus(log->status(), place_));
  if (!entries.empty() || limit == 0) return entries;
  return absl::OutOfRangeError(absl::StrCat("log ", after + 1, ": no longer kept"));
}

// ---- Writing

absl::Status RocksDbStore::Append(const std::vector<const Batch*>& batches) {
  return AppendGroup(batches, /*sync=*/true);
}

absl::Status RocksDbStore::AppendBehind(const std::vector<const Batch*>& batches) {
  return AppendGroup(batches, /*sync=*/false);
}

absl::Status RocksDbStore::AppendGroup(const std::vector<const Batch*>& batches, bool sync) {
  if (batches.empty()) return absl::OkStatus();
  if (full_) {
    if (absl::Status status = Reopen(pending_.GetDataSize()); !status.ok()) return status;
  }
  const auto database = Get();
  if (!database.ok()) return database.status();
  uint64_t sequence = last_sequence_.load();
  ChainHash hash = last_hash_;
  uint32_t format = format_;
  pending_.Clear();
  for (const Batch* batch : batches) {
    if (batch->newest_format) format = kStoreFormat;
    absl::Status status = AddBatch(**database, *batch, ++sequence, &hash);
    if (!status.ok()) return status;
  }
  pending_.Put((*database)->Family(RecordKind::kMeta), ToSlice(kStoreKey),
               EncodeMeta(sequence, hash, format));
  FlushOnlyWithRoom();
  if (absl::Status status = Write(**database, sync); !status.ok()) return status;
  last_hash_ = hash;
  last_sequence_ = sequence;
  format_ = format;
  if (!sync) return absl::OkStatus();
  synced_sequence_ = sequence;
  wals_->Acknowledge(sequence);
  return absl::OkStatus();
}

absl::Status RocksDbStore::Sync() {
  const auto database = Get();
  if (!database.ok()) return database.status();
  const uint64_t sequence = last_sequence_.load();
  if (sequence == synced_sequence_.load()) return absl::OkStatus();
  const rocksdb::Status status = (*database)->db().SyncWAL();
  if (const std::string failed = disk_errors_->FailedSync(); !failed.empty()) {
    return absl::InternalError(absl::StrCat("sync failed: ", failed));
  }
  if (!status.ok()) return ToStatus(status, place_);
  synced_sequence_ = sequence;
  wals_->Acknowledge(sequence);
  return absl::OkStatus();
}

absl::Status RocksDbStore::AddBatch(const Database& database, const Batch& batch, uint64_t sequence,
                                    ChainHash* hash) {
  if (batch.sequence != sequence) return RefuseGap(sequence, batch.sequence);
  for (const Record& record : batch.records) {
    if (BelongsToStore(record)) {
      return absl::InvalidArgumentError("a batch contains a record that belongs to the store");
    }
    rocksdb::ColumnFamilyHandle* family = database.Family(record.kind);
    if (record.value.has_value()) {
      pending_.Put(family, record.key, *record.value);
    } else {
      pending_.Delete(family, record.key);
    }
  }
  *hash = NextChainHash(*hash, sequence, batch.log);
  const std::string key = SequenceKey(sequence);
  const Slice key_slice(key);
  const std::array<Slice, 2> value = {
      Slice(reinterpret_cast<const char*>(hash->data()), hash->size()), Slice(batch.log)};
  pending_.Put(database.Family(RecordKind::kLog), rocksdb::SliceParts(&key_slice, 1),
               rocksdb::SliceParts(value.data(), static_cast<int>(value.size())));
  return absl::OkStatus();
}

// A table that finds no space stops all writes until the database is reopened, and the next write
// starts the table again. On a nearly full disk memory therefore grows instead, by no more than the
// log finds space for.
void RocksDbStore::FlushOnlyWithRoom() {
  uint64_t free = 0;
  const bool has_room = !env_->GetFreeSpace(place_.directory, &free).ok() || free >= kSpaceToFlush;
  place_.write_buffers->SetBufferSize(has_room ? write_buffer_bytes_ : kNeverFull);
}

// A write that found no space is retried (Reopen). Other failed writes never are, nor is anything
// after a failed sync.
absl::Status RocksDbStore::Write(const Database& database, bool sync) {
  rocksdb::WriteOptions options;
  options.sync = sync;
  const rocksdb::Status status = database.db().Write(options, &pending_);
  if (const std::string failed = disk_errors_->FailedSync(); !failed.empty()) {
    return absl::InternalError(absl::StrCat("sync failed: ", failed));
  }
  full_ = status.IsNoSpace();
  return full_ ? DiskFull() : ToStatus(status, place_);
}

// RocksDB refuses all writes after one that found no space, and its own recovery waits for its own
// notion of enough space. So the database is closed and opened as after a crash: the half-written
// batch at the end of the write-ahead log is dropped by the rules of every restart. Readers keep
// the old database as long as they need it, and it stays open until there is space.
absl::Status RocksDbStore::Reopen(size_t bytes) {
  if (!MakeRoom(kSpaceToGoOn + 2 * uint64_t{bytes})) return DiskFull();
  std::weak_ptr<const Database> old;
  if (auto open = Get(); open.ok()) old = *open;
  Set(nullptr);
  while (!old.expired()) absl::SleepFor(absl::Milliseconds(1));  // readers finish their page
  if (absl::Status status = wals_->Mend(/*read_only=*/false); !status.ok()) {
    return absl::IsResourceExhausted(status) ? DiskFull() : status;
  }
  absl::StatusOr<std::shared_ptr<const Database>> database = Database::Open(place_);
  if (absl::IsResourceExhausted(database.status())) return DiskFull();
  if (!database.ok()) return database.status();

  const uint64_t last_sequence = last_sequence_.load();
  const ChainHash last_hash = last_hash_;
  if (absl::Status status = ReadMeta(**database); !status.ok()) return status;
  if (last_sequence != last_sequence_ || last_hash != last_hash_) {
    return Damaged(absl::StrCat("reopened with batch ", last_sequence_.load(), " as the last, not ",
                                last_sequence));
  }
  Set(*std::move(database));
  full_ = false;
  return absl::OkStatus();
}

bool RocksDbStore::MakeRoom(uint64_t bytes) {
  while (!HasRoom(bytes)) {
    if (health_ == nullptr) return false;
    if (!health_->reserve().GiveUp(SpaceReserve::kKeptForStartsBytes)) return false;
  }
  return true;
}

// Asks the file system, then tries a write, as the file system ignores quotas.
bool RocksDbStore::HasRoom(uint64_t bytes) const {
  uint64_t free = 0;
  const rocksdb::Status asked = env_->GetFreeSpace(place_.directory, &free);
  if (asked.ok() && free < bytes) return false;
  const std::string path = place_.directory + kRoomName;
  const rocksdb::IOOptions options;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  rocksdb::IOStatus status = file_system_->NewWritableFile(path, {}, &file, nullptr);
  const std::string block(size_t{1} << 20, '\0');
  for (uint64_t done = 0; status.ok() && done < bytes; done += block.size()) {
    status = file->Append(block, options, nullptr);
  }
  if (status.ok()) status = file->Close(options, nullptr);
  file.reset();
  file_system_->DeleteFile(path, options, nullptr);
  return status.ok();
}

absl::Status RocksDbStore::DiskFull() const {
  const std::string where = disk_errors_->NoSpace();
  return absl::ResourceExhaustedError(
      absl::StrCat("disk full: ", where.empty() ? place_.directory : where));
}

absl::Status RocksDbStore::LostBatches() const {
  const uint64_t last = last_sequence_.load(), acknowledged = wals_->acknowledged();
  return Damaged(absl::StrCat("the last batch is ", last, ", but batch ", acknowledged,
                              " was acknowledged (", kAckedName, ", ", kWalListName,
                              "): ", acknowledged - last, " batches are missing at the end of ",
                              wals_->Newest()));
}

absl::Status RocksDbStore::Damaged(absl::string_view reason) const {
  return absl::DataLossError(absl::StrCat(place_.directory, ": damaged: ", reason));
}

}  // namespace berth
