// A power cut after any step of a store leaves every acknowledged batch, and otherwise only a
// prefix of what was written.
//
// BERTH_CRASH_ALL=1 tries each kind of cut at each step; otherwise one of them at a third of the
// steps. BERTH_CRASH_SEED: another workload, other steps and kinds.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "core/model/state_editor.h"
#include "storage/keys.h"
#include "storage/load.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/crash/recorded_disk.h"
#include "tests/unit/storage/random_cluster.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

const bool kQuiet = StartLog("error", "").ok();

constexpr PowerCut kCuts[] = {PowerCut::kLeast, PowerCut::kMost, PowerCut::kSome, PowerCut::kTorn};

uint64_t Seed() {
  uint64_t seed = 1;
  const char* given = std::getenv("BERTH_CRASH_SEED");
  if (given != nullptr) REQUIRE(absl::SimpleAtoi(given, &seed));
  return seed;
}

// In memory if possible: the test creates thousands of stores.
TempDirectory Scratch() {
  const char* const memory = "/dev/shm";
  std::error_code none;
  const auto space = std::filesystem::space(memory, none);
  const bool fits = !none && space.available > uint64_t{1} << 30 && access(memory, W_OK) == 0;
  return fits ? TempDirectory(memory) : TempDirectory();
}

std::unique_ptr<RocksDbStore> OpenStore(const std::string& path,
                                        std::shared_ptr<rocksdb::FileSystem> file_system = {}) {
  RocksDbOptions options;
  options.directory = path;
  options.file_system = std::move(file_system);
  options.write_buffer_bytes = size_t{16} << 20;
  auto store = RocksDbStore::Open(options);
  INFO(store.status());
  REQUIRE(store.ok());
  return *std::move(store);
}

// The history of a cluster, and its disk.
struct Life {
  explicit Life(const std::string& path) : disk(std::make_shared<RecordedDisk>(path)) {}

  uint64_t acknowledged() const { return fingerprints.size() - 1; }
  // Appends the next batch of the cluster to the store.
  bool Turn(Store& store, size_t padding = 0) {
    std::optional<Batch> batch = cluster.Turn(store.LastSequence() + 1, 8);
    if (!batch.has_value()) return false;
    if (padding > 0) {
      batch->records.push_back({RecordKind::kRequest, absl::StrCat("r", batch->sequence),
                                EncodeRequestRecord({.id = absl::StrCat("r", batch->sequence),
                                                     .fingerprint = "f",
                                                     .time = absl::UnixEpoch(),
                                                     .answer = std::string(padding, 'x')})});
    }
    REQUIRE(store.Append({&*batch}).ok());
    disk->Mark(batch->sequence);
    fingerprints.push_back(Fingerprint(cluster.state()));
    batches.push_back(*std::move(batch));
    return true;
  }

  std::shared_ptr<RecordedDisk> disk;
  RandomCluster cluster{Seed()};
  std::vector<uint64_t> fingerprints = {Fingerprint(ClusterState())};  // by number of batches
  std::vector<Batch> batches;
};

// The store has every acknowledged batch, and at most one more, the batch that was being written.
void CheckStore(const Life& life, RocksDbStore& store, uint64_t acknowledged) {
  const uint64_t last = store.LastSequence();
  REQUIRE(last >= acknowledged);
  REQUIRE(last <= acknowledged + 1);
  REQUIRE(last < life.fingerprints.size());
  ClusterState state;
  const auto loaded = LoadState(
      store, state, [](StoredRequest) {}, nullptr);
  INFO(loaded.status());
  REQUIRE(loaded.ok());
  REQUIRE(Fingerprint(state) == life.fingerprints[last]);
  REQUIRE(store.VerifyChain([](uint64_t, absl::string_view) { return absl::OkStatus(); }).ok());
  if (last < life.batches.size()) REQUIRE(store.Append({&life.batches[last]}).ok());
}

struct Tried {
  size_t steps = 0, cuts = 0, repaired = 0;
};

// Cuts the power after each step that made something durable, and before the next one.
void CutEverywhere(const Life& life, const RecordedDisk& disk, uint64_t at_least,
                   const std::string& copy, size_t every, Tried* tried) {
  const bool all = std::getenv("BERTH_CRASH_ALL") != nullptr;
  Random random(Seed());
  tried->steps += disk.steps();
  for (size_t step = 0; step <= disk.steps(); ++step) {
    const bool durable = (step > 0 && disk.Durable(step - 1)) || step == disk.steps();
    const bool before_durable = step < disk.steps() && disk.Durable(step);
    if ((!durable && !before_durable) || (step % every != 0 && step != disk.steps())) continue;
    if (!all && random.Below(3) != 0) continue;
    const size_t one = random.Below(std::size(kCuts));
    for (size_t i = 0; i < std::size(kCuts); ++i) {
      if (!all && i != one) continue;
      INFO("seed " << Seed() << ", before step " << step << " of " << disk.steps() << ": "
                   << disk.Describe(step) << "; way " << i);
      disk.AfterPowerCut(step, kCuts[i], random).WriteTo(copy);
      ++tried->cuts;
      const auto store = OpenStore(copy);
      tried->repaired += std::filesystem::exists(copy + "/quarantine") ? 1 : 0;
      CheckStore(life, *store, std::max(disk.MarkBefore(step), at_least));
    }
  }
}

TEST_CASE("power cuts at every durable operation of 200 jobs") {
  const TempDirectory directory = Scratch();
  Life life(directory / "a");
  const size_t jobs = EventBody(JobSubmitted{}).index();
  auto store = OpenStore(directory / "a", life.disk);
  while (life.cluster.accepted()[jobs] < 200) {
    if (!life.Turn(*store)) continue;
    const uint64_t last = store->LastSequence();
    if (last % 50 == 20) REQUIRE(store->KeepBase().ok());
    if (last % 50 == 30) REQUIRE(store->TrimLog(last - 5).ok());
    if (last % 50 == 0) {
      store.reset();
      store = OpenStore(directory / "a", life.disk);
    }
  }
  store.reset();
  Tried tried;
  CutEverywhere(life, *life.disk, 0, directory / "copy", 1, &tried);
  std::cout << life.cluster.accepted()[jobs] << " jobs, " << life.acknowledged() << " batches, "
            << tried.steps << " steps, " << tried.cuts << " power cuts, " << tried.repaired
            << " with zeros cut off\n";
  CHECK(tried.cuts > 100);
}

TEST_CASE("power cuts while a store is opened after a power cut") {
  const TempDirectory directory = Scratch();
  Life life(directory / "a");
  {
    auto store = OpenStore(directory / "a", life.disk);
    while (life.acknowledged() < 30) life.Turn(*store);
  }
  Random random(Seed());
  Tried tried;
  for (size_t step = 10; step < life.disk->steps(); step += life.disk->steps() / 6) {
    INFO("first cut before step " << step << ": " << life.disk->Describe(step));
    const std::string again = directory / "again";
    life.disk->AfterPowerCut(step, PowerCut::kSome, random).WriteTo(again);
    const auto disk = std::make_shared<RecordedDisk>(again);
    uint64_t kept = 0;
    {
      auto store = OpenStore(again, disk);
      kept = store->LastSequence();  // readers may rely on it from now on
      disk->Mark(kept);
    }
    CHECK(kept >= life.disk->MarkBefore(step));
    CutEverywhere(life, *disk, life.disk->MarkBefore(step), directory / "copy", 1, &tried);
  }
  std::cout << tried.steps << " steps, " << tried.cuts << " power cuts, " << tried.repaired
            << " with zeros cut off\n";
  CHECK(tried.cuts > 30);
}

// The next process reads the write from the page cache, reports it, and continues.
TEST_CASE("power cuts after a process died between a write and its sync") {
  const TempDirectory directory = Scratch();
  Life life(directory / "a");
  for (uint64_t killed = 1; killed <= 3; ++killed) {
    auto store = OpenStore(directory / "a", life.disk);
    life.disk->Mark(store->LastSequence());
    const uint64_t before = life.acknowledged();
    while (life.acknowledged() < before + 4) life.Turn(*store);
    std::optional<Batch> batch;
    while (!batch.has_value()) batch = life.cluster.Turn(store->LastSequence() + 1, 8);
    life.disk->FailSyncs(true);
    REQUIRE_FALSE(store->Append({&*batch}).ok());
    store.reset();
    life.disk->FailSyncs(false);
    life.fingerprints.push_back(Fingerprint(life.cluster.state()));
    life.batches.push_back(*std::move(batch));
    store = OpenStore(directory / "a", life.disk);
    REQUIRE(store->LastSequence() == life.acknowledged());
    life.disk->Mark(store->LastSequence());
  }
  Tried tried;
  CutEverywhere(life, *life.disk, 0, directory / "copy", 1, &tried);
  std::cout << tried.steps << " steps, " << tried.cuts << " power cuts, " << tried.repaired
            << " with zeros cut off\n";
  CHECK(tried.cuts > 10);
}

TEST_CASE("power cuts while tables are written") {
  const TempDirectory directory = Scratch();
  Life life(directory / "a");
  const auto padding = size_t{3} << 20;  // a few of them exceed the write buffers
  {
    auto store = OpenStore(directory / "a", life.disk);
    while (life.acknowledged() < 16) life.Turn(*store, padding);
  }
  Tried tried;
  CutEverywhere(life, *life.disk, 0, directory / "copy", 2, &tried);
  bool wrote_table = false;
  for (size_t step = 0; step < life.disk->steps(); ++step) {
    const std::string what = life.disk->Describe(step);
    wrote_table |= absl::StartsWith(what, "create") && absl::StrContains(what, ".sst");
  }
  CHECK(wrote_table);
  CHECK(tried.cuts > 5);
  std::cout << tried.steps << " steps, " << tried.cuts << " power cuts, " << tried.repaired
            << " with zeros cut off\n";
}

}  // namespace
}  // namespace berth
