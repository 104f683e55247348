#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/manifest.h"

namespace berth::testing {
namespace {

struct ConvertedJob {
  v1::JobSpec spec;
  std::string error;
  std::string warnings;
};

ConvertedJob ReadOneJob(const std::string& text) {
  ConvertedJob read;
  std::vector<std::string> warnings;
  const auto manifests = ReadManifests(text, "f.yaml", ManifestOptions{}, &warnings);
  read.warnings = absl::StrJoin(warnings, "\n");
  if (!manifests.ok())
    read.error = std::string(manifests.status().message());
  else
    read.spec = (*manifests)[0].job.spec();
  return read;
}

// A Job of Kubernetes with this specification of its pods.
ConvertedJob PodJob(const std::string& pod) {
  return ReadOneJob(absl::StrCat("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n",
                                 "  template:\n    spec:\n      restartPolicy: Never\n", pod));
}

// A Job of Volcano, with two workers and a master, and this command of the master.
ConvertedJob PluginJob(const std::string& plugins, const std::string& command,
                       const std::string& image = "image: x, ") {
  const std::string end = "]}]}}}\n";
  return ReadOneJob(absl::StrCat(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: j, namespace: team}\n",
      "spec:\n  plugins: {", plugins, "}\n  tasks:\n",
      "  - {name: master, replicas: 1, template: {spec: {containers: [{name: head, ", image,
      "command: [", command, end,
      "  - {name: ps-worker, replicas: 2, template: {spec: {containers: [{name: worker, ", image,
      "command: [sleep, '1'", end));
}

std::string ValueIn(const v1::TaskGroup& group, const std::string& name) {
  for (const v1::EnvVar& variable : group.env()) {
    if (variable.name() == name) return variable.value();
  }
  return "none";
}

std::vector<std::string> WordsOf(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return {words.begin(), words.end()};
}

}  // namespace

TEST_CASE("containers of a pod: kinds, order, and what they ask for together") {
  const ConvertedJob read = PodJob(R"(
      volumes: [{name: d, emptyDir: {sizeLimit: 1Gi}}, {name: own, emptyDir: {sizeLimit: 2Gi}}]
      initContainers:
      - {name: proxy, image: p, restartPolicy: Always, resources: {requests: {cpu: 1, memory: 1Gi}}}
      - {name: fetch, image: f, args: [x], volumeMounts: [{name: d, mountPath: /in}], resources: {requests: {cpu: 4}}}
      containers:
      - {name: main, command: [run], volumeMounts: [{name: d, mountPath: /d}, {name: own, mountPath: /o}], resources: {requests: {cpu: 1, memory: 2Gi, nvidia.com/gpu: 1}}}
      - {name: push, command: [push], env: [{name: A, value: b}], workingDir: /w, resources: {requests: {cpu: 1}}}
)");
  INFO(read.error);
  REQUIRE(read.error.empty());
  const v1::TaskGroup& group = read.spec.groups(0);
  CHECK(group.command(0) == "run");
  REQUIRE(group.containers_size() == 3);
  CHECK(group.containers(0).name() == "proxy");
  CHECK(group.containers(0).kind() == v1::Container::SIDECAR);
  CHECK(group.containers(1).kind() == v1::Container::INIT);
  CHECK(group.containers(1).args(0) == "x");
  CHECK(group.containers(1).volumes(0).path() == "/in");
  CHECK(group.containers(1).volumes(0).scratch().name() == "d");
  CHECK(group.containers(2).kind() == v1::Container::PEER);
  CHECK(group.containers(2).env(0).value() == "b");
  CHECK(group.containers(2).working_dir() == "/w");
  CHECK(group.volumes(0).scratch().name() == "d");
  CHECK(group.volumes(1).scratch().name().empty());
  // main, push and proxy need 3 cores, but proxy and fetch need 5.
  CHECK(group.resources().cpu_millis() == 5000);
  CHECK(group.resources().memory_bytes() == int64_t{3} << 30);
  CHECK(group.resources().scratch_bytes() == int64_t{3} << 30);
  REQUIRE(group.resources().devices_size() == 1);
  CHECK(group.resources().devices(0).count() == 1);
}

TEST_CASE("containers of a pod: what cannot be done") {
  const auto error = [](const std::string& more, const std::string& pod = "") {
    return PodJob(absl::StrCat(pod, "      containers: [{name: m, image: i}, {name: n, image: i",
                               more, "}]\n"))
        .error;
  };
  CHECK(error("").empty());
  CHECK(absl::StrContains(error("", "      shareProcessNamespace: true\n"), "only its own"));
  CHECK(absl::StrContains(
      PodJob("      containers:\n"
             "      - {name: m, image: i, resources: {limits: {nvidia.com/gpu: 1}}}\n"
             "      - {name: n, image: i, resources: {limits: {nvidia.com/gpu: 1}}}\n")
          .error,
      "devices of several containers"));
  CHECK(
      absl::StrContains(PodJob("      initContainers: [{name: a, image: i, restartPolicy: Never}]\n"
                               "      containers: [{name: m, image: i}]\n")
                            .error,
                        "is not Always"));
  const ConvertedJob memory = PodJob(R"(
      volumes: [{name: d, emptyDir: {medium: Memory}}]
      containers:
      - {name: m, image: i, volumeMounts: [{name: d, mountPath: /d}]}
      - {name: n, image: i, volumeMounts: [{name: d, mountPath: /d}]}
)");
  CHECK(absl::StrContains(memory.warnings, "is on disk"));
  CHECK(memory.spec.groups(0).volumes(0).scratch().name() == "d");
}

TEST_CASE("Volcano's svc: names, variables and files of hosts") {
  const ConvertedJob read = PluginJob("svc: []", "run");
  INFO(read.error);
  REQUIRE(read.error.empty());
  const v1::TaskGroup& worker = read.spec.groups(1);
  CHECK(WordsOf(worker.host_names()) ==
        std::vector<std::string>{"j-ps-worker-[0-1]", "j-ps-worker-[0-1].j",
                                 "j-ps-worker-[0-1].j.team.svc",
                                 "j-ps-worker-[0-1].j.team.svc.cluster.local"});
  CHECK(read.spec.groups(0).host_names(0) == "j-master-0");
  CHECK(ValueIn(worker, "VC_PS_WORKER_HOSTS") == "j-ps-worker-0.j,j-ps-worker-1.j");
  CHECK(ValueIn(worker, "VC_MASTER_NUM") == "1");
  REQUIRE(worker.volumes_size() == 1);
  CHECK(worker.volumes(0).path() == "/etc/volcano");
  CHECK(worker.volumes(0).files().files(1).name() == "ps-worker.host");
  CHECK(worker.volumes(0).files().files(1).content() == "j-ps-worker-0.j\nj-ps-worker-1.j");
  const ConvertedJob plain = PluginJob("svc: []", "run", "");
  CHECK(plain.spec.groups(0).host_names().empty());
  CHECK(absl::StrContains(plain.warnings, "BERTH_HOSTFILE"));
  CHECK(PluginJob("svc: []", "run, $VC_MASTER_HOSTS", "").spec.groups(0).host_names_size() == 4);
  CHECK(absl::StrContains(PluginJob("env: []", "run, $VC_MASTER_HOSTS").error, "svc"));
}

TEST_CASE("host names of pods are given where a manifest uses them") {
  CHECK(PluginJob("env: []", "run, j-ps-worker-1.j:80", "").spec.groups(1).host_names_size() == 4);
  CHECK(PluginJob("env: []", "run, j-ps-worker-$i", "").spec.groups(1).host_names_size() == 4);
  for (const char* none : {"x-j-ps-worker-1", "j-ps-worker-", "j-ps-worker-x"})
    CHECK(
        PluginJob("env: []", absl::StrCat("run, ", none), "").spec.groups(1).host_names().empty());
  const ConvertedJob set = ReadOneJob(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: s}
spec:
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        parallelism: 3
        completions: 3
        template: {spec: {restartPolicy: Never, containers: [{command: [run, s-w-1-2.s]}]}}
)");
  INFO(set.error);
  CHECK(set.spec.groups(0).host_names(1) == "s-w-[0-1]-[0-2].s");
  CHECK(absl::StrContains(set.warnings, "JOB_COMPLETION_INDEX is not set"));
  const ConvertedJob torch = ReadOneJob(R"(apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{command: [run]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{command: [run, t-master-0]}]}}}
)");
  INFO(torch.error);
  CHECK(WordsOf(torch.spec.groups(0).host_names()) ==
        std::vector<std::string>{"t-master-0", "t-master-0.default.svc",
                                 "t-master-0.default.svc.cluster.local"});
}

TEST_CASE("host names of the pods of a TrainJob") {
  const ConvertedJob train = ReadOneJob(R"(apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {image: i, numNodes: 2, command: [run, --host, t-node-0-0.t]}
)");
  INFO(train.error);
  REQUIRE(train.error.empty());
  CHECK(train.spec.groups(0).host_names(1) == "t-node-0-[0-1].t");
}

TEST_CASE("Volcano's plugins tensorflow, mpi and ray") {
  const ConvertedJob tensor =
      PluginJob("tensorflow: [--ps=master, --worker=ps-worker, --port=5000]", "python, train.py");
  INFO(tensor.error);
  REQUIRE(tensor.error.empty());
  CHECK(
      tensor.spec.groups(1).command(1) ==
      "TF_CONFIG={\"cluster\":{\"ps\":[\"j-master-0.j:5000\"],\"worker\":[\"j-ps-worker-0.j:5001\","
      "\"j-ps-worker-1.j:5002\"]},\"task\":{\"type\":\"worker\",\"index\":${BERTH_GROUP_INDEX}}}");
  const ConvertedJob mpi = PluginJob("mpi: [--worker, ps-worker]", "mpiexec, --host, $MPI_HOST");
  INFO(mpi.error);
  CHECK(ValueIn(mpi.spec.groups(0), "MPI_HOST") == "j-ps-worker-0.j,j-ps-worker-1.j");
  CHECK(ValueIn(mpi.spec.groups(1), "MPI_HOST") == "none");
  CHECK(absl::StrContains(PluginJob("mpi: []", "run").error, "no such master or worker"));
  CHECK(absl::StrContains(PluginJob("svc: []", "run, $MPI_HOST").error, "plugin mpi"));
  const ConvertedJob ray = PluginJob("ray: [--head=master, --worker=ps-worker, --port=7000]", "x");
  INFO(ray.error);
  REQUIRE(ray.error.empty());
  CHECK(ray.spec.groups(0).command(2) ==
        "ray start --head --block --dashboard-host=0.0.0.0 --port=7000 --dashboard-port=8265 "
        "--ray-client-server-port=10001");
  CHECK(ray.spec.groups(0).host_names(2) == "j");
  CHECK(ray.spec.groups(1).command(2) == "ray start --block --address=j-master-0.j:7000");
  CHECK(absl::StrContains(PluginJob("ray: []", "x").error, "there is no task \"head\""));
}

TEST_CASE("preferences among pods are left out, requirements are refused") {
  const std::string end = "      containers: [{name: m, image: i}]\n";
  const ConvertedJob soft = PodJob(
      "      affinity: {podAntiAffinity: {preferredDuringSchedulingIgnored"
      "DuringExecution: [{weight: 1}]}}\n" +
      end);
  CHECK(soft.error.empty());
  CHECK(absl::StrContains(soft.warnings, "preferredDuringScheduling"));
  CHECK(absl::StrContains(PodJob("      affinity: {podAffinity: {requiredDuringSchedulingIgnored"
                                 "DuringExecution: [{}]}}\n" +
                                 end)
                              .error,
                          "write a Berth manifest with affinity:"));
}

}  // namespace berth::testing
