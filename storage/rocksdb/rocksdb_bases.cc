// RocksDbStore: bases, and trimming the log up to them. A base is one table in "bases" of the
// store's directory, named by its sequence. It holds every record of the state, under its kind and
// key. It is written under a temporary name, synced and renamed: complete or absent.
#include <rocksdb/snapshot.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "berth/store/v1/store.pb.h"
#include "storage/codec.h"
#include "storage/keys.h"
#include "storage/rocksdb/rocksdb_store.h"

namespace berth {
namespace {

constexpr char kNewBaseName[] = "/new.sst";
constexpr size_t kSequenceDigits = 20;

std::string BaseName(uint64_t sequence) {
  return absl::StrCat("/", absl::Dec(sequence, absl::kZeroPad20), ".sst");
}

std::optional<uint64_t> SequenceOf(absl::string_view name) {
  uint64_t sequence = 0;
  const bool good = absl::ConsumeSuffix(&name, ".sst") && name.size() == kSequenceDigits &&
                    absl::SimpleAtoi(name, &sequence);
  return good ? std::optional<uint64_t>(sequence) : std::nullopt;
}

rocksdb::Options BaseOptions(rocksdb::Env* env) {
  rocksdb::Options options;
  options.env = env;
  options.compression = rocksdb::kLZ4Compression;
  return options;
}

// The log is kept separately, and responses to requests are not part of the state.
bool InBase(RecordKind kind) { return kind != RecordKind::kLog && kind != RecordKind::kRequest; }

// Without the cold part, which no decision depends on.
absl::StatusOr<std::string> BaseValue(RecordKind kind, absl::string_view key,
                                      absl::string_view value) {
  if (kind != RecordKind::kJobSpec) return std::string(value);
  const absl::StatusOr<StoredJob> job = DecodeJobSpecRecord(key, value);
  if (!job.ok()) return job.status();
  return EncodeJobSpecRecord(job->spec, job->submit, job->revision, job->prediction, job->line, "");
}

// Copies the records as of one snapshot, in the order of Load.
class BaseCopy {
 public:
  BaseCopy(const Database& database, const DatabasePlace& place)
      : database_(database),
        place_(place),
        snapshot_(&database.db()),
        writer_(rocksdb::EnvOptions(), BaseOptions(place.env)) {
    reading_.snapshot = snapshot_.snapshot();
    reading_.fill_cache = false;
    reading_.readahead_size = size_t{2} << 20;
  }

  // Returns the sequence of the copy.
  absl::StatusOr<uint64_t> Write(const std::string& path) {
    std::string meta_bytes;
    rocksdb::Status status = database_.db().Get(reading_, database_.Family(RecordKind::kMeta),
                                                ToSlice(kStoreKey), &meta_bytes);
    if (status.ok()) status = writer_.Open(path);
    if (!status.ok()) return ToStatus(status, place_);
    for (size_t kind = 0; kind < kRecordKinds; ++kind) {
      if (!InBase(static_cast<RecordKind>(kind))) continue;
      absl::Status copied = CopyKind(static_cast<RecordKind>(kind));
      if (!copied.ok()) return copied;
    }
    if (status = writer_.Finish(); !status.ok()) return ToStatus(status, place_);  // also syncs it
    store::v1::Meta meta;
    if (!meta.ParseFromString(meta_bytes)) return absl::DataLossError("meta: not a valid record");
    return meta.last_sequence();
  }

 private:
  absl::Status CopyKind(RecordKind kind) {
    const std::unique_ptr<rocksdb::Iterator> records(
        database_.db().NewIterator(reading_, database_.Family(kind)));
    std::string key;
    for (records->SeekToFirst(); records->Valid(); records->Next()) {
      const auto value = BaseValue(kind, ToView(records->key()), ToView(records->value()));
      if (!value.ok()) return value.status();
      key.assign(1, static_cast<char>(kind));
      key.append(records->key().data(), records->key().size());
      const rocksdb::Status status = writer_.Put(key, *value);
      if (!status.ok()) return ToStatus(status, place_);
    }
    return ToStatus(records->status(), place_);
  }

  const Database& database_;
  const DatabasePlace& place_;
  rocksdb::ManagedSnapshot snapshot_;
  rocksdb::ReadOptions reading_;
  rocksdb::SstFileWriter writer_;
};

rocksdb::Status FsyncDirectory(rocksdb::Env& env, const std::string& path) {
  std::unique_ptr<rocksdb::Directory> directory;
  const rocksdb::Status status = env.NewDirectory(path, &directory);
  return status.ok() ? directory->Fsync() : status;
}

}  // namespace

absl::StatusOr<uint64_t> RocksDbStore::KeepBase() {
  const auto database = Get();
  if (!database.ok()) return database.status();
  if (absl::Status room = CheckRoomForBase(**database); !room.ok()) return room;
  const std::string directory = place_.directory + kBasesName;
  const std::string aside = directory + kNewBaseName;
  rocksdb::Status status = env_->CreateDirIfMissing(directory);
  if (!status.ok()) return ToStatus(status, place_);
  const absl::StatusOr<uint64_t> sequence = BaseCopy(**database, place_).Write(aside);
  if (sequence.ok()) {
    status = env_->RenameFile(aside, directory + BaseName(*sequence));
    if (status.ok()) status = FsyncDirectory(*env_, directory);
    if (status.ok()) status = FsyncDirectory(*env_, place_.directory);
    if (status.ok()) return *sequence;
  }
  env_->DeleteFile(aside);
  return sequence.ok() ? ToStatus(status, place_) : sequence.status();
}

// Records change slowly, so the size of their tables estimates the copy, if anything too high.
absl::Status RocksDbStore::CheckRoomForBase(const Database& database) const {
  uint64_t needed = kSpaceToGoOn + kMaxWalBytes, free = 0;
  for (size_t kind = 0; kind < kRecordKinds; ++kind) {
    if (!InBase(static_cast<RecordKind>(kind))) continue;
    uint64_t bytes = 0;
    database.db().GetIntProperty(database.Family(static_cast<RecordKind>(kind)),
                                 rocksdb::DB::Properties::kEstimateLiveDataSize, &bytes);
    needed += bytes;
  }
  const rocksdb::Status asked = env_->GetFreeSpace(place_.directory, &free);
  if (!asked.ok() || free >= needed) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(place_.directory, ": ", free >> 20,
                                                   " MiB are free; a copy of the records needs ",
                                                   needed >> 20));
}

absl::StatusOr<std::vector<uint64_t>> RocksDbStore::Bases() const {
  std::vector<std::string> names;
  const rocksdb::Status status = env_->GetChildren(place_.directory + kBasesName, &names);
  std::vector<uint64_t> sequences;
  if (status.IsNotFound() || status.IsPathNotFound()) return sequences;
  if (!status.ok()) return ToStatus(status, place_);
  for (const std::string& name : names) {
    if (const auto sequence = SequenceOf(name); sequence.has_value()) {
      sequences.push_back(*sequence);
    }
  }
  std::sort(sequences.begin(), sequences.end());
  return sequences;
}

absl::Status RocksDbStore::LoadBase(uint64_t sequence, RecordVisitor visit) const {
  const std::string name = absl::StrCat("base ", sequence);
  const std::string path = place_.directory + kBasesName + BaseName(sequence);
  if (env_->FileExists(path).IsNotFound()) return Store::LoadBase(sequence, visit);
  rocksdb::SstFileReader reader(BaseOptions(env_.get()));
  rocksdb::Status status = reader.Open(path);
  if (status.ok()) status = reader.VerifyChecksum();
  if (!status.ok()) return Damaged(absl::StrCat(name, ": ", status.ToString()));
  bool known = false;
  const std::unique_ptr<rocksdb::Iterator> records(reader.NewIterator(rocksdb::ReadOptions()));
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    absl::string_view key = ToView(records->key());
    if (key.empty() || static_cast<uint8_t>(key[0]) >= kRecordKinds) {
      return Damaged(absl::StrCat(name, ": a record of unknown kind"));
    }
    const auto kind = static_cast<RecordKind>(key[0]);
    key.remove_prefix(1);
    const bool is_meta = kind == RecordKind::kMeta && key == kStoreKey;
    known = known || is_meta;
    absl::Status taken = is_meta ? CheckBase(sequence, ToView(records->value()))
                                 : visit(kind, key, ToView(records->value()));
    if (!taken.ok()) return taken;
  }
  if (!records->status().ok()) return ToStatus(records->status(), place_);
  return known ? absl::OkStatus() : Damaged(absl::StrCat(name, ": no meta record"));
}

// Extending the hash of the base's last batch must give that of the next one in the log.
absl::Status RocksDbStore::CheckBase(uint64_t sequence, absl::string_view meta_bytes) const {
  const auto damaged = [&](absl::string_view reason) {
    return Damaged(absl::StrCat("base ", sequence, ": ", reason));
  };
  store::v1::Meta meta;
  if (!meta.ParseFromArray(meta_bytes.data(), static_cast<int>(meta_bytes.size()))) {
    return damaged("not a valid meta record");
  }
  const absl::StatusOr<ChainHash> hash = ParseChainHash(meta.last_hash());
  if (!hash.ok() || meta.last_sequence() != sequence) return damaged("is of another batch");
  const auto database = Get();
  if (!database.ok()) return database.status();
  std::string entry;
  const rocksdb::Status found =
      (*database)->db().Get(rocksdb::ReadOptions(), (*database)->Family(RecordKind::kLog),
                            SequenceKey(sequence + 1), &entry);
  if (found.IsNotFound()) return absl::OkStatus();
  if (!found.ok()) return ToStatus(found, place_);
  const absl::StatusOr<ChainLink> link = ParseChainEntry(entry);
  if (link.ok() && NextChainHash(*hash, sequence + 1, link->turn) == link->hash) {
    return absl::OkStatus();
  }
  return damaged("the log does not follow from it");
}

// A crash in between leaves bases without their log; the next call deletes them.
absl::Status RocksDbStore::TrimLog(uint64_t sequence) {
  const auto database = Get();
  if (!database.ok()) return database.status();
  const absl::StatusOr<std::vector<uint64_t>> bases = Bases();
  if (!bases.ok()) return bases.status();
  auto kept = std::upper_bound(bases->begin(), bases->end(), sequence);
  if (kept != bases->begin()) {
    sequence = *--kept;
  } else if (!bases->empty() && ReadLog(0, 1).ok()) {
    return absl::OkStatus();  // complete, and no base is old enough to replace its beginning
  }
  const uint64_t last = last_sequence_.load();
  const std::string begin = SequenceKey(0);
  const std::string end = SequenceKey(std::min(sequence, last == 0 ? 0 : last - 1) + 1);
  rocksdb::Status status = (*database)->db().DeleteRange(
      rocksdb::WriteOptions(), (*database)->Family(RecordKind::kLog), begin, end);
  for (auto base = bases->begin(); status.ok() && base != kept; ++base) {
    status = env_->DeleteFile(place_.directory + kBasesName + BaseName(*base));
  }
  return ToStatus(status, place_);
}

}  // namespace berth
