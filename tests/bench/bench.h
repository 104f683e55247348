// berth-bench: the performance of a Berth installation, one JSON object a line.
//
// Rows named core.* and topology.* measure only the engine (and storage), in a separate process
// (core_figures.h); replay.* measures replays of berth-sim in this process. Every other row starts
// a separate berthd (and simulated agents) in a temporary directory, from the folder of
// berth-bench, and measures from outside through the public API. Rows that fit several times into a
// minute are run repeatedly; the value is the median, with minimum and maximum alongside.
#ifndef BERTH_TESTS_BENCH_BENCH_H_
#define BERTH_TESTS_BENCH_BENCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::bench {

struct Options {
  bool quick = false;    // a hundredth of the work, one run: only checks that it works
  std::string programs;  // folder of berthd and berth-agent
  std::string only;      // for rows with cases, only this case; empty: all
  bool Wants(const std::string& name) const { return only.empty() || only == name; }
};

// One line of output. `numbers` and `texts` are the parameters of the measurement.
struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
};

struct Benchmark {
  std::string name;
  std::string what;  // one line for --list
  std::function<std::vector<Row>(const Options&)> run;
};

// The registered benchmarks, in the order in which they run.
std::vector<Benchmark> AllBenchmarks();

std::vector<Row> CoreFill(const Options& options);
std::vector<Row> CoreScale(const Options& options);
std::vector<Row> CoreGang(const Options& options);
std::vector<Row> CoreTopology(const Options& options);
std::vector<Row> CoreDevices(const Options& options);
std::vector<Row> CoreIdleCycle(const Options& options);
std::vector<Row> CoreVictims(const Options& options);
std::vector<Row> CoreReclaimLarge(const Options& options);
std::vector<Row> CoreReclaimMany(const Options& options);
std::vector<Row> CoreLookAgain(const Options& options);
std::vector<Row> CoreBacklog(const Options& options);
std::vector<Row> CoreShapes(const Options& options);
std::vector<Row> ReplaySmall(const Options& options);
std::vector<Row> ReplayLarge(const Options& options);
std::vector<Row> TopologyLoad(const Options& options);
std::vector<Row> TopologyJoin(const Options& options);
std::vector<Row> SubmitBatch(const Options& options);
std::vector<Row> SubmitUnary(const Options& options);
std::vector<Row> SubmitSecure(const Options& options);
std::vector<Row> HaSubmit(const Options& options);
std::vector<Row> HaTakeover(const Options& options);
std::vector<Row> HaEtcd(const Options& options);
std::vector<Row> SubmitBesideFlood(const Options& options);
std::vector<Row> Latency(const Options& options);
std::vector<Row> Throughput(const Options& options);
std::vector<Row> Restart(const Options& options);
std::vector<Row> RestartAgents(const Options& options);
std::vector<Row> RecoverNode(const Options& options);
std::vector<Row> RecoverSpare(const Options& options);
std::vector<Row> RecoverEight(const Options& options);
std::vector<Row> RecoverRack(const Options& options);
std::vector<Row> RecoverInPlace(const Options& options);
std::vector<Row> Memory(const Options& options);
std::vector<Row> MemoryTasks(const Options& options);
std::vector<Row> Agents(const Options& options);
std::vector<Row> Progress(const Options& options);
std::vector<Row> StuckAgents(const Options& options);

std::string ToJson(const Row& row);

// Median, minimum and maximum of `values` (not empty) as a row.
Row MedianRow(std::string name, std::string unit, std::vector<double> values);

// `full`, or a hundredth of it (at least `least`) with --quick.
int64_t Scaled(const Options& options, int64_t full, int64_t least = 1);

// Ends the program with a message: a benchmark that cannot run reports nothing.
[[noreturn]] void Fail(const std::string& message);

}  // namespace berth::bench

#endif  // BERTH_TESTS_BENCH_BENCH_H_
