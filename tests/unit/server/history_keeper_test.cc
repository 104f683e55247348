// The usage history's database: whatever a crash leaves, whatever happens to the store.
#include "server/history/history_keeper.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "berth/v1/history.pb.h"
#include "server/history/history_records.h"
#include "storage/memory/memory_store.h"
#include "support/log.h"
#include "support/random.h"
#include "tests/unit/server/loop_world.h"
#include "tests/unit/storage/random_cluster.h"
#include "tests/unit/storage/temp_directory.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using testing::FakeClock;

const bool kSilent = StartLog("error", "").ok();

HistoryOptions OptionsIn(const std::string& directory) {
  HistoryOptions options;
  options.directory = directory;
  options.account_of = [](const std::map<std::string, std::string>& labels) {
    return labels.empty() ? "" : labels.begin()->second;
  };
  return options;
}

void CatchUp(HistoryKeeper& keeper) {
  for (bool more = true; more;) {
    const absl::StatusOr<bool> step = keeper.Step();
    INFO(step.status());
    REQUIRE(step.ok());
    more = *step;
  }
}

using Contents = std::map<std::pair<HistoryFamily, std::string>, std::string>;

constexpr HistoryFamily kFigures[] = {HistoryFamily::kMinute,       HistoryFamily::kHour,
                                      HistoryFamily::kDay,          HistoryFamily::kMinuteCapacity,
                                      HistoryFamily::kHourCapacity, HistoryFamily::kDayCapacity,
                                      HistoryFamily::kEnded,        HistoryFamily::kEndedByUid};

// Figures are the same whenever they are written: open rows are added up until now.
template <class M>
std::string Figures(absl::string_view value, int64_t now_ms) {
  bool open = false;
  auto meters = DecodeHistoryRow<M>(value, &open);
  REQUIRE(meters.ok());
  std::string text = open ? "open" : "closed";
  std::map<std::string, std::string> sums;
  for (auto& [resource, meter] : *meters) {
    if (open) meter.AddUp(now_ms);
    for (const AmountTime& sum : meter.sum) {
      absl::StrAppend(&sums[resource], " ", absl::Uint128High64(absl::uint128(sum)), ":",
                      absl::Int128Low64(sum));
    }
  }
  for (const auto& [resource, sum] : sums) absl::StrAppend(&text, " ", resource, sum);
  return text;
}

std::string JobText(HistoryFamily family, absl::string_view value) {
  if (family == HistoryFamily::kEndedByUid) return std::string(value);
  v1::EndedJob job;
  REQUIRE(job.ParseFromString(std::string(value)));
  return job.DebugString();  // maps in the order of their keys
}

Contents ContentsOf(const HistoryKeeper& keeper) {
  Contents contents;
  const auto database = keeper.database();
  REQUIRE(database.ok());
  const HistoryDb::View view(**database);
  const int64_t now_ms = MsOf(keeper.fold()->now());
  for (const HistoryFamily family : kFigures) {
    const bool capacity = family == HistoryFamily::kMinuteCapacity ||
                          family == HistoryFamily::kHourCapacity ||
                          family == HistoryFamily::kDayCapacity;
    const bool job = family == HistoryFamily::kEnded || family == HistoryFamily::kEndedByUid;
    REQUIRE(view.Scan(family, "", std::string(32, '\xff'),
                      [&](absl::string_view key, absl::string_view value) {
                        contents[{family, std::string(key)}] =
                            job        ? JobText(family, value)
                            : capacity ? Figures<CapacityMeter>(value, now_ms)
                                       : Figures<UsageMeter>(value, now_ms);
                        return true;
                      })
                .ok());
  }
  return contents;
}

void RequireSame(const HistoryKeeper& a, const HistoryKeeper& b) {
  const Contents of_a = ContentsOf(a), of_b = ContentsOf(b);
  for (const auto& [name, value] : of_a) {
    INFO("family " << static_cast<int>(name.first) << " key " << absl::CHexEscape(name.second));
    REQUIRE(of_b.contains(name));
    REQUIRE(of_b.at(name) == value);
  }
  REQUIRE(of_a.size() == of_b.size());
}

struct HistoryWorld {
  FakeClock clock;
  MemoryStore store;
  RandomCluster cluster;
  TempDirectory directory;

  explicit HistoryWorld(uint64_t seed) : cluster(seed) {}

  void Run(int turns, int events = 8) {
    for (int i = 0; i < turns; ++i) {
      auto batch = cluster.Turn(store.LastSequence() + 1, events);
      if (batch.has_value()) REQUIRE(store.Append({&*batch}).ok());
    }
  }
  std::unique_ptr<HistoryKeeper> Open(const std::string& name, const Store* of = nullptr) {
    return std::make_unique<HistoryKeeper>(OptionsIn(directory / name), of ? of : &store, &clock);
  }
  // One that has folded the whole log at once.
  std::unique_ptr<HistoryKeeper> Fresh() {
    static int number = 0;
    auto keeper = Open("fresh" + std::to_string(++number));
    CatchUp(*keeper);
    return keeper;
  }
};

TEST_CASE("history keeper: crashes and restarts change no figure") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    HistoryWorld world(seed);
    Random random(seed);
    auto keeper = world.Open("history");
    const std::string live = world.directory / "history", copy = world.directory / "copy";
    for (int round = 0; round < 25; ++round) {
      world.Run(12);
      const absl::StatusOr<bool> step = keeper->Step();
      INFO("seed " << seed << " round " << round << " " << step.status());
      REQUIRE(step.ok());
      switch (random.Below(4)) {
        case 0:  // the process stops
          keeper.reset();
          keeper = world.Open("history");
          break;
        case 1:  // the state of the disk to which a power cut may go back
          keeper.reset();
          fs::remove_all(copy);
          fs::copy(live, copy, fs::copy_options::recursive);
          keeper = world.Open("history");
          break;
        case 2:
          if (!fs::exists(copy)) break;
          keeper.reset();
          fs::remove_all(live);
          fs::copy(copy, live, fs::copy_options::recursive);
          keeper = world.Open("history");
          break;
        default:
          break;
      }
    }
    CatchUp(*keeper);
    REQUIRE(keeper->Tidy().ok());
    auto fresh = world.Fresh();
    REQUIRE(fresh->Tidy().ok());
    CHECK(keeper->counters().begun_again == 0);
    RequireSame(*keeper, *fresh);
    REQUIRE(ContentsOf(*keeper).size() > 100);
  }
}

TEST_CASE("history keeper: it begins with the base that the log still has") {
  HistoryWorld world(3);
  world.Run(60);
  const absl::StatusOr<uint64_t> base = world.store.KeepBase();
  REQUIRE(base.ok());
  world.Run(40);
  REQUIRE(world.store.TrimLog(*base).ok());
  auto keeper = world.Fresh();
  CHECK(keeper->done() == world.store.LastSequence());
  // What it holds is what the state holds, although it never saw the events before.
  size_t placed = 0;
  world.cluster.state().jobs().ForEach([&](JobId id, const Job& job) {
    for (uint32_t index = 0; index < job.tasks.size(); ++index) {
      const bool occupies = Occupies(job.tasks[index].state);
      const PlacedTask* task = keeper->fold()->FindTask({id, index});
      REQUIRE((task != nullptr && Occupies(task->task.state)) == occupies);
      placed += occupies ? 1 : 0;
    }
  });
  CHECK(placed > 0);
  // And it goes on after a restart.
  keeper = world.Open("again");
  CatchUp(*keeper);
  keeper.reset();
  keeper = world.Open("again");
  world.Run(10);
  CatchUp(*keeper);
  CHECK(keeper->counters().begun_again == 0);
}

TEST_CASE("history keeper: a trimmed log leaves a gap, and what was known") {
  HistoryWorld world(4);
  world.Run(80);
  auto keeper = world.Open("history");
  CatchUp(*keeper);
  const Contents before = ContentsOf(*keeper);
  keeper.reset();
  world.Run(4000, 2);  // hours
  const absl::StatusOr<uint64_t> base = world.store.KeepBase();
  REQUIRE(base.ok());
  REQUIRE(world.store.TrimLog(*base).ok());
  world.Run(20);
  keeper = world.Open("history");
  CatchUp(*keeper);
  CHECK(keeper->counters().begun_again == 1);
  CHECK(keeper->done() == world.store.LastSequence());
  const auto database = keeper->database();
  REQUIRE(database.ok());
  const auto stored = HistoryDb::View(**database).Get(HistoryFamily::kMeta, kPositionKey);
  REQUIRE(stored.ok());
  store::v1::HistoryPosition position;
  REQUIRE(position.ParseFromString(*stored));
  REQUIRE(position.gaps_size() == 1);
  CHECK(position.gaps(0).from_ms() < position.gaps(0).to_ms());
  const Contents after = ContentsOf(*keeper);
  size_t kept = 0;
  for (const auto& [name, value] : before) {
    if (name.first != HistoryFamily::kMinute || !absl::StartsWith(value, "closed")) continue;
    const auto row = ParseUsageRowKey(name.second);
    REQUIRE(row.ok());
    if (row->begin_ms + kMsPerMinute > position.gaps(0).from_ms()) continue;
    REQUIRE(after.contains(name));
    CHECK(after.at(name) == value);
    ++kept;
  }
  CHECK(kept > 0);
  // Rows from before do not go on.
  const std::string hour = PeriodKey(PeriodOf(position.time_ms(), kMsPerHour));
  for (const auto& [name, value] : after) {
    if (absl::StartsWith(value, "open")) CHECK(name.second >= hour);
  }
}

TEST_CASE("history keeper: a restored store begins again, and forgets what was after the backup") {
  HistoryWorld world(5);
  world.Run(60);
  const std::unique_ptr<MemoryStore> backup = world.store.Copy(/*incarnation=*/77);
  world.Run(60);
  auto keeper = world.Open("history");
  CatchUp(*keeper);
  keeper.reset();
  keeper = world.Open("history", backup.get());
  CatchUp(*keeper);
  CHECK(keeper->done() == backup->LastSequence());
  CHECK(keeper->counters().begun_again == 1);
  auto fresh = world.Open("fresh", backup.get());
  CatchUp(*fresh);
  RequireSame(*keeper, *fresh);
}

TEST_CASE("history keeper: a damaged database is put aside") {
  HistoryWorld world(6);
  world.Run(30);
  auto keeper = world.Open("history");
  CatchUp(*keeper);
  keeper.reset();
  for (const fs::directory_entry& file : fs::directory_iterator(world.directory / "history")) {
    if (file.path().filename().string().rfind("MANIFEST", 0) == 0) {
      fs::resize_file(file.path(), 10);
    }
  }
  keeper = world.Open("history");
  CatchUp(*keeper);
  CHECK(fs::exists(world.directory / "history.damaged"));
  RequireSame(*keeper, *world.Fresh());
}

TEST_CASE("history keeper: old rows go, and a large history becomes smaller") {
  HistoryWorld world(7);
  world.Run(1500, 4);
  HistoryOptions options = OptionsIn(world.directory / "history");
  options.minutes = absl::Minutes(20);
  HistoryKeeper keeper(options, &world.store, &world.clock);
  CatchUp(keeper);
  const size_t all = ContentsOf(keeper).size();
  REQUIRE(keeper.Tidy().ok());
  const Contents tidied = ContentsOf(keeper);
  CHECK(tidied.size() < all);
  const int64_t oldest = MsOf(keeper.fold()->now()) - 21 * kMsPerMinute;
  for (const auto& [name, value] : tidied) {
    if (name.first != HistoryFamily::kMinute) continue;
    CHECK(ParseUsageRowKey(name.second)->begin_ms >= oldest);
  }
}

TEST_CASE("history keeper: days are the sum of their hours") {
  HistoryWorld world(8);
  world.Run(3000, 3);
  auto keeper = world.Fresh();
  // Three days without an event.
  const Time later = keeper->fold()->now() + absl::Hours(80);
  const absl::StatusOr<bool> passed = keeper->PassTime(keeper->done(), later);
  REQUIRE(passed.ok());
  REQUIRE(*passed);
  REQUIRE(keeper->Tidy().ok());
  const auto database = keeper->database();
  const HistoryDb::View view(**database);
  std::map<std::string, AmountTime> hours, days;
  const auto add = [](auto& sums, absl::string_view value, const std::string& of) {
    bool open = false;
    const auto meters = DecodeHistoryRow<UsageMeter>(value, &open);
    REQUIRE(meters.ok());
    for (const auto& named : *meters) {
      sums[of + named.resource] += named.meter.sum[0];
    }
  };
  const int64_t first = PeriodOf(MsOf(later), kMsPerDay) - 2 * kMsPerDay;
  const auto scan = [&](HistoryFamily family, auto& sums) {
    REQUIRE(view.Scan(family, PeriodKey(first), PeriodKey(first + 2 * kMsPerDay),
                      [&](absl::string_view key, absl::string_view value) {
                        const auto row = ParseUsageRowKey(key);
                        const int64_t day = PeriodOf(row->begin_ms, kMsPerDay);
                        add(sums, value, UsageRowKey(day, row->key, row->model));
                        return true;
                      })
                .ok());
  };
  scan(HistoryFamily::kHour, hours);
  scan(HistoryFamily::kDay, days);
  CHECK_FALSE(days.empty());
  CHECK(hours == days);
}

}  // namespace
}  // namespace berth
