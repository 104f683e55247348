// Restore from a backup: the backup is checked, and nothing is overwritten.
#include "storage/restore.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "storage/codec.h"
#include "storage/keys.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/random_cluster.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

const bool kQuiet = StartLog("error", "").ok();

// A store of 40 batches with a base; no process has it open.
struct World {
  World() {
    auto store = RocksDbStore::Open({.directory = backup}).value();
    RandomCluster cluster(5);
    while (store->LastSequence() < 40) {
      const auto batch = cluster.Turn(store->LastSequence() + 1, 8);
      if (batch.has_value()) REQUIRE(store->Append({&*batch}).ok());
      if (store->LastSequence() == 20) REQUIRE(store->KeepBase().ok());
    }
  }
  absl::Status Restored() {
    std::ostringstream report;
    return Restore(backup, place, report);
  }
  fs::path Log() const {
    for (const auto& entry : fs::directory_iterator(backup)) {
      if (entry.path().extension() == ".log") return entry.path();
    }
    return {};
  }

  TempDirectory directory;
  const std::string backup = directory / "backup", place = directory / "store";
};

TEST_CASE("restore: the store has the state of the backup and continues") {
  World world;
  SECTION("into a missing directory") {}
  SECTION("into an empty directory") { fs::create_directory(world.place); }
  const absl::Status status = world.Restored();
  INFO(status);
  REQUIRE(status.ok());
  const auto store = RocksDbStore::Open({.directory = world.place}).value();
  CHECK(store->LastSequence() == 40);
  CHECK(store->Bases().value() == std::vector<uint64_t>{20});
  CHECK(RocksDbStore::Open({.directory = world.backup}).value()->ClusterId() == store->ClusterId());
  CHECK_FALSE(fs::exists(world.place + ".restoring"));
}

TEST_CASE("restore: a log tail torn by a power cut is fixed, but only in the copy") {
  World world;
  const uint64_t size = fs::file_size(world.Log());
  fs::resize_file(world.Log(), size + 4096);  // appends zeros
  REQUIRE(world.Restored().ok());
  CHECK(fs::file_size(world.Log()) == size + 4096);
  CHECK(RocksDbStore::Open({.directory = world.place}).value()->LastSequence() == 40);
}

TEST_CASE("restore: a backup made during writes is a prefix of the batches") {
  World world;
  const std::string copy = world.directory / "copy";
  uint64_t at_least = 0;
  {
    auto store = RocksDbStore::Open({.directory = world.backup}).value();
    RandomCluster cluster(5);
    std::vector<Batch> more;
    for (uint64_t sequence = 1; sequence <= 400;) {
      auto batch = cluster.Turn(sequence, 8);
      if (!batch.has_value()) continue;
      if (sequence++ > 40) more.push_back(*std::move(batch));
    }
    at_least = store->LastSequence();
    std::thread writer([&] {
      for (const Batch& batch : more) {
        if (!store->Append({&batch}).ok()) return;
      }
    });
    const absl::Status status = store->Backup(copy);
    writer.join();
    INFO(status);
    CHECK(status.ok());
    CHECK(store->LastSequence() == 400);
    CHECK(absl::IsAlreadyExists(store->Backup(copy)));
  }
  std::ostringstream report;
  const absl::Status restored = Restore(copy, world.place, report);  // also checks the chain
  INFO(restored);
  REQUIRE(restored.ok());
  const auto store = RocksDbStore::Open({.directory = world.place}).value();
  CHECK(store->LastSequence() >= at_least);
  CHECK(store->LastSequence() <= 400);
  CHECK(store->Bases().value() == std::vector<uint64_t>{20});
  CHECK((fs::status(copy).permissions() & fs::perms::others_all) == fs::perms::none);
  CHECK_FALSE(fs::exists(world.directory / ".copy.new"));
}

TEST_CASE("restore: a backup does not open as a store, and a store restored from it does") {
  World world;
  const std::string copy = world.directory / "copy";
  REQUIRE(RocksDbStore::Open({.directory = world.backup}).value()->Backup(copy).ok());
  const absl::Status refused = RocksDbStore::Open({.directory = copy}).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("berthd --restore BACKUP --data " + copy));
  CHECK(RocksDbStore::Open({.directory = copy, .read_only = true}).ok());  // for inspection
  std::ostringstream report;
  REQUIRE(Restore(copy, world.place, report).ok());
  auto restored = RocksDbStore::Open({.directory = world.place});
  REQUIRE(restored.ok());
  const std::string again = world.directory / "again";
  REQUIRE((*restored)->Backup(again).ok());
  CHECK(absl::IsFailedPrecondition(RocksDbStore::Open({.directory = again}).status()));
}

TEST_CASE("restore: a failed backup leaves nothing, and the store continues") {
  World world;
  auto store = RocksDbStore::Open({.directory = world.backup}).value();
  const std::string nowhere = world.directory / "missing/copy";
  const absl::Status status = store->Backup(nowhere);
  CHECK_FALSE(status.ok());
  CHECK_FALSE(fs::exists(nowhere));
  RandomCluster cluster(5);
  std::optional<Batch> next;
  for (uint64_t sequence = 1; sequence <= 41;) {
    next = cluster.Turn(sequence, 8);
    if (next.has_value()) ++sequence;
  }
  CHECK(store->Append({&*next}).ok());
}

TEST_CASE("restore: agents may hold longer leases than the backup records") {
  World world;
  constexpr absl::Duration kUsual = absl::Seconds(15);
  {
    auto store = RocksDbStore::Open({.directory = world.backup}).value();
    const Batch batch{.sequence = 41,
                      .records = {{RecordKind::kMeta, std::string(kLeaseKey),
                                   EncodeLeaseRecord({kUsual, kUsual})}},
                      .log = "turn"};
    REQUIRE(store->Append({&batch}).ok());
  }
  REQUIRE(RocksDbStore::Open(
              {.directory = world.backup, .restored = true, .longest_lease = absl::Hours(2)})
              .ok());
  const auto store = RocksDbStore::Open({.directory = world.backup}).value();
  const auto granted = DecodeLeaseRecord(store->Read(RecordKind::kMeta, kLeaseKey).value());
  CHECK(granted->longest == absl::Hours(2));
  CHECK(granted->restored);
  CHECK(granted->usual == kUsual);
}

TEST_CASE("restore: nothing is overwritten") {
  World world;
  fs::create_directory(world.place);
  std::ofstream(world.place + "/file") << "mine";
  const absl::Status status = world.Restored();
  CHECK(absl::IsAlreadyExists(status));
  CHECK_THAT(std::string(status.message()),
             Contains(world.place) && Contains("nothing is overwritten"));
  CHECK(fs::file_size(world.place + "/file") == 4);
}

TEST_CASE("restore: an incomplete backup is refused, and nothing remains") {
  World world;
  std::string reason;
  SECTION("no backup") {
    fs::remove_all(world.backup);
    reason = "no store there";
  }
  SECTION("a truncated log") {
    fs::resize_file(world.Log(), fs::file_size(world.Log()) - 100);
    reason = "batches are missing";
  }
  SECTION("a flipped byte") {
    std::fstream(world.Log(), std::ios::in | std::ios::out | std::ios::binary).seekp(300).put('?');
    reason = "no valid record at byte ";
  }
  const absl::Status status = world.Restored();
  CHECK_THAT(std::string(status.message()), Contains(reason));
  CHECK_FALSE(status.ok());
  CHECK_FALSE(fs::exists(world.place));
  CHECK_FALSE(fs::exists(world.place + ".restoring"));
}

TEST_CASE("restore: the suggested command contains the directory") {
  CHECK_THAT(HowToRestore("/var/lib/berth"),
             Contains("mv /var/lib/berth /var/lib/berth.damaged && "
                      "berthd --restore BACKUP --data /var/lib/berth"));
}

}  // namespace
}  // namespace berth
