// The end of a write-ahead log: a tail torn by a power cut is distinguished from damage.
#include "storage/rocksdb/wal_tail.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/keys.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "support/random.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const bool kQuiet = StartLog("error", "").ok();

std::string ReadAll(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

void WriteAll(const fs::path& path, absl::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

fs::path NewestLog(const std::string& directory) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log" && entry.path() > newest) newest = entry.path();
  }
  return newest;
}

absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenAt(const std::string& directory) {
  return RocksDbStore::Open({.directory = directory});
}

void AppendOne(RocksDbStore& store, size_t bytes) {
  const uint64_t sequence = store.LastSequence() + 1;
  const Batch batch = {
      .sequence = sequence,
      .records = {{RecordKind::kJobSpec, JobKey(JobId{sequence}), std::string(bytes, 'x')}},
      .log = absl::StrCat("turn ", sequence)};
  REQUIRE(store.Append({&batch}).ok());
}

// A store of ten batches, some of them longer than a block of the log, with their end offsets.
// Nothing records how many of them were acknowledged.
struct World {
  World() {
    Random random(7);
    auto store = OpenAt(path).value();
    log = NewestLog(path);
    ends.push_back(fs::file_size(log));
    for (int i = 0; i < 10; ++i) {
      AppendOne(*store, i % 4 == 3 ? 70'000 : 100 + random.Below(2000));
      ends.push_back(fs::file_size(log));
    }
    store.reset();
    fs::remove(path + "/ACKED");
    fs::remove(path + "/WALS");
    content = ReadAll(log);
  }
  // The store with this content of the log.
  std::string With(absl::string_view changed) {
    const std::string copy = directory / "copy";
    fs::remove_all(copy);
    fs::copy(path, copy);
    WriteAll(copy + "/" + log.filename().string(), changed);
    return copy;
  }

  TempDirectory directory;
  const std::string path = directory / "a";
  fs::path log;
  std::vector<uint64_t> ends;  // of the log, by number of batches
  std::string content;
};

size_t Sector(size_t offset) { return (offset + 511) / 512 * 512; }

std::string ZerosFrom(std::string content, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) content[i] = '\0';
  return content;
}

TEST_CASE("wal tail: a log is read as RocksDB wrote it") {
  World world;
  const LogScan whole = ScanLog(world.content);
  CHECK(whole.good == world.content.size());
  CHECK_FALSE(whole.bad.has_value());
  for (size_t batch = 0; batch < world.ends.size(); ++batch) {
    const LogScan scan = ScanLog(absl::string_view(world.content).substr(0, world.ends[batch] + 9));
    CHECK(scan.good == world.ends[batch]);  // a truncated record is not bad
    CHECK_FALSE(scan.bad.has_value());
  }
}

TEST_CASE("wal tail: zeros from a sector on are cut off, and every batch before them remains") {
  World world;
  for (size_t from = Sector(world.ends[0]); from < world.content.size(); from += 9 * 512) {
    const size_t kept = static_cast<size_t>(
        std::upper_bound(world.ends.begin(), world.ends.end(), from) - world.ends.begin() - 1);
    INFO("zeros from byte " << from << ", " << kept << " batches are whole");
    // The end of a sector may also be the end of a record, after which nothing was written.
    const std::string copy = world.With(ZerosFrom(world.content, from, world.content.size()));
    const auto store = OpenAt(copy);
    INFO(store.status());
    REQUIRE(store.ok());
    CHECK((*store)->LastSequence() == kept);
    const std::string log = copy + "/" + world.log.filename().string();
    CHECK(ReadAll(log) == world.content.substr(0, world.ends[kept]));
    const std::string aside = absl::StrCat(copy, "/quarantine/", world.log.stem().string(), ".",
                                           world.ends[kept], ".cut");
    std::string lost = world.content.substr(world.ends[kept], from - world.ends[kept]);
    lost.resize(lost.find_last_not_of('\0') + 1);
    CHECK(ReadAll(aside) == lost);
    AppendOne(**store, 10);
  }
}

TEST_CASE("wal tail: zeros at the place of whole records are cut off") {
  World world;
  for (size_t batch = 0; batch < 10; ++batch) {
    const size_t from = world.ends[batch];
    const auto store = OpenAt(world.With(ZerosFrom(world.content, from, world.content.size())));
    REQUIRE(store.ok());
    CHECK((*store)->LastSequence() == batch);
  }
}

TEST_CASE("wal tail: a damaged log is not changed, and is refused with the position") {
  World world;
  const size_t end = world.ends[5], middle = (end + world.ends[6]) / 2;
  std::string changed = world.content;
  SECTION("a flipped bit") { changed[middle] ^= 4; }
  SECTION("a flipped bit in the last record") { changed[world.content.size() - 20] ^= 4; }
  SECTION("zeros with good records after them") {
    changed = ZerosFrom(changed, middle, middle + 60);
  }
  SECTION("a flipped bit, and later zeros") {
    changed = ZerosFrom(changed, Sector(world.ends[9] + 8), changed.size());
    changed[middle] ^= 4;
  }
  SECTION("a flipped length, and later zeros") {
    changed = ZerosFrom(changed, Sector(world.ends[8] + 8), changed.size());
    changed[end + 5] ^= 4;
  }
  SECTION("zeros followed by other bytes") {
    changed = ZerosFrom(changed, Sector(middle), changed.size());
    changed.back() = 'x';
  }
  const LogScan scan = ScanLog(changed);
  REQUIRE(scan.bad.has_value());
  CHECK_FALSE(scan.zeros);
  const std::string copy = world.With(changed);
  const std::string log = copy + "/" + world.log.filename().string();
  for (int i = 0; i < 2; ++i) {
    const auto store = OpenAt(copy);
    REQUIRE(absl::IsDataLoss(store.status()));
    CHECK_THAT(std::string(store.status().message()),
               Contains(copy) && Contains(absl::StrCat(world.log.filename().string(),
                                                       ": no valid record at byte ", *scan.bad)));
    CHECK(ReadAll(log) == changed);
  }
  CHECK_FALSE(fs::exists(copy + "/quarantine"));
}

TEST_CASE("wal tail: acknowledged batches are not cut off") {
  World world;
  const std::string changed =
      ZerosFrom(world.content, Sector(world.ends[6] + 8), world.content.size());
  const auto noted = [&](uint64_t batch, uint64_t bytes) {
    const std::string copy = world.With(changed);
    AckedFile(rocksdb::FileSystem::Default(), copy + "/ACKED")
        .Write({.batch = batch, .log = 4, .bytes = bytes});
    return copy;
  };
  REQUIRE(world.log.filename() == "000004.log");
  const std::string copy = noted(7, world.ends[7]);
  const absl::Status refused = OpenAt(copy).status();
  CHECK(absl::IsDataLoss(refused));
  CHECK_THAT(std::string(refused.message()), Contains("000004.log has zeros"));
  CHECK(ReadAll(copy + "/000004.log") == changed);
  const auto opened = OpenAt(noted(6, world.ends[6]));
  INFO(opened.status());
  REQUIRE(opened.ok());
  CHECK((*opened)->LastSequence() == 6);
}

TEST_CASE("wal tail: a read-only open changes nothing and suggests what to do") {
  World world;
  const std::string copy =
      world.With(ZerosFrom(world.content, Sector(world.ends[6] + 8), world.content.size()));
  const auto opened = RocksDbStore::Open({.directory = copy, .read_only = true});
  CHECK(absl::IsFailedPrecondition(opened.status()));
  CHECK_THAT(std::string(opened.status().message()),
             Contains(copy) && Contains("000004.log") && Contains("Start berthd once"));
  CHECK(fs::file_size(copy + "/000004.log") == world.content.size());
  REQUIRE(OpenAt(copy).ok());
  CHECK(RocksDbStore::Open({.directory = copy, .read_only = true}).ok());
}

TEST_CASE("wal tail: the number of saved tails is bounded") {
  TempDirectory directory;
  const std::string path = directory / "a";
  for (int i = 0; i < 7; ++i) {
    auto store = OpenAt(path).value();
    AppendOne(*store, 100);
    const fs::path log = NewestLog(path);
    store.reset();
    WriteAll(log, ReadAll(log) + "torn" + std::string(600, '\0'));
  }
  REQUIRE(OpenAt(path).ok());
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(path + "/quarantine")) {
    kept.push_back(entry.path().filename());
    CHECK(ReadAll(entry.path()) == "torn");
  }
  CHECK(kept.size() == kQuarantineFiles);
}

}  // namespace
}  // namespace berth
