// A store on a full disk and on a read-only one.
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "storage/keys.h"
#include "storage/rocksdb/offline_store.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

absl::StatusOr<std::unique_ptr<RocksDbStore>> OpenAt(const std::string& directory) {
  RocksDbOptions options;
  options.directory = directory;
  return RocksDbStore::Open(options);
}

absl::Status AppendSpec(Store& store, const std::string& spec) {
  const uint64_t sequence = store.LastSequence() + 1;
  const Batch batch = {.sequence = sequence,
                       .records = {{RecordKind::kJobSpec, JobKey(JobId{sequence}), spec}},
                       .log = absl::StrCat("turn ", sequence)};
  return store.Append({&batch});
}

absl::Status AppendSmall(Store& store) { return AppendSpec(store, std::string(3000, 'x')); }

void AppendUpTo(Store& store, uint64_t last) {
  while (store.LastSequence() < last) REQUIRE(AppendSmall(store).ok());
}

// A tmpfs at `directory`/small; not mounted without root.
struct SmallDisk {
  SmallDisk(const TempDirectory& directory, const char* size) : path(directory / "small") {
    fs::create_directory(path);
    mounted = mount("none", path.c_str(), "tmpfs", 0, size) == 0;
    if (!mounted) WARN("skipped: mounting a tmpfs needs root");
  }
  ~SmallDisk() {
    if (mounted) umount2(path.c_str(), MNT_DETACH);
  }
  // Fills every last block.
  void Fill() const {
    std::ofstream ballast(path + "/ballast", std::ios::binary);
    const std::string block(4096, 'b');
    while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  const std::string path;
  bool mounted = false;
};

TEST_CASE("reserve: a store opens on a full disk by releasing part of the reserve") {
  TempDirectory directory;
  const SmallDisk disk(directory, "size=96m");
  if (!disk.mounted) return;
  const std::string place = disk.path + "/store";
  RocksDbOptions options;
  options.directory = place;
  options.health = std::make_shared<StoreHealth>(place);
  SpaceReserve& reserve = options.health->reserve();
  {
    auto store = RocksDbStore::Open(options).value();
    AppendUpTo(*store, 20);
    CHECK(reserve.bytes() == SpaceReserve::kBytes);
    CHECK(reserve.LowSpace().empty());
  }
  disk.Fill();
  CHECK(absl::IsResourceExhausted(OpenAt(place).status()));  // without a reserve
  auto store = RocksDbStore::Open(options).value();
  CHECK(reserve.bytes() < SpaceReserve::kBytes);
  CHECK_THAT(reserve.LowSpace(), Contains("disk full"));
  AppendUpTo(*store, 30);  // registrations and reports are still accepted
  reserve.Fill();
  CHECK_FALSE(reserve.LowSpace().empty());
  CHECK_FALSE(SpaceReserve(place).LowSpace().empty());  // the next process detects it, too
  fs::remove(disk.path + "/ballast");
  reserve.Fill();
  CHECK(reserve.bytes() == SpaceReserve::kBytes);
  CHECK(reserve.LowSpace().empty());
  CHECK(store->LastSequence() == 30);
}

// Appends incompressible job specs up to batch `last`, or until one is refused.
absl::Status AppendNoise(Store& store, uint64_t last) {
  constexpr size_t kBytes = size_t{256} << 10;
  std::mt19937_64 random(1);
  std::string noise(kBytes, '\0');
  while (store.LastSequence() < last) {
    for (char& byte : noise) byte = static_cast<char>(random());
    if (absl::Status status = AppendSpec(store, noise); !status.ok()) return status;
  }
  return absl::OkStatus();
}

uint64_t TableBytes(const std::string& directory) {
  uint64_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() == ".sst") bytes += entry.file_size();
  }
  return bytes;
}

// The data that is not yet in tables is then far more than the reserve.
TEST_CASE("reserve: a store that stopped under load on a full disk opens") {
  TempDirectory directory;
  const SmallDisk disk(directory, "size=320m");
  if (!disk.mounted) return;
  const std::string place = disk.path + "/store";
  const uint64_t mebibytes =
      GENERATE(20, 50);  // with the reserve: less than is kept in memory, and more
  RocksDbOptions options;
  options.directory = place;
  options.health = std::make_shared<StoreHealth>(place);
  SpaceReserve& reserve = options.health->reserve();
  uint64_t last = 0;
  {
    auto store = RocksDbStore::Open(options).value();
    REQUIRE(AppendNoise(*store, 4 * mebibytes).ok());
    disk.Fill();
    while (reserve.bytes() > SpaceReserve::kKeptForStartsBytes) {
      if (absl::Status full = AppendNoise(*store, 10'000); !absl::IsResourceExhausted(full)) {
        FAIL(full);
      }
    }
    last = store->LastSequence();
  }
  disk.Fill();
  for (int start = 0; start < 3; ++start) {
    auto store = RocksDbStore::Open(options);
    INFO(store.status());
    REQUIRE(store.ok());
    CHECK((*store)->LastSequence() == last);
    CHECK(reserve.bytes() > 0);
  }
  auto store = RocksDbStore::Open(options).value();
  while (store->LastSequence() < last + 100) {  // registrations and reports are still accepted
    REQUIRE(AppendSmall(*store).ok());
    absl::SleepFor(absl::Milliseconds(10));  // long enough for a table write to fail
  }
  fs::remove(disk.path + "/ballast");
  for (int tries = 0; mebibytes == 50 && TableBytes(place) < mebibytes << 20; ++tries) {
    REQUIRE(tries < 3000);
    REQUIRE(AppendSmall(*store).ok());
    absl::SleepFor(absl::Milliseconds(10));
  }
}

TEST_CASE(
    "reserve: a running store keeps the part that a start needs, and a small disk has no reserve") {
  TempDirectory directory;
  SpaceReserve reserve(directory.path());
  reserve.Fill();
  if (reserve.bytes() == 0) return;  // not enough space here
  int steps = 0;
  while (reserve.GiveUp(SpaceReserve::kKeptForStartsBytes)) ++steps;
  CHECK(steps == 2);
  CHECK(reserve.bytes() == SpaceReserve::kKeptForStartsBytes);
  CHECK(reserve.GiveUp(0));
  const SmallDisk disk(directory, "size=16m");
  if (!disk.mounted) return;
  SpaceReserve none(disk.path);
  none.Fill();
  CHECK(none.bytes() == 0);
  CHECK(none.LowSpace().empty());  // there never was a reserve: work is accepted
}

TEST_CASE("a store on a read-only file system can be inspected") {
  TempDirectory directory;
  const SmallDisk disk(directory, "size=32m");
  if (!disk.mounted) return;
  const std::string place = disk.path + "/store";
  {
    auto store = OpenAt(place).value();
    AppendUpTo(*store, 20);
    CHECK(absl::IsUnavailable(OfflineStore::Open(place).status()));
  }
  REQUIRE(mount("none", disk.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=32m") == 0);
  auto offline = OfflineStore::Open(place);
  INFO(offline.status());
  REQUIRE(offline.ok());
  CHECK((*offline)->store().LastSequence() == 20);
}

}  // namespace
}  // namespace berth
