// This version and each later one must open the data directories of older versions
// (`formats/NUMBER`, by the number of the store's format). They are never regenerated.
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "berth/store/v1/store.pb.h"
#include "core/model/state_editor.h"
#include "storage/fsck.h"
#include "storage/load.h"
#include "storage/rocksdb/rocksdb_store.h"
#include "support/log.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

const bool kQuiet = StartLog("error", "").ok();

std::string CopyOf(int format, TempDirectory& directory) {
  const fs::path from = fs::path(BERTH_TEST_FORMATS) / std::to_string(format);
  std::string to = directory / "data";
  fs::copy(from, to);
  return to;
}

// A turn in which nothing happened.
std::string TurnOf(uint64_t batch) {
  store::v1::LogTurn turn;
  turn.set_sequence(batch);
  turn.mutable_time()->set_seconds(1);
  return turn.SerializeAsString();
}

const Job& JobNamed(const ClusterState& state, const char* name) {
  const Job* job = state.FindJob(name);
  REQUIRE(job != nullptr);
  return *job;
}

// Jobs that were running, pending, held and ended when `berthd` was stopped.
void CheckSix(const ClusterState& state) {
  CHECK(state.nodes().size() == 6);
  CHECK(state.hyper_nodes().size() == 1);
  CHECK(state.FindQueue("child") != nullptr);
  CHECK(JobNamed(state, "gang").status.state == JobState::kRunning);
  CHECK(JobNamed(state, "gang").labels.at("a") == "b");
  CHECK(JobNamed(state, "half").status.state == JobState::kRunning);
  CHECK(JobNamed(state, "waits").status.state == JobState::kPending);
  CHECK(JobNamed(state, "short").status.state == JobState::kSucceeded);
  CHECK(JobNamed(state, "held").status.suspended);
  CHECK(JobNamed(state, "gone").status.state == JobState::kCancelled);
  const ResourceKind gpu = *state.interner().FindKind("gpu");
  CHECK(state.queues().At(kRootQueue).allocated[gpu] == 8 * kWhole + 1500);
}

// It keeps its format, so that an older version can use it, until it is finalized.
TEST_CASE("a store of format 5 is whole, opens, and keeps its format until it is finalized") {
  TempDirectory directory;
  const std::string data = CopyOf(5, directory);
  std::ostringstream report;
  REQUIRE(Fsck(data, report).ok());
  CHECK_THAT(report.str(), Contains("6 jobs, 5 job statuses, 7 tasks, 7 requests") &&
                               Contains("fold       the log's events give the same state"));
  for (const uint64_t batch : {20, 21, 22}) {
    RocksDbOptions options;
    options.directory = data;
    auto store = RocksDbStore::Open(options);
    REQUIRE(store.ok());
    ClusterState state;
    REQUIRE(LoadState(
                **store, state, [](StoredRequest) {}, nullptr)
                .ok());
    CHECK(CheckConsistency(state).ok());
    CheckSix(state);
    CHECK((*store)->LastSequence() == batch - 1);
    CHECK((*store)->Format() == (batch < 22 ? 5 : kStoreFormat));
    const Batch next{
        .sequence = batch, .records = {}, .log = TurnOf(batch), .newest_format = batch == 21};
    REQUIRE((*store)->Append({&next}).ok());
    CHECK((*store)->Format() == (batch < 21 ? 5 : kStoreFormat));
  }
  std::ostringstream after;
  CHECK(Fsck(data, after).ok());
  CHECK_THAT(after.str(), Contains(absl::StrCat("format ", kStoreFormat)));
}

}  // namespace
}  // namespace berth
