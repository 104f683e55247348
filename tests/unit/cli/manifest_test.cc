#include "clients/cli/manifest.h"

#include <catch2/catch.hpp>

#include "google/protobuf/util/message_differencer.h"

namespace berth {
namespace {

using google::protobuf::util::MessageDifferencer;

std::string ErrorOf(const std::string& text, const ManifestOptions& options = {}) {
  std::vector<std::string> warnings;
  return std::string(ReadManifests(text, "f.yaml", options, &warnings).status().message());
}

std::vector<Manifest> Read(const std::string& text, const ManifestOptions& options = {}) {
  std::vector<std::string> warnings;
  auto manifests = ReadManifests(text, "f.yaml", options, &warnings);
  INFO(manifests.status());
  REQUIRE(manifests.ok());
  return *std::move(manifests);
}

constexpr char kBerth[] = R"(apiVersion: berth/v1
kind: Queue
name: research
limit: {gpu: 64}
---
# a comment
---
apiVersion: berth/v1
kind: Job
name: llama
queue: research
walltime: 72h
groups:
- name: worker
  replicas: 4
  resources: {cpu: 2, gpu: 8}
  command: [train]
)";

TEST_CASE("Berth's manifests: several documents, flat") {
  const auto manifests = Read(kBerth);
  REQUIRE(manifests.size() == 2);
  CHECK(manifests[0].kind == Manifest::Kind::kQueue);
  CHECK(manifests[0].queue.name() == "research");
  CHECK(manifests[0].queue.spec().limit().counts().at("gpu") == 64);
  CHECK(manifests[1].kind == Manifest::Kind::kJob);
  CHECK(manifests[1].job.name() == "llama");
  CHECK(manifests[1].job.spec().groups(0).resources().devices(0).count() == 8);
}

TEST_CASE("a manifest knows the place of each field") {
  const auto manifests = Read(kBerth);
  CHECK(manifests[1].Locate("name") == "f.yaml:10:7");
  CHECK(manifests[1].Locate("spec.groups[0].replicas") == "f.yaml:15:13");
  CHECK(manifests[1].Locate("spec.groups[0].resources.devices[0].count") == "f.yaml:16:28");
  CHECK(manifests[1].Locate("spec.groups[0].min_available") == "f.yaml:14:3");
  CHECK(manifests[1].Locate("spec.priority") == "f.yaml:8:1");
  CHECK(manifests[0].Locate("spec.limit.counts[\"gpu\"]") == "f.yaml:4:14");
}

TEST_CASE("text that is not a manifest is refused with its place") {
  struct Case {
    const char* text;
    const char* error;
  };
  const Case cases[] = {
      {"kind: Job", "f.yaml:1:1: \"apiVersion\" is missing: write apiVersion: berth/v1"},
      {"apiVersion: berth/v1", "f.yaml:1:1: \"kind\" is missing: write kind: Job"},
      {"apiVersion: berth/v2\nkind: Job",
       "f.yaml:1:13: unknown apiVersion \"berth/v2\"; did you mean \"berth/v1\"?"},
      {"apiVersion: berth/v1\nkind: Jobs",
       "f.yaml:2:7: unknown kind \"Jobs\"; did you mean \"Job\"?"},
      {"- a", "f.yaml:1:1: expected a manifest: a map with apiVersion and kind"},
      {"apiVersion: berth/v1\nkind: Queue", "f.yaml:1:1: a queue needs a name"},
      {"apiVersion: berth/v1\nkind: Job\nnmae: x",
       "f.yaml:3:1: unknown key \"nmae\"; did you mean \"name\"?"},
      {"apiVersion: berth/v1\nkind: Job\ngroups: [{replica: 2}]",
       "f.yaml:3:11: unknown key \"replica\"; did you mean \"replicas\"?"},
      {"apiVersion: berth/v1\nkind: Job\nname: a\nname: b",
       "f.yaml:4:1: repeated key \"name\" (first on line 3)"},
  };
  for (const Case& bad : cases) {
    INFO(bad.text);
    CHECK(ErrorOf(bad.text) == bad.error);
  }
}

TEST_CASE("errors of all documents are reported together") {
  CHECK(
      ErrorOf("apiVersion: berth/v1\nkind: Job\nx: 1\n---\napiVersion: berth/v1\nkind: "
              "Queue\nname: q\nlimits: {}\n") ==
      "f.yaml:3:1: unknown key \"x\"; known: apiVersion, kind, name, queue, priority, "
      "preemptible, walltime, "
      "startAfter, deadline, ttlAfterFinished, affinity, topology, minAvailable, groups, policies, "
      "maxRetries, retryBackoff, "
      "dependencies, checkpoint, onNodeLoss, strategy, deviceStrategy, preemptionPolicy, "
      "preemptMode, killGrace, killSignal, labels, "
      "annotations, suspended, "
      "prepareTimeout, user, runAs, watchdog, escalation, keep, idle, migration, array, schedule, "
      "minSuccess, runLimit, priorityClass, interactive, pause\n"
      "f.yaml:8:1: unknown key \"limits\"; did you mean \"limit\"?");
}

TEST_CASE("a job that is written can be applied again, its status is a comment") {
  auto manifests = Read(kBerth);
  v1::Job job = manifests[1].job;
  job.set_uid(7);
  job.mutable_status()->set_state(v1::JOB_RUNNING);
  const std::string text = WriteManifest(job);
  CHECK(text == R"(apiVersion: berth/v1
kind: Job
name: llama
queue: research
walltime: 72h
groups:
- name: worker
  replicas: 4
  resources:
    cpu: 2
    gpu: 8
  command: [train]
# status:
#   state: Running
)");
  const auto again = Read(text);
  CHECK(MessageDifferencer::Equals(again[0].job, manifests[1].job));
  const auto queue = Read(WriteManifest(manifests[0].queue));
  CHECK(MessageDifferencer::Equals(queue[0].queue, manifests[0].queue));
}

constexpr char kVolcano[] = R"(apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: mpi
  labels: {team: a}
spec:
  schedulerName: volcano
  minAvailable: 3
  queue: research
  maxRetry: 5
  ttlSecondsAfterFinished: 60
  policies:
  - event: PodEvicted
    action: RestartJob
  tasks:
  - name: master
    policies:
    - events: [TaskCompleted, PodFailed]
      action: CompleteJob
    template:
      spec:
        containers:
        - name: main
          command: [sh, -c]
          args: ["run $(HOSTS) $(not a name) $HOME $$(HOSTS) $5"]
          workingDir: /data
          env:
          - {name: MODE, value: fast}
        restartPolicy: OnFailure
  - name: worker
    replicas: 4
    minAvailable: 2
    dependsOn: {name: [master]}
    policies:
    - {exitCode: 137, action: RestartPod, timeout: 30s}
    template:
      spec:
        nodeSelector: {zone: b}
        tolerations:
        - {key: gpu, operator: Exists, effect: NoSchedule}
        containers:
        - command: [work]
          resources:
            requests: {cpu: 500m, memory: 1Gi}
            limits: {cpu: "2", memory: 1Gi, nvidia.com/gpu: 8}
)";

TEST_CASE("a Volcano job becomes a Berth job") {
  const auto manifests = Read(kVolcano);
  REQUIRE(manifests.size() == 1);
  CHECK(WriteManifest(manifests[0].job) == R"(apiVersion: berth/v1
kind: Job
name: mpi
queue: research
ttlAfterFinished: 1m
minAvailable: 3
groups:
- name: master
  replicas: 1
  command: [sh, -c, "run $(HOSTS) $(not a name) $$HOME $(HOSTS) $5"]
  env:
  - name: MODE
    value: fast
  workingDir: /data
  policies:
  - event: TaskCompleted
    action: Complete
  - event: TaskFailed
    action: Complete
  - event: TaskFailed
    action: RestartTask
- name: worker
  replicas: 4
  minAvailable: 2
  resources:
    cpu: 2
    memory: 1Gi
    gpu: 8
  command: [work]
  policies:
  - event: TaskFailed
    exitCodes: [137]
    action: RestartTask
    after: 30s
  dependsOn:
  - group: master
    condition: Running
  nodeSelector:
    matchLabels:
      zone: b
  tolerations:
  - key: gpu
policies:
- event: TaskEvicted
  action: RestartJob
maxRetries: 5
labels:
  team: a
)");
}

TEST_CASE("the server's violations in a Volcano job are reported with its own places") {
  const auto manifests = Read(kVolcano);
  CHECK(manifests[0].Locate("name") == "f.yaml:4:9");
  CHECK(manifests[0].Locate("spec.queue") == "f.yaml:9:10");
  CHECK(manifests[0].Locate("spec.max_retries") == "f.yaml:10:13");
  CHECK(manifests[0].Locate("spec.groups[1].replicas") == "f.yaml:31:15");
  CHECK(manifests[0].Locate("spec.groups[0].env[0].name") == "f.yaml:28:13");
}

std::string VolcanoTask(const std::string& task) {
  return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n  tasks:\n "
         " - " +
         task;
}
std::string VolcanoContainer(const std::string& container) {
  return VolcanoTask("template: {spec: {containers: [{" + container + "}]}}");
}

TEST_CASE("unsupported keys of Volcano are refused with their place") {
  struct Case {
    std::string text;
    const char* error;
  };
  const Case cases[] = {
      {VolcanoContainer("command: [a], lifecycle: {}"),
       "f.yaml:6:51: unsupported key \"lifecycle\": run it in the container's own command"},
      {VolcanoContainer("image: x, imagePullPolicy: Sometimes"),
       "f.yaml:6:64: imagePullPolicy \"Sometimes\" is not Always, IfNotPresent or Never"},
      {VolcanoContainer("comand: [a]"),
       "f.yaml:6:37: unsupported key \"comand\"; did you mean \"command\"?"},
      {VolcanoContainer("args: [a]"),
       "f.yaml:6:36: \"command\" is missing: without an image there is no entry point"},
      {VolcanoContainer("command: [a], resources: {limits: {example.com/fpga: 1}}"),
       "f.yaml:6:90: unsupported resource \"example.com/fpga\""},
      {VolcanoContainer("command: [a], resources: {limits: {memory: 1e9}}"),
       "f.yaml:6:80: memory: expected bytes such as 64, 512Mi, 1.5Ti or 80GB, got \"1e9\""},
      {VolcanoContainer("image: x, env: [{name: A, value: $(VC_TASK_INDEX)}]"),
       "f.yaml:6:36: the image's own command cannot get A, which is known when a task starts: "
       "write "
       "command"},
      {VolcanoTask("template: {spec: {containers: []}}"), "f.yaml:6:23: \"containers\" is missing"},
      {VolcanoTask("template: {spec: {restartPolicy: Ever, containers: [{command: [a]}]}}"),
       "f.yaml:6:38: restartPolicy \"Ever\" is not Always, OnFailure or Never"},
      {VolcanoTask("policies: [{event: PodFaild, action: RestartJob}]\n    template: {spec: "
                   "{containers: [{command: [a]}]}}"),
       "f.yaml:6:16: unsupported event \"PodFaild\"; did you mean \"PodFailed\"?"},
      {VolcanoTask("policies: [{event: PodFailed, action: SyncJob}]\n    template: {spec: "
                   "{containers: [{command: [a]}]}}"),
       "f.yaml:6:16: unsupported action \"SyncJob\"; known: AbortJob, TerminateJob, CompleteJob, "
       "RestartJob, "
       "RestartTask, RestartPod, RestartPartition"},
      {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, namespace: "
       "team}\nspec:\n  priorityClassName: "
       "high\n",
       "f.yaml:4:1: \"spec.tasks\" is missing"},
      {VolcanoTask("networkTopology: {}"),
       "f.yaml:6:5: unsupported key \"networkTopology\"; known: name, replicas, minAvailable, "
       "template, policies, dependsOn, partitionPolicy"},
      {VolcanoTask("replicas: 6\n    partitionPolicy: {totalPartitions: 2, partitionSize: 2}\n"
                   "    template: {spec: {containers: [{command: [a]}]}}"),
       "f.yaml:7:5: totalPartitions times partitionSize must be replicas, 6, not 4"},
      {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, annotations: "
       "{volcano.sh/preemptable: maybe}}\nspec: {tasks: [{template: {spec: {containers: "
       "[{command: [a]}]}}}]}\n",
       "f.yaml:3:59: volcano.sh/preemptable must be \"true\" or \"false\", not \"maybe\""},
      {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, namespace: "
       "team}\nspec: {}\n",
       "f.yaml:4:1: \"spec.tasks\" is missing"},
  };
  for (const Case& bad : cases) {
    INFO(bad.text);
    CHECK(ErrorOf(bad.text) == bad.error);
  }
}

TEST_CASE("Volcano's priority, preemptability and partitions") {
  const auto manifests = Read(R"(apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: a
  annotations: {volcano.sh/preemptable: "true"}
spec:
  priorityClassName: "1000"
  tasks:
  - name: w
    replicas: 8
    minAvailable: 4
    partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 2}
    template: {spec: {containers: [{command: [a]}]}}
)");
  const v1::JobSpec& spec = manifests[0].job.spec();
  CHECK(spec.preemptible());
  CHECK(spec.priority() == 1000);
  CHECK(spec.groups(0).min_available() == 4);
  CHECK(spec.groups(0).partition().size() == 2);
  CHECK(spec.groups(0).partition().min_partitions() == 2);
  CHECK(manifests[0].Locate("spec.groups[0].partition.size") == "f.yaml:12:58");
  CHECK(manifests[0].Locate("spec.priority") == "f.yaml:7:22");
}

TEST_CASE("Volcano's topology constraints become Berth's") {
  const auto manifests = Read(R"(apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: a}
spec:
  networkTopology: {mode: soft, highestTierName: spine}
  tasks:
  - replicas: 4
    partitionPolicy:
      totalPartitions: 2
      partitionSize: 2
      networkTopology: {highestTierAllowed: 0}
    template: {spec: {containers: [{command: [a]}]}}
)");
  const v1::JobSpec& spec = manifests[0].job.spec();
  CHECK(spec.topology().mode() == v1::TopologyConstraint::SOFT);
  CHECK(spec.topology().highest_tier_name() == "spine");
  const v1::TopologyConstraint& partition = spec.groups(0).partition().topology();
  CHECK(partition.mode() == v1::TopologyConstraint::HARD);
  CHECK(partition.highest_tier() == 1);  // Berth's tiers start at 1
  CHECK(manifests[0].Locate("spec.topology.highest_tier_name") == "f.yaml:5:50");
  CHECK(manifests[0].Locate("spec.groups[0].partition.topology.highest_tier") == "f.yaml:11:45");
  CHECK(ErrorOf("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n"
                "  networkTopology: {mode: firm}\n  tasks: [{template: {spec: {containers: "
                "[{command: [a]}]}}}]\n") == "f.yaml:5:27: mode \"firm\" is not hard or soft");
}

TEST_CASE("keys of Volcano are ignored on request, with a warning") {
  std::vector<std::string> warnings;
  const auto manifests = ReadManifests(VolcanoContainer("command: [a], lifecycle: {}"), "f.yaml",
                                       ManifestOptions{{"lifecycle"}}, &warnings);
  CHECK(manifests.ok());
  CHECK(warnings == std::vector<std::string>{"f.yaml:6:51: lifecycle is ignored"});
}

TEST_CASE("images of Volcano's containers, with the image's own command or arguments") {
  const auto manifests =
      Read(VolcanoContainer("image: \"r.example/busybox:1\", imagePullPolicy: IfNotPresent, args: "
                            "[a, $(VC_TASK_INDEX)]"));
  REQUIRE(manifests.size() == 1);
  const v1::TaskGroup& group = manifests[0].job.spec().groups(0);
  CHECK(group.image() == "r.example/busybox:1");
  CHECK(group.image_pull_policy() == v1::IMAGE_PULL_POLICY_IF_NOT_PRESENT);
  CHECK(group.command().empty());
  CHECK(group.args(1) == "${BERTH_GROUP_INDEX}");
}

TEST_CASE("Volcano's plugins: what tasks have without them, and what they cannot have") {
  const auto text = [](const std::string& command) {
    return "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a, uid: x}\nspec:\n"
           "  plugins: {env: [], svc: [], pytorch: [\"--port=23456\"]}\n"
           "  tasks: [{template: {spec: {terminationGracePeriodSeconds: 40, containers: [{command: "
           "[" +
           command + "], ports: [{containerPort: 22}]}]}}}]\nstatus: {state: {phase: Running}}\n";
  };
  std::vector<std::string> warnings;
  const auto manifests =
      ReadManifests(text("run, --rank=$(VC_TASK_INDEX)"), "f.yaml", ManifestOptions{}, &warnings);
  INFO(manifests.status());
  REQUIRE(manifests.ok());
  const v1::JobSpec& spec = (*manifests)[0].job.spec();
  const auto& command = spec.groups(0).command();
  CHECK(std::vector<std::string>(command.begin(), command.end()) ==
        std::vector<std::string>{"env", "VC_TASK_INDEX=${BERTH_GROUP_INDEX}",
                                 "VK_TASK_INDEX=${BERTH_GROUP_INDEX}", "run",
                                 "--rank=${BERTH_GROUP_INDEX}"});
  CHECK(spec.kill_grace().seconds() == 40);
  CHECK(warnings ==
        std::vector<std::string>{
            "f.yaml:3:21: uid is ignored",
            "f.yaml:5:13: env: VC_TASK_INDEX is BERTH_GROUP_INDEX; the program env in front of the "
            "command sets it",
            "f.yaml:5:22: svc: the hosts of all tasks are in the file BERTH_HOSTFILE of each task",
            "f.yaml:5:31: pytorch: MASTER_ADDR and MASTER_PORT are those of rank 0, whatever it "
            "says",
            "f.yaml:6:120: ports is ignored", "f.yaml:7:1: status is ignored"});
  CHECK(ErrorOf(text("mpiexec, --hostfile, /etc/volcano/mpiworker.host")) ==
        "f.yaml:5:3: /etc/volcano/ needs an image: VC_TASK_HOSTS has the same hosts");
  CHECK(ErrorOf(text("sh, -c, \"run $MPI_HOST\"")) ==
        "f.yaml:5:3: MPI_HOST is used, and the plugin mpi, which sets it, is missing");
  CHECK(ErrorOf(text("run, --allowed=$MY_HOSTS, OMPI_HOST")).empty());
}

TEST_CASE("a Volcano queue becomes a Berth queue") {
  const auto manifests = Read(R"(apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec:
  weight: 2
  parent: root
  reclaimable: false
  capability: {cpu: 10, memory: 1Ti, nvidia.com/gpu: 64}
  guarantee: {resource: {cpu: "1"}}
)");
  CHECK(WriteManifest(manifests[0].queue) == R"(apiVersion: berth/v1
kind: Queue
name: research
limit:
  cpu: 10
  memory: 1Ti
  gpu: 64
guarantee:
  cpu: 1
weight: 2
reclaimable: false
)");
  CHECK(manifests[0].Locate("spec.weight") == "f.yaml:5:11");
  CHECK(ErrorOf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: "
                "a}\nspec: {wieght: 1}\n") ==
        "f.yaml:4:8: unsupported key \"wieght\"; did you mean \"weight\"?");
}

TEST_CASE("a HyperNode that is written can be applied again") {
  constexpr char kText[] = R"(apiVersion: berth/v1
kind: HyperNode
name: rack-1
tier: 1
tierName: rack
members:
- type: Node
  exact: n1
- type: Node
  regex: "n1[0-9]"
- type: Node
  label: "rack=r1,row=2"
- type: HyperNode
  exact: shelf
health: Degraded
healthReason: "lane 3"
)";
  const auto manifests = Read(kText);
  REQUIRE(manifests[0].kind == Manifest::Kind::kHyperNode);
  CHECK(manifests[0].name() == "rack-1");
  CHECK(manifests[0].hyper_node.spec().members(2).label() == "rack=r1,row=2");
  CHECK(WriteManifest(manifests[0].hyper_node) == kText);
  CHECK(manifests[0].Locate("spec.members[1].regex") == "f.yaml:10:10");
  v1::HyperNode kept = manifests[0].hyper_node;
  kept.mutable_spec()->set_kind("network");  // the server fills it in
  CHECK(WriteManifest(kept) == kText);
  kept.mutable_spec()->set_kind("nvlink");
  const auto again = Read(WriteManifest(kept));
  CHECK(again[0].hyper_node.spec().kind() == "nvlink");
  CHECK(again[0].Locate("spec.kind") == "f.yaml:4:11");
  CHECK(ErrorOf("apiVersion: berth/v1\nkind: HyperNode\nname: a\ntreeKind: [b]\n") ==
        "f.yaml:4:11: treeKind: expected a single value");
  CHECK(ErrorOf("apiVersion: berth/v1\nkind: HyperNode\ntier: 1\n") ==
        "f.yaml:1:1: a HyperNode needs a name");
}

std::string VolcanoMember(const std::string& member) {
  return "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: a}\nspec:\n"
         "  tier: 0\n  tierName: rack\n  members:\n  - " +
         member + "\n";
}

TEST_CASE("a Volcano HyperNode becomes a Berth HyperNode") {
  const auto members = [](const std::string& member) {
    std::string text;
    const auto read = Read(VolcanoMember(member));
    for (const auto& one : read[0].hyper_node.spec().members()) {
      text += one.ShortDebugString() + "\n";
    }
    return text;
  };
  const auto manifests =
      Read(VolcanoMember("{type: HyperNode, selector: {exactMatch: {name: b}}}"));
  CHECK(manifests[0].hyper_node.spec().tier() == 1);  // 0 becomes 1: Berth's tiers start at 1
  CHECK(manifests[0].hyper_node.spec().tier_name() == "rack");
  CHECK(manifests[0].Locate("spec.members[0].exact") == "f.yaml:8:5");
  CHECK(members("{type: HyperNode, selector: {exactMatch: {name: b}}}") ==
        "type: HYPER_NODE exact: \"b\"\n");
  CHECK(members("{type: Node, selector: {exactMatch: {name: n}}}") == "type: NODE exact: \"n\"\n");
  CHECK(members("{type: Node, selector: {regexMatch: {pattern: gpu}}}") ==
        "type: NODE regex: \".*(?:gpu).*\"\n");
  CHECK(members("{type: Node, selector: {regexMatch: {pattern: '^n[0-3]$'}}}") ==
        "type: NODE regex: \"n[0-3]\"\n");
  CHECK(members("{type: Node, selector: {regexMatch: {pattern: '^a|b$'}}}") ==
        "type: NODE regex: \".*(?:^a|b$).*\"\n");
  CHECK(members("{type: Node, selector: {labelMatch: {matchLabels: {rack: '1', row: '2'}}}}") ==
        "type: NODE label: \"rack=1,row=2\"\n");
  CHECK(members("{type: Node, selector: {labelMatch: {matchLabels: {row: '2'}, matchExpressions: "
                "[{key: rack, operator: In, values: [a, b]}]}}}") ==
        "type: NODE label: \"rack=a,row=2\"\ntype: NODE label: \"rack=b,row=2\"\n");
}

TEST_CASE("unsupported keys of a Volcano HyperNode are refused with their place") {
  const auto error = [](const std::string& member) { return ErrorOf(VolcanoMember(member)); };
  CHECK(error("{type: Node}") ==
        "f.yaml:8:5: a member needs one of exactMatch, regexMatch and labelMatch");
  CHECK(error("{type: Pod, selector: {exactMatch: {name: n}}}") ==
        "f.yaml:8:12: type \"Pod\" is not Node or HyperNode");
  CHECK(error("{type: HyperNode, selector: {regexMatch: {pattern: n}}}") ==
        "f.yaml:8:23: Berth takes HyperNodes as members by exactMatch only");
  CHECK(error("{type: Node, selector: {labelMatch: {matchExpressions: [{key: a, operator: "
              "Exists}]}}}") ==
        "f.yaml:8:61: operator Exists cannot be expressed: only In with values");
  CHECK(error("{type: Node, selector: {labelMatch: {}}}").find("selects nothing") !=
        std::string::npos);
  CHECK(ErrorOf("apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {name: a}\n"
                "spec: {members: []}\n") == "f.yaml:4:1: \"spec.tier\" is missing");
}

}  // namespace
}  // namespace berth
