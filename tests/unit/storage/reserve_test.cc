// A store on a full disk, and on one that nothing can be written to.
#include <sys/mount.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
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

void AppendUpTo(Store& store, uint64_t last) {
  constexpr size_t kBytes = 3000;
  while (store.LastSequence() < last) {
    const uint64_t sequence = store.LastSequence() + 1;
    const Batch batch = {
        .sequence = sequence,
        .records = {{RecordKind::kJobSpec, JobKey(JobId{sequence}), std::string(kBytes, 'x')}},
        .log = absl::StrCat("turn ", sequence)};
    REQUIRE(store.Append({&batch}).ok());
  }
}

// Mounted on `directory`/small; null where that needs root.
struct SmallDisk {
  SmallDisk(const TempDirectory& directory, const char* size) : path(directory / "small") {
    fs::create_directory(path);
    mounted = mount("none", path.c_str(), "tmpfs", 0, size) == 0;
    if (!mounted) WARN("skipped: mounting a tmpfs needs root");
  }
  ~SmallDisk() {
    if (mounted) umount2(path.c_str(), MNT_DETACH);
  }
  // Every last block.
  void Fill() const {
    std::ofstream ballast(path + "/ballast", std::ios::binary);
    const std::string block(4096, 'b');
    while (ballast.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  const std::string path;
  bool mounted = false;
};

TEST_CASE("reserve: a store opens on a full disk by giving some of it up") {
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
  AppendUpTo(*store, 30);  // registrations and reports go on
  reserve.Fill();
  CHECK_FALSE(reserve.LowSpace().empty());
  CHECK_FALSE(SpaceReserve(place).LowSpace().empty());  // known to the next process, too
  fs::remove(disk.path + "/ballast");
  reserve.Fill();
  CHECK(reserve.bytes() == SpaceReserve::kBytes);
  CHECK(reserve.LowSpace().empty());
  CHECK(store->LastSequence() == 30);
}

TEST_CASE("reserve: what starts need is not given up while running, and a small disk has none") {
  TempDirectory directory;
  SpaceReserve reserve(directory.path());
  reserve.Fill();
  if (reserve.bytes() == 0) return;  // no room here
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
  CHECK(none.LowSpace().empty());  // there never was one: work is taken
}

TEST_CASE("a store on a read-only file system can be looked at") {
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
