// Runs the example of docs/examples/training through the command, as docs/developers/benchmarks.md
// shows it, with a cluster of a hundredth of the nodes on which faults are as frequent.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "offline/replay/fault_file.h"
#include "offline/replay/replay_command.h"
#include "offline/replay/replay_result.h"
#include "support/text_file.h"

namespace berth::replay {
namespace {

std::string TrainingExample(const std::string& name) {
  return absl::StrCat(BERTH_EXAMPLES, "/training/", name);
}

class ExampleFolder {
 public:
  ExampleFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "berth-training-XXXXXX";
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~ExampleFolder() { std::filesystem::remove_all(path_); }
  // Writes the example's file with these replacements.
  std::string Smaller(const std::string& name,
                      const std::map<std::string, std::string>& replacements) {
    const auto text = ReadTextFile(TrainingExample(name));
    REQUIRE(text.ok());
    std::string smaller = *text;
    for (const auto& [from, to] : replacements) {
      INFO(name << ": " << from);
      REQUIRE(absl::StrReplaceAll({{from, to}}, &smaller) == 1);
    }
    std::ofstream(path_ + "/" + name) << smaller;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

ReplayArguments TrainingArguments(ExampleFolder* folder, const std::string& faults) {
  ReplayArguments arguments;
  arguments.trace = folder->Smaller("job.csv", {{"2048", "20"}});
  arguments.columns = "name=name,submit=submit,run=run,tasks=nodes,gpus=gpus";
  arguments.cluster = folder->Smaller("spares-16.yaml", {{"0001-2064", "01-25"}});
  arguments.faults = folder->Smaller(faults, {{"nodes: 2048", "nodes: 20"}});
  arguments.quiet = true;
  return arguments;
}

TEST_CASE("simulated faults at the published rates agree with the calculation by hand") {
  ExampleFolder folder;
  ReplayArguments arguments = TrainingArguments(&folder, "faults.yaml");
  arguments.configs = {TrainingExample("shared.yaml"), TrainingExample("memory.yaml"),
                       TrainingExample("shared-blocking.yaml")};
  arguments.seeds = {1, 2, 3, 4, 5};
  const auto result = RunReplay(arguments);
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  REQUIRE(result->policies_size() == 3);
  // A fault every 11,135 s: 60 s until it is known, half an interval of work, and the restart.
  CHECK(100 * result->policies(0).training().ettr() == Approx(94.1).margin(1));
  CHECK(100 * result->policies(1).training().ettr() == Approx(98.2).margin(1));
  // 30 s for each 600 s of work besides.
  CHECK(100 * result->policies(2).training().ettr() == Approx(94.1 / 1.05).margin(1.5));
  for (const sim::v1::PolicyResult& policy : result->policies()) {
    const sim::v1::TrainingFigures& training = policy.training();
    CHECK(training.ettr() + training.checkpoints() + training.lost() + training.undetected() +
              training.waiting() + training.restarts() ==
          Approx(1));
    CHECK(policy.copies() == 5);
    CHECK(policy.finished() == 1);
  }
  const std::string table = Printed(*result, "table");
  CHECK(table.find("\neffective training time ") != std::string::npos);
  CHECK(table.find("\nby NCCL watchdog timeout ") != std::string::npos);
}

TEST_CASE("hangs that are found late cost what they stand still") {
  ExampleFolder folder;
  std::map<std::string, double> ettr;
  for (const char* faults : {"faults.yaml", "hangs-10m.yaml", "hangs-30m.yaml"}) {
    ReplayArguments arguments = TrainingArguments(&folder, faults);
    arguments.configs = {TrainingExample("memory.yaml")};
    const auto result = RunReplay(arguments);
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    ettr[faults] = 100 * result->policies(0).training().ettr();
  }
  // 49 hangs in 54 days: 9 and 29 more minutes each.
  CHECK(ettr["faults.yaml"] - ettr["hangs-10m.yaml"] == Approx(49 * 9 / 777.6).margin(0.2));
  CHECK(ettr["faults.yaml"] - ettr["hangs-30m.yaml"] == Approx(49 * 29 / 777.6).margin(0.6));
}

TEST_CASE("the example has all published faults") {
  for (const char* faults : {"faults.yaml", "hangs-10m.yaml", "hangs-30m.yaml"}) {
    const auto model = ReadFaultFile(TrainingExample(faults));
    INFO(model.status().ToString());
    REQUIRE(model.ok());
    double count = 0;
    for (const FaultCause& cause : model->causes) count += cause.count;
    CHECK(count == 419);
  }
}

TEST_CASE("options that faults do not go with are refused") {
  ExampleFolder folder;
  ReplayArguments arguments = TrainingArguments(&folder, "faults.yaml");
  arguments.seeds = {1, 2};
  arguments.jobs = "jobs.csv";
  CHECK(RunReplay(arguments).status().message() ==
        "--jobs needs one replay, but --seeds makes several");
  arguments.jobs.clear();
  arguments.fill = 1;
  CHECK_FALSE(RunFill(arguments).ok());
  arguments.fill = 0;
  arguments.network = absl::StrCat(BERTH_EXAMPLES, "/network/network.yaml");
  CHECK(RunReplay(arguments).status().message() ==
        "default: --network excludes costs of checkpoints and restarts");
  arguments.network.clear();
  arguments.faults = "no-such-file.yaml";
  CHECK_FALSE(RunReplay(arguments).ok());
}

}  // namespace
}  // namespace berth::replay
