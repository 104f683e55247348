// Hints for mistakes that new users make.
#include <catch2/catch.hpp>

#include "clients/cli/manifest.h"

namespace berth {
namespace {

std::string ErrorOf(const std::string& text, const std::string& file = "f.yaml") {
  std::vector<std::string> warnings;
  const auto read = ReadManifests(text, file, {}, &warnings);
  return std::string(read.status().message());
}

constexpr char kHead[] = "apiVersion: berth/v1\nkind: Job\n";

std::string JobError(const std::string& keys) { return ErrorOf(kHead + keys + "\n"); }
std::string GroupError(const std::string& keys) {
  return JobError("groups:\n- name: w\n  " + keys);
}
std::string ResourceError(const std::string& keys) {
  return GroupError("resources: {" + keys + "}");
}

TEST_CASE("hints: resources by the names of other systems") {
  CHECK(ResourceError("mem: 3G") ==
        "f.yaml:5:15: unknown key \"mem\": write memory: 3G (in powers of 1000) or memory: 3Gi (of "
        "1024)");
  CHECK(ResourceError("mem: 4000") ==
        "f.yaml:5:15: unknown key \"mem\": write memory: 4000Mi, or memory: 4000Gi; a plain "
        "number is in bytes");
  CHECK(ResourceError("ram: 3Gi") == "f.yaml:5:15: unknown key \"ram\": write memory: 3Gi");
  CHECK(ResourceError("gpus: 1") == "f.yaml:5:15: unknown key \"gpus\": write gpu: 1");
  CHECK(ResourceError("nvidia.com/gpu: 2") ==
        "f.yaml:5:15: unknown key \"nvidia.com/gpu\": write gpu: 2");
  CHECK(ResourceError("gres: 'gpu:a100:8'") == "f.yaml:5:15: unknown key \"gres\": write gpu: 8");
  CHECK(ResourceError("cores: 4") == "f.yaml:5:15: unknown key \"cores\": write cpu: 4");
  CHECK(ResourceError("cpus: 4") == "f.yaml:5:15: unknown key \"cpus\": write cpu: 4");
  CHECK(ResourceError("requests: {cpu: 1}") ==
        "f.yaml:5:15: unknown key \"requests\": a task may use what it requests: write the keys "
        "here, such as cpu: 1");
  CHECK(ErrorOf("apiVersion: berth/v1\nkind: Queue\nname: q\nlimit: {mem: 1Ti}\n") ==
        "f.yaml:4:9: unknown key \"mem\": write memory: 1Ti");
}

TEST_CASE("hints: keys at the wrong level") {
  CHECK(GroupError("gpus: 1") ==
        "f.yaml:5:3: unknown key \"gpus\": write it below resources:, as gpu: 1");
  CHECK(GroupError("memory: 3Gi") ==
        "f.yaml:5:3: unknown key \"memory\": write it below resources:, as memory: 3Gi");
  CHECK(JobError("cpu: 1") ==
        "f.yaml:3:1: unknown key \"cpu\": it belongs to a group: write it below groups: and "
        "resources:, as cpu: 1");
  for (const char* key : {"image", "command", "env", "replicas", "workingDir", "resources"}) {
    CHECK(JobError(std::string(key) + ": x") ==
          "f.yaml:3:1: unknown key \"" + std::string(key) +
              "\": it belongs to a group: write it below groups:, next to the group's name:");
  }
  for (const char* key : {"walltime", "queue", "maxRetries", "preemptionPolicy"}) {
    CHECK(GroupError(std::string(key) + ": 1") ==
          "f.yaml:5:3: unknown key \"" + std::string(key) +
              "\": it belongs to the job: write it at the top, next to name: and queue:");
  }
}

TEST_CASE("hints: keys of Kubernetes, Slurm and Docker") {
  CHECK(JobError("metadata: {name: a}") ==
        "f.yaml:3:1: unknown key \"metadata\": a Berth manifest has none: write name: and labels: "
        "at the top");
  CHECK(JobError("spec: {}") ==
        "f.yaml:3:1: unknown key \"spec\": a Berth manifest has none: write its keys at the top, "
        "next to name:");
  CHECK(JobError("time: 10") == "f.yaml:3:1: unknown key \"time\": write walltime: 1h30m");
  CHECK(JobError("partition: gpu") ==
        "f.yaml:3:1: unknown key \"partition\": Slurm's partitions are queues: write queue: gpu");
  CHECK(JobError("backoffLimit: 4") ==
        "f.yaml:3:1: unknown key \"backoffLimit\": write maxRetries: 4");
  CHECK(JobError("cmd: a") ==
        "f.yaml:3:1: unknown key \"cmd\": below groups: write command: [PROGRAM, ARGUMENT]");
  CHECK(GroupError("cmd: a") ==
        "f.yaml:5:3: unknown key \"cmd\": write command: [PROGRAM, ARGUMENT]");
  CHECK(GroupError("parallelism: 4") ==
        "f.yaml:5:3: unknown key \"parallelism\": write replicas: 4");
  CHECK(GroupError("replica: 4") ==
        "f.yaml:5:3: unknown key \"replica\"; did you mean \"replicas\"?");
  CHECK(GroupError("environment: {A: b}") ==
        "f.yaml:5:3: unknown key \"environment\": write env: {NAME: value}");
  CHECK(GroupError("env: [A=b=c, PATH]") ==
        "f.yaml:5:9: env: expected {NAME: value}; write env: {A: b=c}\n"
        "f.yaml:5:16: env: expected a map of keys, got a single value");
  CHECK(ErrorOf("apiVersion: apps/v1\nkind: ReplicaSet\n") ==
        "f.yaml:1:13: unknown apiVersion \"apps/v1\": Berth runs jobs that end, not services");
  CHECK(ErrorOf("#!/bin/bash\n#SBATCH --gpus 1\nsrun a\n", "train.sh") ==
        "train.sh:1:1: a script is not a manifest; to run it, write: berth submit -- ./train.sh "
        "(#SBATCH lines are ignored: give options of berth before --)");
}

TEST_CASE("hints: times and amounts in the notation of other systems") {
  CHECK(JobError("walltime: 3600") ==
        "f.yaml:3:11: walltime: expected a duration such as 90s, 1h30m or 500ms, got \"3600\"; did "
        "you mean 3600s?");
  CHECK(JobError("walltime: 01:30:00").find("did you mean 1h30m?") != std::string::npos);
  CHECK(JobError("walltime: 2-12:00:00").find("did you mean 2d12h?") != std::string::npos);
  CHECK(JobError("walltime: 30:00").find("did you mean 30m?") != std::string::npos);
  CHECK(JobError("walltime: soon").find("did you mean") == std::string::npos);
  CHECK(ResourceError("memory: 3 GB").find("did you mean 3GB?") != std::string::npos);
  CHECK(ResourceError("memory: 3gi").find("did you mean 3Gi?") != std::string::npos);
  CHECK(ResourceError("memory: much").find("did you mean") == std::string::npos);
  CHECK(ErrorOf(std::string(kHead) +
                "groups:\n- name: w\n  command: [a]\n  resources: {memory: 3G}\n")
            .empty());
}

TEST_CASE("hints: a tab in the indentation is reported with its place") {
  constexpr char kTab[] = ": a tab; YAML indents with spaces";
  CHECK(JobError("groups:\n\t- name: w") == std::string("f.yaml:4:1") + kTab);
  CHECK(JobError("groups:\n- name: w\n\treplicas: 1") == std::string("f.yaml:5:1") + kTab);
  CHECK(JobError("groups:\n- name: w\n  resources:\n  \tcpu: 1\n  command: a") ==
        std::string("f.yaml:6:3") + kTab);
  CHECK(JobError("groups:\n-\tname: w\n\tcommand: a") == std::string("f.yaml:4:2") + kTab);
  CHECK(JobError("queue:\ta\ngroups:\n- name: w\n  command:\n  - |\n    a\n    \tb").empty());
  CHECK(ErrorOf("{\n\t\"apiVersion\": \"berth/v1\",\n\t\"kind\": \"Job\"\n}\n").empty());
}

std::vector<std::string> CommandOf(const std::string& command) {
  std::vector<std::string> warnings;
  const auto read = ReadManifests(std::string(kHead) + "groups:\n- name: w\n  " + command + "\n",
                                  "f.yaml", {}, &warnings);
  INFO(read.status());
  REQUIRE(read.ok());
  const auto& words = read->front().job.spec().groups(0).command();
  return {words.begin(), words.end()};
}

TEST_CASE("a command string with blanks runs in a shell, words and lists stay unchanged") {
  using Words = std::vector<std::string>;
  CHECK(CommandOf("command: sleep 1") == Words{"/bin/sh", "-c", "sleep 1"});
  CHECK(CommandOf("command: \"echo a | wc -c > $HOME/n\"") ==
        Words{"/bin/sh", "-c", "echo a | wc -c > $HOME/n"});
  CHECK(CommandOf("command: |\n    set -e\n    train") ==
        Words{"/bin/sh", "-c", "set -e\ntrain\n"});
  CHECK(CommandOf("command: train") == Words{"train"});
  CHECK(CommandOf("command: [\"sleep 1\"]") == Words{"sleep 1"});
  CHECK(CommandOf("command: [sleep, 1]") == Words{"sleep", "1"});
}

TEST_CASE("a Volcano container's command of one string is refused") {
  const std::string head =
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n  tasks:\n"
      "  - template: {spec: {containers: [{command: ";
  CHECK(ErrorOf(head + "sleep 1}]}}\n") ==
        "f.yaml:6:46: command: one string with blanks; write a list, as in [PROGRAM, ARGUMENT] or "
        "[sh, -c, \"...\"]");
  CHECK(ErrorOf(head + "sleep, args: [1]}]}}\n").empty());
}

}  // namespace
}  // namespace berth
