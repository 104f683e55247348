#include "support/yaml_proto.h"

#include <catch2/catch.hpp>

#include "berth/config/v1/config.pb.h"
#include "berth/v1/agent.pb.h"
#include "berth/v1/hypernode.pb.h"
#include "berth/v1/job.pb.h"
#include "berth/v1/queue.pb.h"

namespace berth {
namespace {

std::string ErrorOf(const std::string& text, google::protobuf::Message* message) {
  const absl::Status status = ReadYaml(text, "f.yaml", message);
  return std::string(status.message());
}

template <class T>
T Parse(const std::string& text) {
  T message;
  CHECK(ErrorOf(text, &message) == "");
  return message;
}

TEST_CASE("a job specification is read with values of every kind") {
  const v1::JobSpec spec = Parse<v1::JobSpec>(R"(
queue: research
priority: -5
preemptible: false
walltime: 1h30m
startAfter: 2026-11-20T14:05:00.5Z
topology: {mode: hard, highestTier: spine}
retry_backoff: 500ms
labels: {team: "a b", on: yes}
groups:
- name: worker
  replicas: 32
  minAvailable: 24
  resources: {cpu: 1.5, memory: 1Ti, gpu: {count: 8, model: [H100, H200], minLink: nvlink}, nic: 8}
  command: [train, --n=3]
  env: {A: 1, B: "two"}
  policies:
  - {event: NodeLost, action: RESTART_GROUP}
  - {event: task-failed, exitCodes: 137, action: RestartTask, after: 30s}
- name: master
  command: run
  env: [{name: X, value: ""}]
)");
  CHECK(spec.queue() == "research");
  CHECK(spec.priority() == -5);
  CHECK(spec.has_preemptible());
  CHECK(spec.walltime().seconds() == 5400);
  CHECK(spec.start_after().nanos() == 500'000'000);
  CHECK(spec.topology().mode() == v1::TopologyConstraint::HARD);
  CHECK(spec.topology().highest_tier_name() == "spine");
  CHECK(spec.retry_backoff().nanos() == 500'000'000);
  CHECK(spec.labels().at("team") == "a b");
  CHECK(spec.labels().at("on") == "yes");
  REQUIRE(spec.groups_size() == 2);
  const v1::TaskGroup& worker = spec.groups(0);
  CHECK(worker.resources().cpu_millis() == 1500);
  CHECK(worker.resources().memory_bytes() == int64_t{1} << 40);
  REQUIRE(worker.resources().devices_size() == 2);
  CHECK(worker.resources().devices(0).kind() == "gpu");
  CHECK(worker.resources().devices(0).count() == 8);
  CHECK(worker.resources().devices(0).model(1) == "H200");
  CHECK(worker.resources().devices(0).min_link() == v1::LINK_CLASS_NVLINK);
  CHECK(worker.resources().devices(1).kind() == "nic");
  CHECK(worker.resources().devices(1).count() == 8);
  CHECK(worker.command(1) == "--n=3");
  CHECK(worker.env(0).name() == "A");
  CHECK(worker.env(0).value() == "1");
  CHECK(worker.policies(0).event() == v1::LifecyclePolicy::NODE_LOST);
  CHECK(worker.policies(1).event() == v1::LifecyclePolicy::TASK_FAILED);
  CHECK(worker.policies(1).exit_codes(0) == 137);
  CHECK(spec.groups(1).command(0) == "run");
  CHECK(spec.groups(1).env(0).value() == "");
}

TEST_CASE("JSON is also read, with 64-bit numbers in quotes") {
  const auto server = Parse<config::v1::Server>(
      R"({"listen": "127.0.0.1:0", "limits": {"tasksPerJob": 5, "activeJobs": "7", "message": "8Mi"}})");
  CHECK(server.limits().active_jobs() == 7);
  CHECK(server.limits().message_bytes() == 8 << 20);
}

TEST_CASE("an empty file, comments and empty sections leave the message unchanged") {
  CHECK(Parse<config::v1::Server>("").ByteSizeLong() == 0);
  CHECK(Parse<config::v1::Server>("# nothing\n").ByteSizeLong() == 0);
  CHECK(Parse<config::v1::Server>("---\n").ByteSizeLong() == 0);
  CHECK_FALSE(Parse<config::v1::Server>("tls:\nlimits: {}\n").has_tls());
  CHECK(Parse<config::v1::Server>("tls:\nlimits: {}\n").has_limits());
}

TEST_CASE("limits accept device kinds as keys") {
  const auto queue = Parse<v1::QueueSpec>("limit: {cpu: 10, gpu: 64, counts: {licenses: 3}}");
  CHECK(queue.limit().cpu_millis() == 10'000);
  CHECK(queue.limit().counts().at("gpu") == 64);
  CHECK(queue.limit().counts().at("licenses") == 3);
}

struct Bad {
  const char* text;
  const char* error;
};

const Bad kBadJobs[] = {
    {"queue: a\nreplica: 1\n",
     "f.yaml:2:1: unknown key \"replica\"; known: queue, priority, preemptible, walltime, "
     "startAfter, deadline, "
     "ttlAfterFinished, affinity, topology, minAvailable, groups, policies, maxRetries, "
     "retryBackoff, dependencies, checkpoint, onNodeLoss, strategy, deviceStrategy, "
     "preemptionPolicy, preemptMode, killGrace, killSignal, labels, annotations, suspended, "
     "prepareTimeout, "
     "user, runAs, watchdog, escalation, keep, idle, migration, array, schedule, minSuccess, "
     "runLimit, "
     "priorityClass, interactive, pause"},
    {"groups:\n- replica: 1\n", "f.yaml:2:3: unknown key \"replica\"; did you mean \"replicas\"?"},
    {"MaxRetries: 1", "f.yaml:1:1: unknown key \"MaxRetries\"; did you mean \"maxRetries\"?"},
    {"queue: a\npriority: 1\nqueue: b\n", "f.yaml:3:1: repeated key \"queue\" (first on line 1)"},
    {"maxRetries: 1\nmax_retries: 2\n",
     "f.yaml:2:1: repeated key \"max_retries\" (also written \"maxRetries\")"},
    {"priority: high", "f.yaml:1:11: priority: expected a whole number, got \"high\""},
    {"priority: 1.5", "f.yaml:1:11: priority: expected a whole number, got \"1.5\""},
    {"priority: 3000000000",
     "f.yaml:1:11: priority: 3000000000 is out of range: -2147483648 to 2147483647"},
    {"priority: [1]", "f.yaml:1:11: priority: expected a single value, got a list"},
    {"priority:", "f.yaml:1:1: \"priority\" has no value"},
    {"suspended: yes", "f.yaml:1:12: suspended: expected true or false, got \"yes\""},
    {"suspended: \"true\"", "f.yaml:1:12: suspended: expected true or false, got \"true\""},
    {"walltime: 90",
     "f.yaml:1:11: walltime: expected a duration such as 90s, 1h30m or 500ms, got \"90\"; did you "
     "mean 90s?"},
    {"walltime: -1s",
     "f.yaml:1:11: walltime: expected a duration such as 90s, 1h30m or 500ms, got \"-1s\""},
    {"walltime: {s: 1}", "f.yaml:1:11: walltime: expected a single value, got a map of keys"},
    {"walltime:", "f.yaml:1:1: \"walltime\" has no value"},
    {"startAfter: tomorrow",
     "f.yaml:1:13: startAfter: expected a time such as 2026-11-20T14:05:00Z, got \"tomorrow\""},
    {"onNodeLoss: fnce",
     "f.yaml:1:13: onNodeLoss: unknown value \"fnce\"; known: Fence, Keep, ReplaceNow; did you "
     "mean \"Fence\"?"},
    {"strategy: unspecified",
     "f.yaml:1:11: strategy: unknown value \"unspecified\"; known: Spread, Binpack, Colocate"},
    {"topology: hard", "f.yaml:1:11: topology: expected a map of keys, got a single value"},
    {"groups: {name: a}", "f.yaml:1:9: groups: expected a list, got a map of keys"},
    {"groups: worker", "f.yaml:1:9: groups: expected a list, got a single value"},
    {"groups:\n-\n", "f.yaml:2:1: groups: item 1 has no value"},
    {"labels: [a]", "f.yaml:1:9: labels: expected a map of keys, got a list"},
    {"labels:\n  a:\n", "f.yaml:2:3: \"a\" has no value"},
    {"labels:\n  a: [1]\n", "f.yaml:2:6: value: expected a single value, got a list"},
    {"- a", "f.yaml:1:1: the document: expected a map of keys, got a list"},
    {"queue: &x a", "f.yaml:1:8: anchors (&x) are not supported: write the value out"},
    {"queue: !!str a", "f.yaml:1:8: tags (tag:yaml.org,2002:str) are not supported"},
    {"[a]: b", "f.yaml:1:1: a key must be one word"},
    {": b", "f.yaml:1:1: a key is missing"},
    {"queue: a\n---\nqueue: b\n", "f.yaml:3:1: expected one document, found a second"},
    {"queue: [a", "f.yaml:1:1: end of sequence flow not found"},
    {"queue: \"a", "f.yaml:1:10: illegal EOF in scalar"},
    {"queue: a\n b: c\n", "f.yaml:2:3: illegal map value"},
    {"queue: \xff", "f.yaml:1:8: not UTF-8 text"},
    {"groups:\n- resources: {memory: 1Tb}",
     "f.yaml:2:23: memory: expected bytes such as 64, 512Mi, 1.5Ti or 80GB, got \"1Tb\"; did you "
     "mean 1TB?"},
    {"groups:\n- resources: {cpu: 0.0001}",
     "f.yaml:2:20: cpu: \"0.0001\" is more precise than a thousandth of a core"},
    {"groups:\n- resources: {cpus: 1}", "f.yaml:2:15: unknown key \"cpus\"; did you mean \"cpu\"?"},
    {"groups:\n- resources: {gpus: 1}", "f.yaml:2:15: unknown key \"gpus\"; did you mean \"gpu\"?"},
    {"groups:\n- resources: {memroy: 1}",
     "f.yaml:2:15: unknown key \"memroy\"; did you mean \"memory\"?"},
    {"groups:\n- resources: {gpu: many}",
     "f.yaml:2:20: count: expected a whole number, got \"many\""},
    {"groups:\n- resources: {gpu: {kind: npu}}",
     "f.yaml:2:20: kind \"npu\" does not match the key \"gpu\""},
};

TEST_CASE("errors in a job are reported with their positions") {
  for (const Bad& bad : kBadJobs) {
    INFO(bad.text);
    v1::JobSpec spec;
    CHECK(ErrorOf(bad.text, &spec) == bad.error);
  }
}

TEST_CASE("aliases are refused, whether defined or not") {
  v1::JobSpec spec;
  CHECK(ErrorOf("queue: &x a\nkillSignal: *x\n", &spec) ==
        "f.yaml:1:8: anchors (&x) are not supported: write the value out\n"
        "f.yaml:2:1: \"killSignal\" has no value\n"
        "f.yaml:2:13: aliases (*name) are not supported: write the value out");
  CHECK(ErrorOf("queue: *x\n", &spec) == "f.yaml:1:8: the referenced anchor is not defined");
}

TEST_CASE("two fields of a oneof exclude each other") {
  v1::HyperNodeSpec spec;
  CHECK(ErrorOf("members:\n- {exact: a, regex: b}\n", &spec) ==
        "f.yaml:2:14: \"regex\" conflicts with \"exact\": set only one of them");
}

TEST_CASE("all errors are reported at once, in order, up to a limit") {
  v1::JobSpec spec;
  CHECK(ErrorOf("queu: a\npriority: x\nqueue: a\nqueue: b\n", &spec) ==
        "f.yaml:1:1: unknown key \"queu\"; did you mean \"queue\"?\n"
        "f.yaml:2:11: priority: expected a whole number, got \"x\"\n"
        "f.yaml:4:1: repeated key \"queue\" (first on line 3)");
  std::string many = "groups:\n";
  for (int i = 0; i < 30; ++i) many += "- replicas: x\n";
  const std::string error = ErrorOf(many, &spec);
  CHECK(std::count(error.begin(), error.end(), '\n') == kMaxYamlErrors);
  CHECK(error.find("f.yaml:21:13:") != std::string::npos);
  CHECK(error.substr(error.rfind('\n') + 1) == "f.yaml: and 10 more errors");
}

TEST_CASE("size and depth are limited, and nothing throws") {
  v1::JobSpec spec;
  CHECK(ErrorOf(std::string(kMaxYamlBytes + 1, ' '), &spec) ==
        "f.yaml: 16777217 bytes; at most 16777216 are allowed");
  CHECK(ErrorOf(std::string(33, '['), &spec) ==
        "f.yaml: nested more than 32 levels deep on line 1");
  CHECK(ErrorOf(std::string(100'000, '['), &spec) ==
        "f.yaml: nested more than 32 levels deep on line 1");
  CHECK_FALSE(ErrorOf(std::string(100'000, '{'), &spec).empty());
  CHECK_FALSE(ErrorOf("\t\t- :\n\t", &spec).empty());
  CHECK_FALSE(ErrorOf("%YAML 9.9\n---\na", &spec).empty());
}

TEST_CASE("strings are UTF-8, whatever they escape") {
  const auto spec = Parse<v1::JobSpec>(R"(queue: "a\_b\Nc\u00a0\xe9\0")");
  CHECK(spec.queue() == std::string("a\xc2\xa0"
                                    "b\xc2\x85"
                                    "c\xc2\xa0\xc3\xa9\0",
                                    12));
  CHECK(Parse<v1::JobSpec>(WriteYaml(spec)).queue() == spec.queue());
  v1::JobSpec ignored;
  CHECK(ErrorOf(std::string("queue: a\nuser: a\0_b\n", 20), &ignored) == "f.yaml:2:8: a NUL byte");
}

// Here yaml-cpp reports empty documents endlessly, which took seconds and hundreds of megabytes.
TEST_CASE("characters that cannot start a value are reported at once") {
  v1::JobSpec spec;
  CHECK(ErrorOf(",", &spec) == "f.yaml:1:1: unexpected character");
  CHECK(ErrorOf("\"a\",", &spec).find("f.yaml:1:4: unexpected character") != std::string::npos);
  YamlErrors errors("f.yaml");
  CHECK(ParseYamlTree("a: 1\n---\n---\nb: 2\n", &errors).size() == 3);
  CHECK(errors.empty());
}

TEST_CASE("positions are recorded by path") {
  YamlErrors errors("f.yaml");
  const auto documents =
      ParseYamlTree("groups:\n- name: a\n  replicas: 3\n  resources: {gpu: 8}\n", &errors);
  REQUIRE(documents.size() == 1);
  YamlPositions positions;
  v1::JobSpec spec;
  YamlReadOptions options;
  options.positions = &positions;
  ReadYamlNode(documents[0], &spec, &errors, options);
  CHECK(errors.empty());
  CHECK(positions.at("groups") == YamlPosition{1, 1});
  CHECK(positions.at("groups[0]") == YamlPosition{2, 3});
  CHECK(positions.at("groups[0].replicas") == YamlPosition{3, 13});
  CHECK(positions.at("groups[0].resources.devices[0]") == YamlPosition{4, 20});
}

TEST_CASE("a missing file is NOT_FOUND") {
  config::v1::Server server;
  CHECK(ReadYamlFile("/nonexistent/x.yaml", &server).code() == absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace berth
