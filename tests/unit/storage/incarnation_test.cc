// Incarnations of a store: new for each new store and each restore, and the start of job uids.
#include "storage/incarnation.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "storage/memory/memory_store.h"
#include "storage/restore.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

namespace fs = std::filesystem;

const bool kQuiet = StartLog("error", "").ok();

uint64_t IncarnationOf(const std::string& directory) {
  return RocksDbStore::Open({.directory = directory}).value()->Incarnation();
}

uint64_t RestoredAs(const std::string& backup, const std::string& place) {
  std::ostringstream report;
  const absl::Status status = Restore(backup, place, report);
  INFO(status);
  REQUIRE(status.ok());
  return IncarnationOf(place);
}

uint64_t NowMs() { return static_cast<uint64_t>(absl::ToUnixMillis(absl::Now())); }

TEST_CASE("incarnation: a new store has one and keeps it") {
  TempDirectory directory;
  const uint64_t before = NowMs();
  const uint64_t first = IncarnationOf(directory / "store");
  CHECK(first >= before);
  CHECK(first <= NowMs());
  CHECK(IncarnationOf(directory / "store") == first);
  {
    auto store = RocksDbStore::Open({.directory = directory / "store"}).value();
    const Batch batch{.sequence = 1, .records = {}, .log = "turn"};
    REQUIRE(store->Append({&batch}).ok());
    CHECK(store->Incarnation() == first);
  }
  CHECK(IncarnationOf(directory / "store") == first);
}

TEST_CASE(
    "incarnation: each restore has a new one, even of one backup, and the backup keeps its own") {
  TempDirectory directory;
  const std::string backup = directory / "backup";
  const uint64_t first = IncarnationOf(backup);
  const uint64_t second = RestoredAs(backup, directory / "second");
  const uint64_t third = RestoredAs(backup, directory / "third");
  const uint64_t fourth = RestoredAs(directory / "third", directory / "fourth");
  CHECK(first < second);
  CHECK(second < third);
  CHECK(third < fourth);
  CHECK(IncarnationOf(backup) == first);
  CHECK(IncarnationOf(directory / "third") == third);
}

TEST_CASE("incarnation: in a store of an older format it is 0 until the store is restored") {
  TempDirectory directory;
  const std::string old = directory / "store";
  fs::copy(fs::path(BERTH_TEST_FORMATS) / "5", old);
  {
    auto store = RocksDbStore::Open({.directory = old}).value();
    CHECK(store->Incarnation() == 0);
    CHECK(store->Format() == 5);
  }
  CHECK(RestoredAs(old, directory / "restored") > 1'767'225'600'000);
  auto restored = RocksDbStore::Open({.directory = directory / "restored"}).value();
  CHECK(restored->Format() == kStoreFormat);  // an older berthd could not distinguish the two
  CHECK(IncarnationOf(old) == 0);
}

TEST_CASE("incarnation: a clock that was set back does not repeat one") {
  CHECK(NextIncarnation(0, absl::FromUnixMillis(7)) == 7);
  CHECK(NextIncarnation(7, absl::FromUnixMillis(8)) == 8);
  CHECK(NextIncarnation(0, absl::FromUnixSeconds(-5)) > 0);
  constexpr uint64_t kDay = 86'400'000;
  constexpr uint64_t kBefore = 1'795'489'200'000;
  for (const int64_t clock_ms : {int64_t{7}, int64_t{kBefore} - 1, int64_t{kBefore}}) {
    const uint64_t next = NextIncarnation(kBefore, absl::FromUnixMillis(clock_ms));
    CHECK(next >= kBefore + kDay);
    CHECK(next < kBefore + 2 * kDay);
    // Uids jump by more than the jobs of any day, and have as many digits as before.
    CHECK(FirstJobOf(next).value - FirstJobOf(kBefore).value >= 88'000'000'000);
    CHECK(FirstJobOf(next).value < 100'000'000'000'000);
  }
  // Two restores of one backup with such a clock are two incarnations.
  CHECK(NextIncarnation(kBefore, absl::FromUnixMillis(7)) !=
        NextIncarnation(kBefore, absl::FromUnixMillis(8)));
  const uint64_t greatest = NextIncarnation(0, absl::InfiniteFuture());
  CHECK(NextIncarnation(greatest, absl::InfiniteFuture()) > greatest);
}

TEST_CASE("incarnation: job uids start from it, far above earlier ones") {
  constexpr uint64_t kMillisecond = 1024;
  CHECK(FirstJobOf(0) == JobId{1});
  CHECK(FirstJobOf(1) == JobId{1});
  CHECK(FirstJobOf(1'767'225'600'000) == JobId{1});
  CHECK(FirstJobOf(1'767'225'600'001) == JobId{kMillisecond});
  CHECK(FirstJobOf(1'767'225'600'002) == JobId{2 * kMillisecond});
  CHECK(FirstJobOf(1'795'489'200'000) == JobId{28'263'600'000 * kMillisecond});
  CHECK(FirstJobOf(UINT64_MAX) <= JobId{kLastJobId.value / 2 + 1});
}

TEST_CASE("incarnation: a copy of a memory store has the same content with another incarnation") {
  MemoryStore store("c", kStoreFormat, 5);
  const Batch batch{.sequence = 1, .records = {}, .log = "turn"};
  REQUIRE(store.Append({&batch}).ok());
  const auto copy = store.Copy(9);
  CHECK(copy->Incarnation() == 9);
  CHECK(copy->ClusterId() == "c");
  CHECK(copy->LastSequence() == 1);
  CHECK(copy->ReadLog(0, 10).value().size() == 1);
}

}  // namespace
}  // namespace berth
