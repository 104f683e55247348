// Predicted run times, compared with values computed by hand.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/base/fixed_log.h"
#include "core/prediction/run_history.h"

namespace berth {
namespace {

constexpr int64_t kSecond = 1000;

RunRequest Cpus(int64_t walltime_s, int64_t cpus) {
  return {.walltime_s = walltime_s, .devices = 0, .cpu_millis = 1000 * cpus};
}

// Adds runs under consecutive ids.
struct History {
  std::vector<RunId> Ran(const std::string& user, RunRequest request, int64_t seconds) {
    return runs.Add(runs.next(), {.user = user, .request = request, .run_ms = seconds * kSecond});
  }
  RunPrediction For(const std::string& user, RunRequest request) const {
    return runs.Predict(user, request);
  }
  RunHistory runs;
};

TEST_CASE("FixedLog2 equals the exact logarithm to within 2/65536") {
  CHECK(FixedLog2(0) == 0);
  CHECK(FixedLog2(1) == 0);
  CHECK(FixedLog2(2) == 1 << kLogBits);
  CHECK(FixedLog2(1024) == 10 << kLogBits);
  CHECK(FixedLog2(uint64_t{1} << 63) == int64_t{63} << kLogBits);
  for (uint64_t x : {3u, 10u, 3600u, 86400u, 1234567u, 4000000000u}) {
    const double exact = std::log2(static_cast<double>(x)) * (1 << kLogBits);
    CHECK(std::abs(static_cast<double>(FixedLog2(x)) - exact) < 2);
  }
}

TEST_CASE("without any run nothing is predicted") {
  const History history;
  CHECK_FALSE(history.For("ann", Cpus(100, 1)).Known());
  CHECK(history.For("ann", Cpus(100, 1)) == RunPrediction{});
}

TEST_CASE("with a single run, the prediction equals it") {
  History history;
  history.Ran("ann", Cpus(100, 1), 20);
  CHECK(history.For("ann", Cpus(100, 1)) == RunPrediction{20, 20, 20, 20});
}

// The newer run weighs 4 * 3, the older 0.9 of that, and both share the walltime's weight of 1.
// Of 23.8: (12.5 * 100 + 11.3 * 10) / 23.8 = 57.3;  23.8 / (12.5 / 100 + 11.3 / 10) = 18.96.
TEST_CASE("newer runs count more, and short ones lower the harmonic mean") {
  History history;
  history.Ran("ann", Cpus(1000, 1), 10);
  history.Ran("ann", Cpus(1000, 1), 100);
  CHECK(history.For("ann", Cpus(1000, 1)) == RunPrediction{58, 19, 10, 100});
}

// Of walltime 500: 0.5 * 3, newest. Of 4 CPUs: 0.9 * 4 / (1 + ln 4) = 1.509, and as the only run of
// this walltime 1 more. (1.5 * 100 + 2.509 * 200) / 4.009 = 162.6, in steps of 8 from 128 on: 168.
// 4.009 / (1.5 / 100 + 2.509 / 200) = 145.5.
TEST_CASE("runs with other requests count less") {
  History history;
  history.Ran("ann", Cpus(1000, 4), 200);
  history.Ran("ann", Cpus(500, 1), 100);
  CHECK(history.For("ann", Cpus(1000, 1)) == RunPrediction{168, 146, 100, 200});
}

TEST_CASE("for a user without runs, others' runs count by walltime, or in proportion to it") {
  History history;
  history.Ran("ann", Cpus(100, 1), 50);
  CHECK(history.For("bob", Cpus(100, 8)) == RunPrediction{50, 50, 50, 50});
  // Half of 1000, in steps of 16 from 256 on: 512.
  CHECK(history.For("bob", Cpus(1000, 8)) == RunPrediction{512, 500, 500, 500});
}

TEST_CASE("no prediction exceeds the walltime, however long similar jobs ran") {
  History history;
  history.Ran("ann", Cpus(0, 1), 3000);
  CHECK(history.For("ann", Cpus(30, 1)) == RunPrediction{30, 30, 30, 30});
  CHECK(history.For("ann", Cpus(5, 1)) == RunPrediction{5, 5, 5, 5});
}

TEST_CASE("jobs without walltime are predicted from earlier runs") {
  History history;
  history.Ran("ann", Cpus(0, 1), 600);
  CHECK(history.For("ann", Cpus(0, 1)).harmonic_s == 600);
  CHECK(history.For("bob", Cpus(0, 4)).harmonic_s == 600);
  // A job with a walltime is similar to an eighth; the only one of its walltime, it is not scaled.
  CHECK(history.For("bob", Cpus(60, 4)).harmonic_s == 60);
}

TEST_CASE("devices give the size of a job, and a job with devices is unlike one without") {
  History history;
  const RunRequest one{.walltime_s = 1000, .devices = 1000, .cpu_millis = 4000};
  const RunRequest eight{.walltime_s = 1000, .devices = 8000, .cpu_millis = 4000};
  history.Ran("ann", Cpus(1000, 4), 10);
  history.Ran("ann", one, 700);
  // 12 * 700 of similar runs, 0.9 * 4 / 8 * 10 of those without, 0.5 of each: 664.1 of 13.45.
  CHECK(history.For("ann", one).expected_s == 672);
  // 4 / (1 + ln 8) = 1.299 of 700, 0.45 of 10, 0.5 of each: 460.9 of 2.749.
  CHECK(history.For("ann", eight).expected_s == 464);
}

TEST_CASE("runs beyond the last 60 of a user, 50 of a walltime and 50 of all are dropped") {
  History history;
  for (int64_t i = 0; i < 60; ++i) CHECK(history.Ran("ann", Cpus(100, 1), 20).empty());
  CHECK(history.Ran("ann", Cpus(100, 1), 20) == std::vector<RunId>{RunId{1}});
  CHECK(history.runs.size() == 60);
  // Bob's first run is among the last 50 of its walltime until 50 more came, and then among his
  // last 60.
  history.Ran("bob", Cpus(100, 1), 99);
  for (int64_t i = 0; i < 200; ++i) history.Ran("ann", Cpus(100, 1), 20);
  CHECK(history.runs.Find(RunId{62}) != nullptr);
  for (int64_t i = 0; i < 60; ++i) history.Ran("bob", Cpus(500, 1), 99);
  CHECK(history.runs.Find(RunId{62}) == nullptr);
}

TEST_CASE("the number of runs never exceeds the maximum, and the oldest are dropped first") {
  History history;
  const auto many = static_cast<int64_t>(RunHistory::kMaxRuns);
  for (int64_t i = 1; i <= many; ++i) history.Ran(std::to_string(i), Cpus(i, 1), 1);
  CHECK(history.runs.size() == RunHistory::kMaxRuns);
  CHECK(history.Ran("last", Cpus(many + 1, 1), 1) == std::vector<RunId>{RunId{1}});
  CHECK(history.runs.size() == RunHistory::kMaxRuns);
}

TEST_CASE("adding the kept runs again in order gives the same history") {
  History history;
  for (int64_t i = 0; i < 2000; ++i) {
    history.Ran(std::to_string(i * 7 % 13), Cpus(100 * (1 + i * 5 % 11), 1 + i % 4), 1 + i % 90);
  }
  RunHistory again;
  history.runs.ForEach(
      [&](RunId id, const FinishedRun& run) { CHECK(again.Add(id, run).empty()); });
  CHECK(again.SameAs(history.runs));
  CHECK(again.Predict("3", Cpus(300, 2)) == history.For("3", Cpus(300, 2)));
  CHECK(again.next() == history.runs.next());
}

}  // namespace
}  // namespace berth
