// Workloads from `berth job history`.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "offline/replay/history_workload.h"
#include "offline/replay/replay.h"
#include "offline/sim/scenario_file.h"

namespace berth::replay {
namespace {

std::string Line(const std::string& name, const std::string& state, const std::string& times,
                 const std::string& spec = "") {
  return absl::StrCat(R"({"name":")", name, R"(","spec":{"queue":"a","user":"ann","priority":7,)",
                      spec, R"("groups":[{"name":"w","replicas":2,"minAvailable":1,"resources":)",
                      R"({"cpu":"500","devices":[{"kind":"gpu","count":1}]}},)",
                      R"({"name":"ps","replicas":1,"resources":{"cpu":"1500"}}]},)",
                      R"("status":{"state":")", state, R"(",)",
                      R"("submitTime":"2026-03-01T10:00:00Z")", times, "}}\n");
}
constexpr char kTimes[] = R"(,"startTime":"2026-03-01T10:00:05Z","endTime":"2026-03-01T10:01:45Z")";

TEST_CASE("a history: which jobs ran, how long, and all of their requests") {
  const auto workload =
      ReadHistory(Line("j1", "JOB_SUCCEEDED", kTimes, R"("walltime":"60s",)") +
                      Line("j2", "JOB_FAILED", kTimes) + Line("j3", "JOB_CANCELLED", ""),
                  "h.jsonl");
  INFO(workload.status().ToString());
  REQUIRE(workload.ok());
  REQUIRE(workload->jobs.size() == 2);
  CHECK(workload->left_out.at("never ran") == 1);
  const TraceJob &first = workload->jobs[0], &second = workload->jobs[1];
  CHECK(first.name == "j1");
  CHECK(first.run == absl::Seconds(60));  // stopped at its walltime
  CHECK(first.overran);
  CHECK(second.run == absl::Seconds(100));
  CHECK(second.ended == TraceEnd::kFailed);
  CHECK(second.requested == absl::InfiniteDuration());
  CHECK(second.user == "ann");
  CHECK(second.queue == "a");
  CHECK(second.priority == 7);
  CHECK(TasksOf(second) == 3);
  CHECK(GpusOf(second) == 2);
  CHECK(CountsOf(*workload).at("failed") == 1);
}

TEST_CASE("a history is replayed as whole gangs, if its topology allows that") {
  const std::string near = R"("topology":{"mode":"HARD","highestTier":1},)";
  const auto workload = ReadHistory(Line("j1", "JOB_SUCCEEDED", kTimes, near), "h.jsonl");
  REQUIRE(workload.ok());
  const auto replay = [&](const std::string& cluster) {
    const auto documents = ReadScenarios(cluster, "c.yaml");
    REQUIRE(documents.ok());
    auto run = Replay(*workload, documents->front().scenario);
    INFO(run.status().ToString());
    REQUIRE(run.ok());
    return *std::move(run);
  };
  const std::string nodes = "nodes: [{name: 'n[0-3]', cpu: 2, gpus: 1}]\n";
  const std::string apart =
      "hyper_nodes:\n- {name: r0, tier: 1, nodes: [n0]}\n- {name: r1, tier: 1, nodes: "
      "['n[1-3]']}\n";
  CHECK(replay(nodes + apart).outcomes[0].tier == 1);
  const std::string narrow =
      "hyper_nodes:\n- {name: r0, tier: 1, nodes: [n0]}\n- {name: r1, tier: 1, nodes: [n1]}\n";
  CHECK(replay(nodes + narrow).outcomes[0].end == absl::InfiniteDuration());
}

TEST_CASE("a history: errors have a line number") {
  const auto message = [](const std::string& text) {
    return std::string(ReadHistory(text, "h.jsonl").status().message());
  };
  CHECK(message(Line("j1", "JOB_RUNNING", kTimes)) == "h.jsonl:1: j1 has not ended");
  CHECK(message("\n{\"nam\": 1}\n").find("h.jsonl:2: ") == 0);
}

}  // namespace
}  // namespace berth::replay
