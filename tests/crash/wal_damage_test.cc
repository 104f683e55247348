// Damage at the end of the newest write-ahead log: cut off, or with a flipped bit. Whatever is
// opened is an exact beginning of what was acknowledged; else the store is refused, by name.
//
// BERTH_CRASH_ALL=1: at every byte of the last 64 KiB; otherwise at some.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/strings/match.h"
#include "core/model/state_editor.h"
#include "storage/load.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/crash/recorded_disk.h"
#include "tests/unit/storage/random_cluster.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

const bool kQuiet = StartLog("error", "").ok();

constexpr size_t kEnd = size_t{64} << 10;

struct Damaged {
  size_t tried = 0, refused = 0;
  uint64_t most_lost = 0;  // batches, of those that were opened
};

// Batches that the store lost, or nullopt if it is refused.
std::optional<uint64_t> Lost(const std::string& path, const std::vector<uint64_t>& fingerprints) {
  RocksDbOptions options;
  options.directory = path;
  const auto store = RocksDbStore::Open(options);
  if (!store.ok()) {
    INFO(store.status());
    REQUIRE(absl::IsDataLoss(store.status()));
    REQUIRE_THAT(std::string(store.status().message()), Catch::Matchers::Contains(path));
    return std::nullopt;
  }
  const uint64_t last = (*store)->LastSequence();
  REQUIRE(last < fingerprints.size());
  ClusterState state;
  REQUIRE(LoadState(
              **store, state, [](StoredRequest) {}, nullptr)
              .ok());
  REQUIRE(Fingerprint(state) == fingerprints[last]);
  return fingerprints.size() - 1 - last;
}

TEST_CASE("damage within the last 64 KiB of the write-ahead log") {
  const TempDirectory directory;
  const auto disk = std::make_shared<RecordedDisk>(directory / "a");
  RandomCluster cluster(3);
  std::vector<uint64_t> fingerprints = {Fingerprint(ClusterState())};
  Random random(1);
  DiskImage image;
  {
    RocksDbOptions options;
    options.directory = directory / "a";
    options.file_system = disk;
    const auto store = RocksDbStore::Open(options).value();
    while (fingerprints.size() <= 200) {
      const auto batch = cluster.Turn(store->LastSequence() + 1, 8);
      if (!batch.has_value()) continue;
      REQUIRE(store->Append({&*batch}).ok());
      fingerprints.push_back(Fingerprint(cluster.state()));
    }
    image = disk->AfterPowerCut(disk->steps(), PowerCut::kLeast, random);  // all of it is synced
  }
  std::string name;
  for (const auto& [file, data] : image.files) {
    if (absl::EndsWith(file, ".log") && !data.empty()) name = file;  // the newest
  }
  const std::string whole = image.files.at(name);
  REQUIRE(whole.size() > kEnd);
  const size_t step = std::getenv("BERTH_CRASH_ALL") != nullptr ? 1 : 1499;
  Damaged cut, flipped;
  for (size_t offset = whole.size() - kEnd; offset < whole.size(); offset += step) {
    INFO(name << " at " << offset << " of " << whole.size());
    for (Damaged* damaged : {&cut, &flipped}) {
      std::string& data = image.files.at(name);
      data = whole;
      if (damaged == &cut) {
        data.resize(offset);
      } else {
        data[offset] = static_cast<char>(data[offset] ^ (1 << random.Below(8)));
      }
      image.WriteTo(directory / "copy");
      const auto lost = Lost(directory / "copy", fingerprints);
      ++damaged->tried;
      damaged->refused += lost.has_value() ? 0 : 1;
      damaged->most_lost = std::max(damaged->most_lost, lost.value_or(0));
    }
  }
  std::cout << "cut off: " << cut.tried << " tried, " << cut.refused
            << " refused, most batches lost " << cut.most_lost << "; flipped: " << flipped.tried
            << " tried, " << flipped.refused << " refused, most batches lost " << flipped.most_lost
            << "\n";
  CHECK(flipped.refused > 0);
}

}  // namespace
}  // namespace berth
