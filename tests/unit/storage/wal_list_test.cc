// Missing write-ahead logs: a store that has acknowledged batches must not open without them.
#include "storage/rocksdb/wal_list.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "storage/fsck.h"
#include "storage/keys.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/fault_file_system.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const bool kQuiet = StartLog("error", "").ok();

absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenAt(const std::string& directory) {
  return RocksDbStore::Open({.directory = directory});
}

void AppendUpTo(RocksDbStore& store, uint64_t last, size_t bytes = 100) {
  while (store.LastSequence() < last) {
    const uint64_t sequence = store.LastSequence() + 1;
    const Batch batch = {
        .sequence = sequence,
        .records = {{RecordKind::kJobSpec, JobKey(JobId{sequence}), std::string(bytes, 'x')}},
        .log = absl::StrCat("turn ", sequence)};
    REQUIRE(store.Append({&batch}).ok());
  }
}

std::vector<std::string> LogFiles(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ListOf(const std::string& directory) {
  std::ifstream file(directory + "/WALS");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Both a start and fsck refuse the store, for this reason.
void CheckRefused(const std::string& directory, const std::string& reason) {
  const absl::Status opened = OpenAt(directory).status();
  CHECK(absl::IsDataLoss(opened));
  CHECK_THAT(std::string(opened.message()), Contains(directory) && Contains(reason));
  std::ostringstream report;
  const absl::Status checked = Fsck(directory, report);
  CHECK(absl::IsDataLoss(checked));
  CHECK_THAT(std::string(checked.message()), Contains(directory) && Contains(reason));
}

TEST_CASE("wals: a store without its only log file is refused and not treated as new") {
  TempDirectory directory;
  const std::string path = directory / "a";
  SECTION("with batches") { AppendUpTo(*OpenAt(path).value(), 20); }
  SECTION("with one batch") { AppendUpTo(*OpenAt(path).value(), 1); }
  SECTION("without batches: it has an identity") { OpenAt(path).value(); }
  const std::vector<std::string> files = LogFiles(path);
  REQUIRE(files.size() == 1);
  fs::remove(path + "/" + files[0]);
  CheckRefused(path, absl::StrCat("the write-ahead log ", files[0], " is missing"));
}

TEST_CASE("wals: each of several missing log files is detected") {
  TempDirectory directory;
  const std::string path = directory / "a";
  for (uint64_t start = 1; start <= 3; ++start) AppendUpTo(*OpenAt(path).value(), 10 * start);
  const std::vector<std::string> files = LogFiles(path);
  REQUIRE(files.size() >= 3);  // opening keeps the earlier ones
  for (const std::string& file : files) {
    const std::string copy = directory / "copy";
    fs::remove_all(copy);
    fs::copy(path, copy);
    fs::remove(copy + "/" + file);
    CheckRefused(copy, absl::StrCat("the write-ahead log ", file, " is missing"));
  }
  CHECK(OpenAt(path).value()->LastSequence() == 30);
}

TEST_CASE("wals: the list follows the files that the database creates and deletes") {
  TempDirectory directory;
  const std::string path = directory / "a";
  auto store = OpenAt(path).value();
  // Enough to fill several tables, so that log files are created and deleted.
  std::set<std::string> seen;
  for (int i = 0; i < 300; ++i) {
    AppendUpTo(*store, store->LastSequence() + 1, size_t{512} << 10);
    for (const std::string& file : LogFiles(path)) seen.insert(file);
  }
  store.reset();
  CHECK(seen.size() > 3);
  const std::vector<std::string> left = LogFiles(path);
  CHECK(left.size() < seen.size());
  for (const std::string& file : left) CHECK_THAT(ListOf(path), Contains(file));
  CHECK(OpenAt(path).value()->LastSequence() == 300);
}

TEST_CASE("wals: a truncated log file is detected by the counter that is not synced") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 40);
  const std::string log = path + "/" + LogFiles(path)[0];
  const uint64_t size = fs::file_size(log);
  SECTION("by a byte") { fs::resize_file(log, size - 1); }
  SECTION("to half") { fs::resize_file(log, size / 2); }
  const uint64_t left = fs::file_size(log);
  CheckRefused(path,
               absl::StrCat("the write-ahead log ", LogFiles(path)[0], " ends at byte ", left,
                            ", but ", size, " bytes of it were acknowledged, up to batch 40"));
  if (left == size - 1) CheckRefused(path, ": 1 batches are missing, after batch 39");
  CHECK(LogFiles(path).size() == 1);  // nothing was changed
  fs::remove(path + "/ACKED");        // a power cut may do that
  if (left == size - 1) CHECK(OpenAt(path).value()->LastSequence() == 39);
}

TEST_CASE("wals: a truncated log file is detected up to the last batch in the list") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 40);
  CHECK_THAT(ListOf(path), Contains("batch 32\n"));  // updated at each doubling
  fs::resize_file(path + "/" + LogFiles(path)[0], 0);
  fs::remove(path + "/ACKED");
  CheckRefused(path, "the last batch is 0, but batch 32 was acknowledged");
  CheckRefused(path, "32 batches are missing");
}

TEST_CASE("wals: a record that looks incomplete because of a flipped bit is detected") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 39);
  const std::string log = path + "/" + LogFiles(path)[0];
  const auto last = static_cast<std::streamoff>(fs::file_size(log));
  AppendUpTo(*OpenAt(path).value(), 40);
  const std::string newest = path + "/" + LogFiles(path).back();
  REQUIRE(newest != log);
  std::fstream(newest, std::ios::in | std::ios::out | std::ios::binary).seekp(5).put('\x7f');
  CHECK(last > 0);
  CheckRefused(path, "the last batch is 39, but batch 40 was acknowledged");
  CheckRefused(path, absl::StrCat("1 batches are missing at the end of ",
                                  fs::path(newest).filename().string()));
}

TEST_CASE("wals: a counter for a log file that is already in tables does no harm") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 5);
  AckedFile(rocksdb::FileSystem::Default(), path + "/ACKED")
      .Write({.batch = 5, .log = 3, .bytes = 12345678});
  AppendUpTo(*OpenAt(path).value(), 6);
  CHECK(OpenAt(path).value()->LastSequence() == 6);
}

TEST_CASE("wals: a copy of the directory is valid") {
  TempDirectory directory;
  const std::string path = directory / "a", copy = directory / "copy";
  AppendUpTo(*OpenAt(path).value(), 20);
  fs::copy(path, copy);
  AppendUpTo(*OpenAt(path).value(), 30);
  AppendUpTo(*OpenAt(copy).value(), 25);
  CHECK(OpenAt(copy).value()->LastSequence() == 25);
  // Copied files with the counter of the original, which has continued.
  fs::copy(path + "/ACKED", copy + "/ACKED", fs::copy_options::overwrite_existing);
  CHECK(absl::IsDataLoss(OpenAt(copy).status()));
}

TEST_CASE("wals: a store without a list is accepted and gets one") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 5);
  fs::remove(path + "/WALS");
  const std::vector<std::string> before = LogFiles(path);
  AppendUpTo(*OpenAt(path).value(), 6);
  for (const std::string& file : before) CHECK_THAT(ListOf(path), Contains(file));
  fs::remove(path + "/" + before[0]);
  CheckRefused(path, before[0]);
}

TEST_CASE("wals: an invalid list is refused") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 5);
  for (const char* text : {"", "batch\n", "batch x\n000004.log\n", "batch 1\n../../etc/passwd\n"}) {
    std::ofstream(path + "/WALS", std::ios::trunc) << text;
    CheckRefused(path, "WALS is not a list");
  }
}

TEST_CASE("wals: an unreadable list is not treated as missing") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 5);
  fs::remove(path + "/WALS");
  fs::create_directory(path + "/WALS");  // reading it fails, even for root
  const absl::Status opened = OpenAt(path).status();
  CHECK(absl::IsUnavailable(opened));
  CHECK_THAT(std::string(opened.message()), Contains(path + ": WALS cannot be read"));
}

// A crash between the two steps of creating or deleting a log file.
TEST_CASE("wals: a log file that is not listed does no harm") {
  TempDirectory directory;
  const std::string path = directory / "a";
  AppendUpTo(*OpenAt(path).value(), 5);
  std::ofstream(path + "/999999.log");
  auto store = OpenAt(path);
  INFO(store.status());
  REQUIRE(store.ok());
  CHECK((*store)->LastSequence() == 5);
}

TEST_CASE("wals: a log file is not used if the list cannot be written") {
  TempDirectory directory;
  auto faults = std::make_shared<FaultFileSystem>();
  WalList list(faults, directory.path());
  REQUIRE(list.Check().ok());
  const std::string file = directory / "000007.log";
  CHECK(list.Covers(file));
  CHECK_FALSE(list.Covers("/elsewhere/000007.log"));
  CHECK_FALSE(list.Covers(directory / "000007.sst"));
  faults->FailSyncs("WALS.new");
  CHECK_FALSE(list.Add(file).ok());
  faults->FailSyncs("");
  std::ofstream{file};
  REQUIRE(list.Add(file).ok());
  faults->SetSpace(0);
  CHECK(list.Remove(file).IsNoSpace());
  list.Acknowledge(9);  // written once there is space
  faults->UnlimitedSpace();
  CHECK(list.acknowledged() == 9);
  CHECK_THAT(ListOf(directory.path()), Contains("batch 0\n000007.log"));
  CHECK(WalList(faults, directory.path()).Check().ok());
  list.Acknowledge(10);
  CHECK(WalList(faults, directory.path()).Check().ok());
  CHECK_THAT(ListOf(directory.path()), Contains("batch 10\n000007.log"));
}

}  // namespace
}  // namespace berth
