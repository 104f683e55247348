// What pods of all kinds share: variables, volumes, security; and Volcano's PodGroup and JobFlow.
#include <catch2/catch.hpp>

#include "tests/unit/cli/foreign_manifest.h"

namespace berth {
namespace {

// A Pod; `more` follows its container's name and image.
std::string PodOf(const std::string& more, const std::string& pod = "") {
  return absl::StrCat(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, ", pod,
      pod.empty() ? "" : ", ", "containers: [{name: c, image: x, ", more, "}]}\n");
}
constexpr char kData[] =
    "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a.conf: \"x\\n\", LEVEL: "
    "high}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {token: c2VjcmV0}\n"
    "stringData: {user: ann}\n---\n";

TEST_CASE("variables from ConfigMaps and Secrets of the same file") {
  const Converted pod = Convert(
      kData +
      PodOf(
          "command: [a], envFrom: [{configMapRef: {name: m}}, {secretRef: {name: s}, prefix: S_}], "
          "env: [{name: LEVEL, value: low}, {name: T, valueFrom: {secretKeyRef: {name: s, key: "
          "token}}}, {name: N, valueFrom: {configMapKeyRef: {name: none, key: k, optional: "
          "true}}}, "
          "{name: BOTH, value: $(LEVEL)-$(T)}]"));
  std::vector<std::string> env;
  for (const v1::EnvVar& one : pod.group().env()) env.push_back(one.name() + "=" + one.value());
  CHECK(absl::StrJoin(env, " ") == "LEVEL=low S_token=secret S_user=ann T=secret");
  CHECK(absl::StrJoin(pod.group().command(), " ") == "env BOTH=${LEVEL}-${T} a");
  CHECK(pod.Warned("\"a.conf\" cannot name a variable"));
  CHECK(pod.Warned("of a Secret becomes part of the job"));
  CHECK(Errors(PodOf("command: [a], envFrom: [{configMapRef: {name: m}}]")) ==
        "f.yaml:4:87: ConfigMap \"m\" is not in this file, and Berth stores none: put its document "
        "into the file");
}

TEST_CASE("fields of the pod become variables that `env` sets, or are refused") {
  const auto with = [](const std::string& from) {
    return PodOf("command: [a], env: [{name: X, valueFrom: {" + from +
                 "}}], resources: {limits: {cpu: 1500m, memory: 2Gi}}");
  };
  CHECK(Convert(with("fieldRef: {fieldPath: metadata.name}")).group().command(1) ==
        "X=${BERTH_JOB}-${BERTH_TASK}");
  CHECK(Convert(with("resourceFieldRef: {resource: limits.cpu}")).group().env(0).value() == "2");
  CHECK(Convert(with("resourceFieldRef: {resource: limits.memory, divisor: 1Mi}"))
            .group()
            .env(0)
            .value() == "2048");
  CHECK(absl::StrContains(Errors(with("fieldRef: {fieldPath: status.podIP}")),
                          "fieldRef status.podIP"));
  CHECK(absl::StrContains(Errors(with("resourceFieldRef: {resource: limits.gpu}")),
                          "the container does not set it"));
}

TEST_CASE("words of commands: what is plain to Kubernetes stays plain") {
  const Converted pod = Convert(
      PodOf("command: [sh, -c, \"echo $(date) $(A) $$(A) $HOME\"], env: [{name: A, value: b}]"));
  CHECK(pod.group().command(2) == "echo $(date) ${A} $(A) $$HOME");
}

TEST_CASE("volumes: memory, scratch, directories of the node, and files") {
  const Converted pod = Convert(
      kData +
      PodOf(
          "volumeMounts: [{name: shm, mountPath: /mem}, {name: tmp, mountPath: /cache/}, "
          "{name: "
          "host, mountPath: /d, subPath: sub, readOnly: true}, {name: conf, mountPath: /conf}, "
          "{name: conf, mountPath: /etc/a.conf, subPath: a.conf}, {name: sec, mountPath: /sec}]",
          "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}, {name: tmp, "
          "emptyDir: "
          "{sizeLimit: 2Gi}}, {name: host, hostPath: {path: /data, type: Directory}}, {name: conf, "
          "configMap: {name: m, defaultMode: 0755}}, {name: sec, secret: {secretName: s, items: "
          "[{key: token, path: t/k, mode: 0400}]}}]"));
  const auto& volumes = pod.group().volumes();
  REQUIRE(volumes.size() == 6);
  CHECK(volumes[0].tmpfs().size_bytes() == 1 << 30);
  CHECK(volumes[1].path() == "/cache");
  CHECK(volumes[1].has_scratch());
  CHECK(pod.group().resources().scratch_bytes() == int64_t{2} << 30);
  CHECK(volumes[2].host_path() == "/data/sub");
  CHECK(volumes[2].read_only());
  CHECK(volumes[3].files().files_size() == 2);
  CHECK(volumes[3].files().files(0).mode() == "0755");
  CHECK(volumes[4].files().files(0).name().empty());
  CHECK(volumes[4].files().files(0).content() == "x\n");
  CHECK(volumes[5].files().files(0).name() == "t/k");
  CHECK(volumes[5].files().files(0).content() == "secret");
  CHECK(volumes[5].files().files(0).mode() == "0400");
  CHECK(pod.Warned("the content of a Secret becomes part of the job"));
}

TEST_CASE("memory at /dev/shm is the job's own") {
  const Converted pod = Convert(PodOf("volumeMounts: [{name: shm, mountPath: /dev/shm}]",
                                      "volumes: [{name: shm, emptyDir: {medium: Memory}}]"));
  CHECK(pod.group().volumes().empty());
  CHECK(pod.Warned("/dev/shm: the tasks of a job share one of their own"));
}

TEST_CASE("volumes that Berth cannot give are refused") {
  const auto errors = [](const std::string& volume, const std::string& mounts) {
    return Errors(PodOf("volumeMounts: [" + mounts + "]", "volumes: [{name: v, " + volume + "}]"));
  };
  const std::string mount = "{name: v, mountPath: /a}";
  CHECK(absl::StrContains(errors("nfs: {server: a, path: /b}", mount), "mount the file system"));
  CHECK(errors("emptyDir: {}", mount + ", {name: v, mountPath: /b}").empty());
  CHECK(absl::StrContains(errors("emptyDir: {}", mount + ", {name: v, mountPath: /b, subPath: c}"),
                          "subPath"));
  CHECK(absl::StrContains(errors("hostPath: {path: /dev/x, type: CharDevice}", mount),
                          "only directories and files"));
  CHECK(absl::StrContains(errors("emptyDir: {}", "{name: w, mountPath: /a}"), "no volume \"w\""));
  CHECK(absl::StrContains(errors("configMap: {name: q}", mount),
                          "ConfigMap \"q\" is not in this file"));
}

TEST_CASE("security: users are the operator's, and rights are refused") {
  const Converted pod =
      Convert(PodOf("securityContext: {runAsUser: 1, capabilities: {add: [IPC_LOCK]}}"));
  CHECK(pod.Warned("runAsUser is ignored"));
  CHECK(pod.Warned("IPC_LOCK is left out"));
  const std::string errors = Errors(PodOf(
      "securityContext: {privileged: true, capabilities: {add: [SYS_ADMIN]}}", "hostIPC: true"));
  CHECK(absl::StrContains(errors, "privileged: tasks get no rights"));
  CHECK(absl::StrContains(errors, "capability SYS_ADMIN"));
  CHECK(absl::StrContains(errors, "hostIPC"));
}

TEST_CASE("a PodGroup with its pods is one job, and alone it is none") {
  const std::string group =
      "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: "
      "{minMember: 2, queue: q}\n";
  const auto pod = [](const std::string& name, const std::string& cpu) {
    return absl::StrCat("---\napiVersion: v1\nkind: Pod\nmetadata: {name: ", name,
                        ", annotations: {scheduling.k8s.io/group-name: g}}\nspec: {restartPolicy: "
                        "Never, containers: [{image: x, resources: {requests: {cpu: ",
                        cpu, "}}}]}\n");
  };
  const Converted job = Convert(group + pod("a", "1") + pod("b", "1") + pod("c", "2"));
  REQUIRE(job.manifests.size() == 1);
  CHECK(job.spec().min_available() == 2);
  CHECK(job.spec().queue() == "q");
  REQUIRE(job.spec().groups_size() == 2);
  CHECK(job.group(0).replicas() == 2);
  CHECK(job.group(1).name() == "c");
  CHECK(absl::StrContains(Errors(group), "f.yaml:3:18: no Pod of this file names the PodGroup"));
  CHECK(absl::StrContains(Errors(pod("a", "1").substr(4)), "PodGroup \"g\" is not in this file"));
}

TEST_CASE("a JobFlow becomes jobs that wait for each other") {
  const auto step = [](const std::string& name) {
    return absl::StrCat(
        "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: ", name,
        "}\nspec: {tasks: [{name: t, template: {spec: {restartPolicy: Never, "
        "containers: [{image: x}]}}}]}\n---\n");
  };
  const std::string flow =
      "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f}\nspec: "
      "{jobRetainPolicy: delete, flows: [{name: a}, {name: b, dependsOn: {targets: [a]}}]}\n";
  const Converted jobs = Convert(step("a") + step("b") + flow);
  REQUIRE(jobs.manifests.size() == 2);
  CHECK(jobs.manifests[1].job.name() == "f-b");
  CHECK(jobs.spec(1).dependencies(0).job() == "f-a");
  CHECK(jobs.spec(1).dependencies(0).condition() == v1::JobDependency::AFTER_OK);
  CHECK(jobs.Warned("jobRetainPolicy delete is left out"));
  CHECK(absl::StrContains(Errors(step("a") + flow), "there is no JobTemplate \"b\" in this file"));
  CHECK(absl::StrContains(Errors(step("a")), "a JobTemplate runs only as part of a JobFlow"));
}

TEST_CASE("contradictory policies of Volcano are refused, all at once") {
  const std::string errors = Errors(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n  policies:\n"
      "  - {event: PodFailed, action: RestartJob}\n  - {event: PodFailed, action: AbortJob}\n"
      "  - {event: \"*\", action: RestartJob}\n  - {event: PodEvicted, exitCode: 3, action: "
      "RestartJob}\n  - {exitCode: 0, action: RestartJob}\n  tasks: [{template: {spec: "
      "{containers: "
      "[{image: x}]}}}]\n");
  CHECK(errors ==
        "f.yaml:6:5: the policy on PodFailed contradicts the one on \"*\", which covers it\n"
        "f.yaml:7:5: a second policy on PodFailed contradicts the first\n"
        "f.yaml:9:5: a policy has an event or an exitCode, not both\n"
        "f.yaml:10:5: exitCode 0 is not a failure");
}

TEST_CASE("restarts of Volcano's tasks follow restartPolicy, by default in place") {
  const auto restarts = [](const std::string& task, const std::string& job = "") {
    const Converted converted = Convert(absl::StrCat(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {", job,
        "tasks: [{template: {spec: {", task, "containers: [{image: x}]}}}]}\n"));
    return converted.group().policies_size();
  };
  CHECK(restarts("") == 1);
  CHECK(restarts("restartPolicy: Always, ") == 1);
  CHECK(restarts("restartPolicy: OnFailure, ") == 1);
  CHECK(restarts("restartPolicy: Never, ") == 0);
  // A policy for failures says what the author wants.
  CHECK(restarts("", "policies: [{event: PodFailed, action: AbortJob}], ") == 0);
  CHECK(restarts("restartPolicy: OnFailure, ",
                 "policies: [{event: PodFailed, action: AbortJob}], ") == 1);
}

TEST_CASE("priority classes of the file, of the cluster and numbers, deadlines and successes") {
  const auto job = [](const std::string& name) {
    return absl::StrCat(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: "
        "{priorityClassName: ",
        name,
        ", minSuccess: 2, tasks: [{replicas: 3, template: {spec: {activeDeadlineSeconds: 60, "
        "containers: [{image: x, resources: {limits: {ephemeral-storage: 1Gi}}}]}}}]}\n");
  };
  const std::string low =
      "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: -5\n"
      "preemptionPolicy: Never\n---\n";
  CHECK(Convert(low + job("low")).spec().priority() == -5);
  CHECK(Convert(low + job("low")).spec().preemption_policy() == v1::NEVER);
  const Converted cluster = Convert(job("production"));
  CHECK(cluster.spec().priority_class() == "production");
  CHECK(cluster.manifests[0].Locate("spec.priority_class") == "f.yaml:4:27");
  CHECK(cluster.spec().min_success() == 2);
  CHECK(cluster.spec().run_limit().seconds() == 60);
  CHECK(cluster.group().resources().scratch_bytes() == 1 << 30);
  CHECK(Convert(job("\"7\"")).spec().priority() == 7);
}

TEST_CASE("lists of exports are taken apart, and what the server set is left out") {
  const Converted list = Convert(
      "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, "
      "uid: "
      "x, creationTimestamp: null}\n  spec: {containers: [{image: x}]}\n  status: {phase: "
      "Running}\n"
      "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b}\n  spec: {containers: [{image: x}]}\n");
  REQUIRE(list.manifests.size() == 2);
  CHECK(list.manifests[1].job.name() == "b");
  CHECK(list.Warned("uid is ignored"));
  CHECK(list.Warned("status is ignored"));
}

}  // namespace
}  // namespace berth
