// Damage at the end of the newest write-ahead log: a truncation or a flipped bit. The store is
// refused by name. If ACKED is also lost, a store that opens is an exact prefix.
//
// BERTH_CRASH_ALL=1: at every byte of the last 64 KiB; 16: at every 16th byte; otherwise at some.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

// The number of lost batches, or nullopt if the store is refused.
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

struct Damaged {
  size_t tried = 0, refused = 0;
  uint64_t most_lost = 0;  // batches, among stores that opened

  void Try(const DiskImage& image, const std::string& path,
           const std::vector<uint64_t>& fingerprints) {
    image.WriteTo(path);
    const auto lost = Lost(path, fingerprints);
    ++tried;
    refused += lost.has_value() ? 0 : 1;
    most_lost = std::max(most_lost, lost.value_or(0));
  }
  std::string Text() const {
    return absl::StrCat(tried, " tried, ", refused, " refused, most batches lost ", most_lost);
  }
};

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
    image = disk->AfterPowerCut(disk->steps(), PowerCut::kMost, random);
  }
  std::string name;
  for (const auto& [file, data] : image.files) {
    if (absl::EndsWith(file, ".log") && !data.empty()) name = file;  // the newest
  }
  const std::string whole = image.files.at(name);
  REQUIRE(whole.size() > kEnd);
  const char* all = std::getenv("BERTH_CRASH_ALL");
  const size_t step = all == nullptr ? 1499 : std::max<size_t>(1, std::strtoul(all, nullptr, 10));
  Damaged cut, cut_unnoted, flipped;
  DiskImage unnoted = image;
  unnoted.files.erase(std::string(kAckedName));
  for (size_t offset = whole.size() - kEnd; offset < whole.size(); offset += step) {
    INFO(name << " at " << offset << " of " << whole.size());
    image.files.at(name) = unnoted.files.at(name) = whole.substr(0, offset);
    cut.Try(image, directory / "copy", fingerprints);
    cut_unnoted.Try(unnoted, directory / "copy", fingerprints);
    std::string& data = image.files.at(name) = whole;
    data[offset] = static_cast<char>(data[offset] ^ (1 << random.Below(8)));
    flipped.Try(image, directory / "copy", fingerprints);
  }
  std::cout << "cut off: " << cut.Text() << "; without " << kAckedName << ": " << cut_unnoted.Text()
            << "; flipped: " << flipped.Text() << "\n";
  CHECK(cut.refused == cut.tried);
  CHECK(flipped.refused == flipped.tried);
  CHECK(cut_unnoted.refused < cut_unnoted.tried);  // otherwise ACKED does not matter
}

}  // namespace
}  // namespace berth
