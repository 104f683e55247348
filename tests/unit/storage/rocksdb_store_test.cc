// Guarantees of the RocksDB store beyond the Store contract: crashes, damage, versions, locks.
#include "storage/rocksdb/rocksdb_store.h"

#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "storage/keys.h"
#include "support/log.h"
#include "support/random.h"
#include "tests/unit/storage/fault_file_system.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const bool kQuiet = StartLog("error", "").ok();  // RocksDB's warnings are expected here

absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenAt(
    const std::string& directory, std::shared_ptr<rocksdb::FileSystem> file_system = nullptr) {
  RocksDbOptions options;
  options.directory = directory;
  options.file_system = std::move(file_system);
  return RocksDbStore::Open(options);
}

// A batch that changes one record shared by all batches and one separate record.
Batch MakeBatch(uint64_t sequence, size_t bytes = 100) {
  return {.sequence = sequence,
          .records = {{RecordKind::kNode, "shared", absl::StrCat(sequence)},
                      {RecordKind::kJobSpec, JobKey(JobId{sequence}), std::string(bytes, 'x')}},
          .log = absl::StrCat("turn ", sequence, std::string(bytes, 'y'))};
}

void AppendUpTo(Store& store, uint64_t last, size_t bytes = 100) {
  while (store.LastSequence() < last) {
    const Batch batch = MakeBatch(store.LastSequence() + 1, bytes);
    REQUIRE(store.Append({&batch}).ok());
  }
}

// The store holds exactly batches 1..n, where n is its last sequence.
void CheckExactPrefix(RocksDbStore& store) {
  const uint64_t last = store.LastSequence();
  std::set<std::string> jobs;
  std::string shared;
  REQUIRE(store
              .Load([&](RecordKind kind, absl::string_view key, absl::string_view value) {
                if (kind == RecordKind::kJobSpec) jobs.insert(std::string(key));
                if (kind == RecordKind::kNode) shared = std::string(value);
                return absl::OkStatus();
              })
              .ok());
  CHECK(jobs.size() == last);
  if (last > 0) {
    CHECK(*jobs.rbegin() == JobKey(JobId{last}));
    CHECK(shared == absl::StrCat(last));
  }
}

std::vector<fs::path> FilesWith(const std::string& directory, const std::string& part) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().find(part) != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::map<std::string, uint64_t> SizesIn(const std::string& directory) {
  std::map<std::string, uint64_t> sizes;
  for (const auto& entry : fs::directory_iterator(directory)) {
    sizes[entry.path()] = entry.file_size();
  }
  return sizes;
}

// Copies an open store as the kernel has it at one moment: the state after kill -9. RocksDB deletes
// obsolete files in the background, so a copy is retried if something changed in the meantime.
void CopyOpenStore(const std::string& from, const std::string& to) {
  for (int i = 0; i < 1000; ++i) {
    try {
      fs::remove_all(to);
      const auto before = SizesIn(from);
      fs::copy(from, to);
      if (SizesIn(from) == before) return;
    } catch (const fs::filesystem_error&) {  // deleted in the meantime
    }
  }
  FAIL("the store does not come to rest");
}

void FlipByte(const fs::path& file, uint64_t offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(stream.get() ^ 0x20);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
  REQUIRE(stream.good());
}

TEST_CASE("a process that died leaves every acked batch") {
  TempDirectory directory;
  auto store = OpenAt(directory / "a").value();
  for (uint64_t round = 1; round <= 5; ++round) {
    AppendUpTo(*store, round * 7);
    const std::string copy = directory / absl::StrCat("copy", round);
    CopyOpenStore(directory / "a", copy);
    auto opened = OpenAt(copy);
    REQUIRE(opened.ok());
    CHECK((*opened)->LastSequence() == round * 7);
    CheckExactPrefix(**opened);
    CHECK((*opened)->ClusterId() == store->ClusterId());
    AppendUpTo(**opened, round * 7 + 3);
  }
}

TEST_CASE("a power cut leaves every acked batch: every batch is really synced") {
  Random random(5);
  TempDirectory directory;
  auto faults = std::make_shared<FaultFileSystem>();
  uint64_t acked = 0;
  for (int round = 0; round < 12; ++round) {
    auto store = OpenAt(directory / "a", faults);
    INFO(store.status());
    REQUIRE(store.ok());
    REQUIRE((*store)->LastSequence() == acked);
    CheckExactPrefix(**store);
    AppendUpTo(**store, acked + random.Below(20), random.Below(2) == 0 ? 100 : 200'000);
    acked = (*store)->LastSequence();
    faults->CutPower();
    const Batch lost = MakeBatch(acked + 1);
    CHECK((*store)->Append({&lost}).ok());  // the disk reports success, but the power is off
    store->reset();
    faults->LoseUnsynced();
  }
  CHECK(acked > 30);
}

TEST_CASE("one process at a time") {
  TempDirectory directory;
  auto store = OpenAt(directory / "a").value();
  const auto second = OpenAt(directory / "a");
  CHECK(absl::IsUnavailable(second.status()));
  CHECK_THAT(std::string(second.status().message()), Contains("in use by another process"));
  store.reset();
  CHECK(OpenAt(directory / "a").ok());
}

TEST_CASE("a directory that cannot be created is named") {
  const auto store = OpenAt("/proc/no/such/place");
  REQUIRE_FALSE(store.ok());
  CHECK_THAT(std::string(store.status().message()), Contains("/proc/no/such/place"));
}

// Direct access to the database below the store. It deletes obsolete write-ahead logs, which the
// list of the store does not record.
class RawDatabase {
 public:
  explicit RawDatabase(const std::string& directory) {
    fs::remove(directory + "/" + std::string(kWalListName));
    fs::remove(directory + "/" + std::string(kAckedName));
    rocksdb::DB* raw = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(rocksdb::DBOptions(), directory, ColumnFamilies(), &families_, &raw);
    INFO(status.ToString());
    REQUIRE(status.ok());
    db_.reset(raw);
  }
  ~RawDatabase() {
    for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
  }
  std::string Get(RecordKind kind, const std::string& key) {
    std::string value;
    REQUIRE(db_->Get(rocksdb::ReadOptions(), Family(kind), key, &value).ok());
    return value;
  }
  void Put(RecordKind kind, const std::string& key, const std::string& value) {
    REQUIRE(db_->Put(rocksdb::WriteOptions(), Family(kind), key, value).ok());
  }
  void Delete(RecordKind kind, const std::string& key) {
    REQUIRE(db_->Delete(rocksdb::WriteOptions(), Family(kind), key).ok());
  }
  void AddFamily(const std::string& name) {
    rocksdb::ColumnFamilyHandle* added = nullptr;
    REQUIRE(db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), name, &added).ok());
    families_.push_back(added);
  }
  void Flush() { REQUIRE(db_->Flush(rocksdb::FlushOptions(), families_).ok()); }

 private:
  rocksdb::ColumnFamilyHandle* Family(RecordKind kind) {
    return families_[static_cast<size_t>(kind) + 1];
  }
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

TEST_CASE("a newer format is refused, and nothing is changed") {
  TempDirectory directory;
  { AppendUpTo(*OpenAt(directory / "a").value(), 3); }
  SECTION("by its number") {
    RawDatabase raw(directory / "a");
    store::v1::Meta meta;
    REQUIRE(meta.ParseFromString(raw.Get(RecordKind::kMeta, "store")));
    meta.set_format_version(kStoreFormat + 1);
    raw.Put(RecordKind::kMeta, "store", meta.SerializeAsString());
  }
  SECTION("by a record kind that this version does not have") {
    RawDatabase(directory / "a").AddFamily("wishes");
  }
  const auto store = OpenAt(directory / "a");
  CHECK(absl::IsFailedPrecondition(store.status()));
  CHECK_THAT(std::string(store.status().message()),
             Contains("newer version") && Contains(directory / "a"));
}

TEST_CASE("meta fields of a newer version survive") {
  TempDirectory directory;
  const std::string added = std::string("\xa2\x06\x03") + "new";  // field 100
  { AppendUpTo(*OpenAt(directory / "a").value(), 1); }
  {
    RawDatabase raw(directory / "a");
    raw.Put(RecordKind::kMeta, "store", raw.Get(RecordKind::kMeta, "store") + added);
  }
  { AppendUpTo(*OpenAt(directory / "a").value(), 2); }
  CHECK_THAT(RawDatabase(directory / "a").Get(RecordKind::kMeta, "store"), Contains(added));
}

// Damage: a log entry or meta record is changed below the store, with valid checksums of RocksDB.
void Tamper(const std::string& directory, RecordKind kind, const std::string& key,
            const std::function<std::optional<std::string>(std::string)>& change) {
  RawDatabase raw(directory);
  const std::optional<std::string> changed = change(raw.Get(kind, key));
  if (changed.has_value()) {
    raw.Put(kind, key, *changed);
  } else {
    raw.Delete(kind, key);
  }
}

TEST_CASE("a log that does not chain is refused, naming the entry") {
  TempDirectory directory;
  const std::string path = directory / "a";
  { AppendUpTo(*OpenAt(path).value(), 5); }
  std::string reason;
  SECTION("a changed entry") {
    Tamper(path, RecordKind::kLog, SequenceKey(3), [](std::string value) {
      value.back() = 'z';
      return value;
    });
    reason = "log 3: broken hash chain";
  }
  SECTION("a missing entry") {
    Tamper(path, RecordKind::kLog, SequenceKey(3), [](const std::string&) { return std::nullopt; });
    reason = "log 3: missing";
  }
  SECTION("a missing last entry") {
    Tamper(path, RecordKind::kLog, SequenceKey(5), [](const std::string&) { return std::nullopt; });
    reason = "the log ends with batch 4, the meta record with batch 5";
  }
  SECTION("an outdated meta record") {
    Tamper(path, RecordKind::kMeta, "store", [](const std::string& value) {
      store::v1::Meta meta;
      meta.ParseFromString(value);
      meta.set_last_sequence(4);
      return meta.SerializeAsString();
    });
    reason = "the log ends with batch 5, the meta record with batch 4";
  }
  SECTION("a meta record of another log") {
    Tamper(path, RecordKind::kMeta, "store", [](const std::string& value) {
      store::v1::Meta meta;
      meta.ParseFromString(value);
      meta.mutable_last_hash()->front() ^= 1;
      return meta.SerializeAsString();
    });
    reason = "of another hash";
  }
  SECTION("no meta record") {
    Tamper(path, RecordKind::kMeta, "store", [](const std::string&) { return std::nullopt; });
    reason = "contains records but no meta record";
  }
  SECTION("an invalid meta record") {
    Tamper(path, RecordKind::kMeta, "store", [](const std::string&) { return "\xff\xff"; });
    reason = "meta store: not a valid record";
  }
  const auto store = OpenAt(path);
  CHECK(absl::IsDataLoss(store.status()));
  CHECK_THAT(std::string(store.status().message()), Contains(reason) && Contains(path));
}

// A single flipped byte is either refused, naming the file, or leaves an exact prefix of the acked
// batches.
void TryFlips(const std::string& clean, const TempDirectory& directory, const std::string& part,
              int tries, int* refused) {
  Random random(17);
  for (int i = 0; i < tries; ++i) {
    const std::string copy = directory / "flipped";
    fs::remove_all(copy);
    fs::copy(clean, copy);
    const std::vector<fs::path> files = FilesWith(copy, part);
    REQUIRE_FALSE(files.empty());
    const fs::path file = files[random.Below(files.size())];
    const uint64_t size = fs::file_size(file);
    if (size == 0) continue;
    const uint64_t offset = random.Below(size);
    FlipByte(file, offset);
    INFO(file.filename() << " byte " << offset << " of " << size);

    auto store = OpenAt(copy);
    absl::Status status = store.status();
    if (status.ok()) status = (*store)->VerifyChecksums();
    if (!status.ok()) {
      ++*refused;
      INFO(status);
      CHECK_THAT(std::string(status.message()), Contains(copy));
      continue;
    }
    CheckExactPrefix(**store);
  }
}

TEST_CASE("a flipped byte is refused or costs an exact suffix, never more") {
  TempDirectory directory;
  const std::string clean = directory / "clean";
  {
    auto store = OpenAt(directory / "a").value();
    AppendUpTo(*store, 40, 3000);
    CopyOpenStore(directory / "a", clean);  // all of it is in the write-ahead log
  }
  int refused = 0;
  TryFlips(clean, directory, ".log", 40, &refused);
  TryFlips(clean, directory, "MANIFEST", 20, &refused);
  fs::remove_all(clean);
  { RawDatabase(directory / "a").Flush(); }
  fs::copy(directory / "a", clean);
  TryFlips(clean, directory, ".sst", 40, &refused);
  CHECK(refused > 50);
}

// ---- A full disk

TEST_CASE("a damaged table that is found at runtime is counted and named") {
  TempDirectory directory;
  const std::string place = directory / "a";
  {
    auto store = OpenAt(place).value();
    AppendUpTo(*store, 40, 3000);
  }
  { RawDatabase(place).Flush(); }
  const auto health = std::make_shared<StoreHealth>(place);
  RocksDbOptions options;
  options.directory = place;
  options.health = health;
  auto store = RocksDbStore::Open(options).value();
  CHECK(health->Damage().empty());
  for (const fs::path& table : FilesWith(place, ".sst")) {
    for (uint64_t at = 0; at < fs::file_size(table) / 2; at += 7) FlipByte(table, at);
  }
  const absl::Status read = store->Read(RecordKind::kJobSpec, JobKey(JobId{20})).status();
  CHECK(absl::IsDataLoss(read));
  CHECK(health->read_errors() == 1);
  CHECK_THAT(health->Damage(), Contains(".sst") && Contains("1 read has failed"));
  CHECK(absl::IsNotFound(health->NoteRead(absl::NotFoundError("no such record"))));
  CHECK(health->read_errors() == 1);
}

TEST_CASE("a full disk: nothing is written, and the same batch succeeds once there is space") {
  TempDirectory directory;
  auto faults = std::make_shared<FaultFileSystem>();
  const std::string path = directory / "a";
  auto store = OpenAt(path, faults).value();
  Random random(3);
  for (int round = 0; round < 20; ++round) {
    AppendUpTo(*store, store->LastSequence() + random.Below(5), 1000);
    const uint64_t before = store->LastSequence();
    const Batch batch = MakeBatch(before + 1, 5000);
    faults->SetSpace(random.Below(5000));
    const bool twice = random.Below(2) == 0;
    for (int i = 0; i < (twice ? 3 : 1); ++i) {
      const absl::Status full = store->Append({&batch});
      INFO(full);
      REQUIRE(absl::IsResourceExhausted(full));
      CHECK_THAT(std::string(full.message()), Contains("disk full") && Contains(path));
      CHECK(store->LastSequence() == before);
      CHECK(store->Read(RecordKind::kNode, "shared").value_or("") ==
            (before == 0 ? "" : absl::StrCat(before)));
    }
    if (round % 4 == 3) {  // crash while the disk is full
      store.reset();
      faults->UnlimitedSpace();
      store = OpenAt(path, faults).value();
      REQUIRE(store->LastSequence() == before);
    }
    faults->UnlimitedSpace();
    const absl::Status again = store->Append({&batch});
    INFO(again);
    REQUIRE(again.ok());
    if (round % 3 == 0) {  // the data on disk is consistent now
      const std::string copy = directory / "copy";
      CopyOpenStore(path, copy);
      auto opened = OpenAt(copy);
      INFO(opened.status());
      REQUIRE(opened.ok());
      CHECK((*opened)->LastSequence() == before + 1);
      CheckExactPrefix(**opened);
    }
  }
}

TEST_CASE("a real file system that is full") {
  TempDirectory directory;
  const std::string mount_point = directory / "small";
  fs::create_directory(mount_point);
  if (mount("none", mount_point.c_str(), "tmpfs", 0, "size=32m") != 0) {
    WARN("skipped: mounting a tmpfs needs root");
    return;
  }
  const std::string ballast = mount_point + "/ballast";
  {
    std::ofstream(ballast) << std::string(size_t{12} << 20, 'b');
    auto store = OpenAt(mount_point + "/store").value();
    absl::Status status;
    uint64_t acked = 0;
    while (status.ok() && acked < 10'000) {
      const Batch batch = MakeBatch(acked + 1, 30'000);
      status = store->Append({&batch});
      if (status.ok()) ++acked;
    }
    INFO(status);
    REQUIRE(absl::IsResourceExhausted(status));
    CHECK(store->LastSequence() == acked);
    CHECK(store->Read(RecordKind::kNode, "shared").value() == absl::StrCat(acked));
    for (int i = 0; i < 3; ++i) {
      const Batch batch = MakeBatch(acked + 1, 30'000);
      CHECK(absl::IsResourceExhausted(store->Append({&batch})));
    }
    fs::remove(ballast);
    const Batch batch = MakeBatch(acked + 1, 30'000);
    status = store->Append({&batch});
    INFO(status);
    CHECK(status.ok());
    store.reset();
    store = OpenAt(mount_point + "/store").value();
    CHECK(store->LastSequence() == acked + 1);
    CheckExactPrefix(*store);
  }
  umount2(mount_point.c_str(), MNT_DETACH);
}

TEST_CASE("an exhausted quota pauses like a full disk") {
  TempDirectory directory;
  auto faults = std::make_shared<FaultFileSystem>();
  auto store = OpenAt(directory / "a", faults).value();
  AppendUpTo(*store, 3);
  faults->UseUpQuota(true);
  const Batch batch = MakeBatch(4);
  for (int i = 0; i < 3; ++i) {
    const absl::Status full = store->Append({&batch});
    INFO(full);
    REQUIRE(absl::IsResourceExhausted(full));
    CHECK_THAT(std::string(full.message()), Contains("disk full") && Contains("quota"));
    CHECK(store->LastSequence() == 3);
    // The file system reports free space, which is not usable; the store stays open.
    CHECK(store->Read(RecordKind::kNode, "shared").value_or("") == "3");
  }
  faults->UseUpQuota(false);
  const absl::Status again = store->Append({&batch});
  INFO(again);
  REQUIRE(again.ok());
  CheckExactPrefix(*store);
  CHECK(FilesWith(directory / "a", "ROOM").empty());
  store.reset();
  CHECK(OpenAt(directory / "a", faults).value()->LastSequence() == 4);
}

// ---- A failed sync

TEST_CASE("a failed sync is final, whatever its error") {
  for (const bool no_space : {false, true}) {
    TempDirectory directory;
    auto faults = std::make_shared<FaultFileSystem>();
    auto store = OpenAt(directory / "a", faults).value();
    AppendUpTo(*store, 3);
    faults->FailSyncs(".log", no_space);
    const Batch batch = MakeBatch(4);
    const absl::Status failed = store->Append({&batch});
    CHECK(absl::IsInternal(failed));
    CHECK_THAT(std::string(failed.message()), Contains("sync failed") && Contains(".log"));
    CHECK(store->LastSequence() == 3);
    faults->FailSyncs("");
    CHECK(absl::IsInternal(store->Append({&batch})));  // even if it would work again
    store.reset();

    auto again = OpenAt(directory / "a", faults);
    REQUIRE(again.ok());
    CHECK((*again)->LastSequence() >= 3);  // batch 4 may be durable, but was not acked
    CheckExactPrefix(**again);
  }
}

}  // namespace
}  // namespace berth
