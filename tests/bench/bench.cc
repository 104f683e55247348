#include "tests/bench/bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace berth::bench {

std::vector<Benchmark> AllBenchmarks() {
  // Benchmarks that fork come first: the program has no threads yet.
  return {
      {"core.fill", "placements/s of the engine, 10,000 nodes x 8 GPUs, mixed jobs, until full",
       CoreFill},
      {"core.scale", "time per placement with 100,000 nodes, divided by that with 1,000",
       CoreScale},
      {"core.gang", "us to decide on a gang of 1,000 nodes among 16,384, hard tier", CoreGang},
      {"core.topology", "us to decide on gangs of up to 4,096 nodes, or that no domain fits",
       CoreTopology},
      {"core.devices", "us to choose devices on nodes of 8 and 16 GPUs, the longest choice",
       CoreDevices},
      {"core.idle_cycle", "us per cycle with 1,000,000 pending jobs, none of which can start",
       CoreIdleCycle},
      {"core.victims", "ms to plan victims for a gang of 128 nodes on 4,000 full ones",
       CoreVictims},
      {"core.reclaim_large", "ms to reclaim 100 nodes from 8,000 jobs of one GPU",
       CoreReclaimLarge},
      {"core.reclaim_many", "us per reclaim, for 1,000 and 4,000 jobs of one GPU submitted at once",
       CoreReclaimMany},
      {"core.look_again", "ms for a cycle that evaluates 380 kinds of jobs, none of which fits",
       CoreLookAgain},
      {"core.backlog",
       "us to plan after the end of a job, 100,000 pending jobs of which no two are "
       "alike; and 1,000,000",
       CoreBacklog},
      {"core.shapes",
       "the same with 10,000 pending jobs, each with a shape of its own; and 100,000", CoreShapes},
      {"replay.small", "submits, starts and ends per second, jobs replayed on 16 nodes",
       ReplaySmall},
      {"replay.large", "the same for 100,000 jobs replayed on 10,000 nodes", ReplayLarge},
      {"topology.load", "s to load 100,000 nodes in 10,000 racks and 12,500 NVLink domains",
       TopologyLoad},
      {"topology.join", "s to find the HyperNodes of 100,000 nodes among 10,000 expressions",
       TopologyJoin},
      {"rpc.submit_batch", "jobs/s accepted and durable, 1,000 per call", SubmitBatch},
      {"rpc.submit_unary", "jobs/s accepted and durable, one per call, 64 calls in flight",
       SubmitUnary},
      {"rpc.submit_secure",
       "jobs/s with client certificates and access rules / with certificates alone", SubmitSecure},
      {"rpc.flood", "p99 of a user's submits beside another user's flood / alone",
       SubmitBesideFlood},
      {"ha.submit", "jobs/s accepted and committed by three members of etcd, 1,000 per call",
       HaSubmit},
      {"ha.takeover",
       "s from kill -9 of the leader to the first accepted submit, 1,000,000 jobs, 10,000 nodes",
       HaTakeover},
      {"ha.etcd", "MiB of etcd's database after 5 minutes of 10 MB/s that do not compress", HaEtcd},
      {"e2e.latency", "ms from submit to the task running on a simulated agent, idle cluster",
       Latency},
      {"e2e.throughput", "tasks/s from submit to all started, 10,000 jobs on 1,000 simulated nodes",
       Throughput},
      {"restart", "s from exec to the first decision with 1,000,000 jobs and 10,000 nodes stored",
       Restart},
      {"restart.agents",
       "s from exec until 1,000 agents are back, 100,000 jobs, 8,000 of them running",
       RestartAgents},
      {"recover.node",
       "s until a gang of 1,024 nodes runs again after one dead node, beside fencing", RecoverNode},
      {"recover.spare", "the same, and a spare of the gang takes the place", RecoverSpare},
      {"recover.eight", "the same after eight dead nodes", RecoverEight},
      {"recover.rack", "the same after a dead rack of 32 nodes", RecoverRack},
      {"recover.inplace", "s from a failed task until all 1,024 of its gang run again in place",
       RecoverInPlace},
      {"memory", "MiB resident with 100,000 nodes x 8 GPUs and 1,000,000 pending jobs", Memory},
      {"memory.tasks", "MiB resident with 2,200 pending jobs of 10,000 tasks", MemoryTasks},
      {"agents", "% of one core for 10,000 connected agents", Agents},
      {"progress", "% of one core for the steps of 10,000 tasks that make one a second", Progress},
      {"agents.stuck", "p99 from bind to Prepare at its agent, 1,000 of 10,000 stuck / none stuck",
       StuckAgents},
  };
}

namespace {

// Six significant digits, without an exponent for the numbers that occur here.
std::string Number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  return absl::StrFormat("%.6g", value);
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string ToJson(const Row& row) {
  std::string out = absl::StrCat("{\"name\":", Quoted(row.name), ",\"value\":", Number(row.value),
                                 ",\"unit\":", Quoted(row.unit));
  for (const auto& [key, value] : row.numbers) {
    absl::StrAppend(&out, ",", Quoted(key), ":", Number(value));
  }
  for (const auto& [key, value] : row.texts) {
    absl::StrAppend(&out, ",", Quoted(key), ":", Quoted(value));
  }
  return out + "}";
}

Row MedianRow(std::string name, std::string unit, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Row row;
  row.name = std::move(name);
  row.value = values[values.size() / 2];
  row.unit = std::move(unit);
  row.numbers["runs"] = static_cast<double>(values.size());
  row.numbers["min"] = values.front();
  row.numbers["max"] = values.back();
  return row;
}

int64_t Scaled(const Options& options, int64_t full, int64_t least) {
  return options.quick ? std::max(full / 100, least) : full;
}

void Fail(const std::string& message) {
  std::fprintf(stderr, "berth-bench: %s\n", message.c_str());
  std::exit(1);
}

}  // namespace berth::bench
