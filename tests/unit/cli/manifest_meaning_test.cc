// Values of other schedulers' manifests whose meaning is easily lost: zeros, defaults, several
// places that say the same.
#include "tests/unit/cli/foreign_manifest.h"

namespace berth {
namespace {

std::string BatchJob(const std::string& spec, const std::string& pod = "") {
  return absl::StrCat("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {", spec,
                      ", template: {spec: {restartPolicy: Never, ", pod,
                      "containers: [{name: c, image: x}]}}}\n");
}

std::string ReplicatedJob(const std::string& name, const std::string& replicas,
                          const std::string& metadata = "") {
  return absl::StrCat("{name: ", name, ", replicas: ", replicas, ", template: {", metadata,
                      "spec: {parallelism: 2, backoffLimit: 3, template: {spec: {restartPolicy: "
                      "Never, containers: [{name: c, image: x, command: [run]}]}}}}}");
}

std::string JobSet(const std::string& spec) {
  return absl::StrCat(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec: {", spec,
      "}\n");
}

std::string Torch(const std::string& policy, const std::string& replica) {
  return absl::StrCat(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec: {runPolicy: {",
      policy, "}, pytorchReplicaSpecs: {Worker: {", replica,
      "replicas: 2, template: {spec: {priorityClassName: low, containers: [{name: pytorch, image: "
      "x}]}}}}}\n");
}

TEST_CASE("a Job with parallelism 0 is paused, and its size stays") {
  const Converted job =
      Convert(BatchJob("parallelism: 0, completions: 5, completionMode: Indexed"));
  CHECK(job.spec().suspended());
  CHECK(job.spec().array().size() == 5);
  CHECK(job.spec().array().parallelism() == 5);
  CHECK(job.Warned("parallelism 0: the job is suspended"));
}

TEST_CASE("Kubeflow: no retries is not the default, and restarts follow the kind") {
  const Converted none = Convert(Torch("backoffLimit: 0", "restartPolicy: OnFailure, "));
  CHECK(none.spec().max_retries() == 0);
  const Converted usual = Convert(Torch("cleanPodPolicy: All", ""));
  CHECK(usual.spec().max_retries() == 6);
  CHECK(usual.group().policies(0).action() == v1::LifecyclePolicy::RESTART_TASK);
  CHECK(usual.Warned("this has no effect: tasks of an ended job are stopped"));
  CHECK(Convert(Torch("backoffLimit: 2", "restartPolicy: Never, ")).group().policies().empty());
}

TEST_CASE("the priority class of a job comes before that of its pods") {
  CHECK(Convert(Torch("schedulingPolicy: {priorityClass: high}", "")).spec().priority_class() ==
        "high");
  CHECK(Convert(Torch("backoffLimit: 1", "")).spec().priority_class() == "low");
}

TEST_CASE("elasticPolicy without workers is refused") {
  CHECK(absl::StrContains(
      Errors("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec: "
             "{elasticPolicy: {minReplicas: 1}, pytorchReplicaSpecs: {Master: {template: {spec: "
             "{containers: [{name: pytorch, image: x}]}}}}}\n"),
      "elasticPolicy is of the workers"));
}

TEST_CASE("JobSet: the topology of one replicated job is not that of the next") {
  const std::string rack =
      "metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: example.com/rack}}, ";
  const Converted set = Convert(JobSet(absl::StrCat(
      "replicatedJobs: [", ReplicatedJob("a", "1", rack), ", ", ReplicatedJob("b", "1"), "]")));
  CHECK(set.group(0).topology().highest_tier_name() == "rack");
  CHECK_FALSE(set.group(1).has_topology());
}

TEST_CASE("JobSet: FailJobSet applies once a job has failed, after the retries of its pods") {
  const Converted set =
      Convert(JobSet(absl::StrCat("failurePolicy: {maxRestarts: 5, rules: [{action: FailJobSet}]}, "
                                  "network: {enableDNSHostnames: true}, replicatedJobs: [",
                                  ReplicatedJob("a", "1"), "]")));
  CHECK(set.spec().max_retries() == 3);
  CHECK(set.spec().policies(0).action() == v1::LifecyclePolicy::RESTART_TASK);
  CHECK(set.Warned("tasks have no names in DNS"));
}

TEST_CASE("JobSet: numbers that are none are errors") {
  CHECK(absl::StrContains(
      Errors(JobSet(absl::StrCat("replicatedJobs: [", ReplicatedJob("a", "2000000000"), "]"))),
      "is no number of tasks"));
}

TEST_CASE("limits of several directories add up") {
  const Converted job = Convert(BatchJob(
      "completions: 1",
      "volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, emptyDir: {sizeLimit: 2Gi}}], "));
  CHECK(job.group().resources().scratch_bytes() == 0);  // mounted nowhere
  const Converted both = Convert(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: "
      "{restartPolicy: Never, volumes: [{name: a, emptyDir: {sizeLimit: 1Gi}}, {name: b, emptyDir: "
      "{sizeLimit: 2Gi}}], containers: [{name: c, image: x, volumeMounts: [{name: a, mountPath: "
      "/a}, {name: b, mountPath: /b}]}]}}}\n");
  CHECK(both.group().resources().scratch_bytes() == int64_t{3} << 30);
}

TEST_CASE("CronJob: its own labels count, and a job template that begins suspended is refused") {
  const auto cron = [](const std::string& more) {
    return absl::StrCat(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a, namespace: team, labels: {x: "
        "own, y: own}}\nspec: {schedule: \"@daily\", successfulJobsHistoryLimit: 0, jobTemplate: "
        "{metadata: {labels: {y: template}}, spec: {",
        more, "template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}\n");
  };
  const Converted job = Convert(cron(""));
  CHECK(job.spec().labels().at("x") == "own");
  CHECK(job.spec().labels().at("y") == "template");
  CHECK(job.spec().schedule().history() == 1);  // of those that failed
  CHECK(job.Warned("namespace is left out"));
  CHECK(absl::StrContains(Errors(cron("suspend: true, ")), "suspend the CronJob instead"));
}

std::string Volcano(const std::string& spec, const std::string& annotations = "") {
  return absl::StrCat(
      "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: v}\nspec: {", spec,
      "tasks: [{name: w, template: {metadata: {annotations: {", annotations,
      "}}, spec: {containers: [{name: c, image: x}]}}}]}\n");
}

TEST_CASE("Volcano: two names of one event contradict each other") {
  CHECK(absl::StrContains(
      Errors(Volcano("policies: [{event: PodFailed, action: RestartJob}, {event: TaskFailed, "
                     "action: AbortJob}], ")),
      "a second policy on PodFailed contradicts the first"));
}

TEST_CASE("Volcano's annotation of a pod names the queue, but not that of a Volcano job") {
  const std::string annotation = "scheduling.volcano.sh/queue-name: team";
  CHECK(Convert(Volcano("", annotation)).spec().queue() == "default");
  CHECK(Convert(Volcano("queue: q, ", annotation)).spec().queue() == "q");
  CHECK(Convert("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {metadata: "
                "{annotations: {" +
                annotation +
                "}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}\n")
            .spec()
            .queue() == "team");
}

TEST_CASE("a PodGroup without a name, and with minimums of tasks that it has not, is refused") {
  const std::string pod =
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: "
      "{scheduling.k8s.io/group-name: g}}\nspec: {restartPolicy: Never, containers: [{name: c, "
      "image: x}]}\n";
  const std::string group = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: ";
  CHECK(absl::StrContains(Errors(group + "{}\nspec: {minMember: 1}\n" + pod), "name"));
  CHECK(absl::StrContains(Errors(group + "{name: g}\nspec: {minTaskMember: {other: 1}}\n" + pod),
                          "minTaskMember: there is no group \"other\""));
}

std::string TemplateOf(const std::string& job) {
  return absl::StrCat(
      "apiVersion: berth/v1\nkind: Template\nname: t\nparameters:\n- {name: a, "
      "default: x}\n- {name: n}\njob: ",
      job, "\n");
}

absl::StatusOr<std::vector<Manifest>> Fill(const std::string& text,
                                           std::map<std::string, std::string> values) {
  ManifestOptions options;
  options.values = std::move(values);
  std::vector<std::string> warnings;
  return ReadManifests(text, "f.yaml", options, &warnings);
}

TEST_CASE("templates: values are put into values and keys, and never become structure") {
  const auto filled =
      Fill(TemplateOf("{name: 'j-{{n}}', labels: {'{{a}}': '{{ a }}{{n}}'}, groups: "
                      "[{name: w, replicas: '{{n}}', command: ['{{a}}', '{{ ? }}']}]}"),
           {{"n", "3"}, {"a", "[q: {"}});
  INFO(filled.status());
  REQUIRE(filled.ok());
  const v1::Job& job = filled->at(0).job;
  CHECK(job.name() == "j-3");
  CHECK(job.spec().labels().at("[q: {") == "[q: {3");
  CHECK(job.spec().groups(0).replicas() == 3);
  CHECK(job.spec().groups(0).command(0) == "[q: {");
  CHECK(job.spec().groups(0).command(1) == "{{ ? }}");  // no name
}

TEST_CASE("templates: what is missing, unknown or not used is said") {
  const auto error = [](const std::string& job, std::map<std::string, std::string> values) {
    return std::string(Fill(TemplateOf(job), std::move(values)).status().message());
  };
  const std::string job = "{name: j, groups: [{name: w, command: ['{{n}}']}]}";
  CHECK(absl::StrContains(error(job, {}), "f.yaml:6:3: parameter n has no default"));
  CHECK(absl::StrContains(error(job, {{"n", "1"}, {"m", "2"}}), "has a parameter \"m\""));
  CHECK(absl::StrContains(error("{name: '{{nn}}', groups: []}", {{"n", "1"}}),
                          "unknown parameter \"nn\""));
  CHECK(absl::StrContains(error("3", {{"n", "1"}}), "a Template needs a \"job\""));
}

}  // namespace
}  // namespace berth
