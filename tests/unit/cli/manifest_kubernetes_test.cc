// Manifests of Kubernetes, Kueue, JobSet and Kubeflow.
#include <catch2/catch.hpp>

#include "tests/unit/cli/foreign_manifest.h"

namespace berth {
namespace {

std::string JobOf(const std::string& spec, const std::string& container,
                  const std::string& pod = "restartPolicy: Never") {
  return absl::StrCat("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {", spec,
                      spec.empty() ? "" : ", ", "template: {spec: {", pod,
                      ", containers: [{name: c, ", container, "}]}}}\n");
}
constexpr char kSleep[] = "image: busybox, command: [sleep, \"1\"]";

TEST_CASE("a Kubernetes job: tasks that do not need each other, with its limits") {
  const Converted job =
      Convert(JobOf("parallelism: 3, completions: 3, backoffLimit: 2, activeDeadlineSeconds: 60, "
                    "ttlSecondsAfterFinished: 30, suspend: true",
                    kSleep));
  CHECK(job.group().replicas() == 3);
  CHECK(job.group().membership() == v1::INDEPENDENT);
  CHECK(job.spec().min_available() == 1);
  CHECK(job.spec().max_retries() == 2);
  CHECK(job.spec().run_limit().seconds() == 60);
  CHECK(job.spec().ttl_after_finished().seconds() == 30);
  CHECK(job.spec().suspended());
  CHECK_FALSE(job.spec().has_array());
  REQUIRE(job.group().policies_size() == 1);
  CHECK(job.group().policies(0).action() == v1::LifecyclePolicy::RESTART_TASK);
  CHECK(Convert(JobOf("", kSleep)).spec().max_retries() == 6);
}

TEST_CASE("an indexed job is an array, and its tasks know JOB_COMPLETION_INDEX") {
  const Converted job = Convert(JobOf(
      "completionMode: Indexed, completions: 5, parallelism: 9, backoffLimitPerIndex: 1, "
      "maxFailedIndexes: 2",
      "image: x, command: [run, --part=$(JOB_COMPLETION_INDEX)], "
      "env: [{name: FILE, value: p-$(JOB_COMPLETION_INDEX)}, {name: PLAIN, value: $$(X) $Y}]"));
  CHECK(job.spec().array().size() == 5);
  CHECK(job.spec().array().parallelism() == 5);
  CHECK(job.spec().array().max_failed() == 2);
  CHECK(job.spec().max_retries() == 1);
  CHECK(absl::StrJoin(job.group().command(), " ") ==
        "env JOB_COMPLETION_INDEX=${BERTH_ARRAY_INDEX} FILE=p-${BERTH_ARRAY_INDEX} run "
        "--part=${BERTH_ARRAY_INDEX}");
  REQUIRE(job.group().env_size() == 1);
  CHECK(job.group().env(0).value() == "$(X) $Y");
  const Converted few = Convert(JobOf("completions: 5, parallelism: 2", kSleep));
  CHECK(few.spec().array().size() == 5);
  CHECK(few.spec().array().max_failed() == 0);
  CHECK(few.group().command_size() == 2);
  const Converted own = Convert(JobOf("completionMode: Indexed, completions: 2", "image: x"));
  CHECK(own.group().command().empty());
  CHECK(own.Warned("the image's own command does not get JOB_COMPLETION_INDEX"));
}

TEST_CASE("rules of podFailurePolicy by exit codes") {
  const Converted job =
      Convert(JobOf("podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, "
                    "values: [42, 43]}}, "
                    "{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}, "
                    "{action: Count, onExitCodes: {operator: NotIn, values: [1, 2]}}]}",
                    kSleep));
  REQUIRE(job.group().policies_size() == 3);
  CHECK(job.group().policies(0).action() == v1::LifecyclePolicy::ABORT);
  CHECK(job.group().policies(0).exit_codes_size() == 2);
  CHECK(job.group().policies(1).exit_codes_size() == 253);
  CHECK(absl::StrContains(Errors(JobOf("podFailurePolicy: {rules: [{action: Ignore, onExitCodes: "
                                       "{operator: In, values: [1]}}]}",
                                       kSleep)),
                          "action Ignore"));
}

TEST_CASE("what a Kubernetes job may not have is refused at once, each with its place") {
  const std::string errors =
      Errors(JobOf("parallelism: 2, successPolicy: {}", "image: x, command: a b, lifecycle: {}",
                   "restartPolicy: Always, hostname: h, hostIPC: true"));
  CHECK(errors ==
        "f.yaml:4:24: unsupported key \"successPolicy\": Berth counts successes (minSuccess), not "
        "indexes\n"
        "f.yaml:4:76: restartPolicy \"Always\" is not Never or OnFailure\n"
        "f.yaml:4:84: unsupported key \"hostname\": a task has the host name of its node\n"
        "f.yaml:4:97: unsupported key \"hostIPC\": tasks have their own System V objects\n"
        "f.yaml:4:154: command: one string with blanks; write a list, as in [PROGRAM, ARGUMENT] or "
        "[sh, -c, \"...\"]\n"
        "f.yaml:4:159: unsupported key \"lifecycle\": run it in the container's own command");
  CHECK(Errors(JobOf("", kSleep, "nodeSelector: {}")) ==
        "f.yaml:4:19: \"restartPolicy\" is missing");
}

TEST_CASE("Kueue's labels choose the queue and the class, and its suspension is its own") {
  const Converted job = Convert(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: pi-, namespace: ml, labels: "
      "{kueue.x-k8s.io/queue-name: team, kueue.x-k8s.io/priority-class: high}}\nspec: {suspend: "
      "true, template: {spec: {restartPolicy: Never, containers: [{image: x}]}}}\n");
  CHECK(job.spec().queue() == "team");
  CHECK(job.spec().priority_class() == "high");
  CHECK_FALSE(job.spec().suspended());
  CHECK(job.manifests[0].job.name().size() == 8);
  CHECK(absl::StartsWith(job.manifests[0].job.name(), "pi-"));
  CHECK(job.Warned(": namespace is left out"));
  CHECK(job.manifests[0].Locate("spec.queue") == "f.yaml:3:82");
}

TEST_CASE("annotations of pods: Kueue's topologies, and Volcano's without effect") {
  const Converted job = Convert(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, annotations: "
      "{volcano.sh/sla-waiting-time: 1h}}\nspec: {template: {metadata: {annotations: "
      "{kueue.x-k8s.io/podset-required-topology: cloud.example/rack}}, spec: {restartPolicy: "
      "Never, "
      "containers: [{image: x}]}}}\n");
  CHECK(job.group().topology().mode() == v1::TopologyConstraint::HARD);
  CHECK(job.group().topology().highest_tier_name() == "rack");
  CHECK(job.Warned("volcano.sh/sla-waiting-time has no effect"));
}

TEST_CASE("CronJobs are schedules") {
  const Converted job = Convert(
      "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec:\n  schedule: \"0 2 * * *\"\n"
      "  timeZone: Europe/Berlin\n  concurrencyPolicy: Replace\n  startingDeadlineSeconds: 60\n"
      "  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{image: "
      "x}]}}}}\n");
  const v1::Schedule& schedule = job.spec().schedule();
  CHECK(schedule.cron() == "0 2 * * *");
  CHECK(schedule.time_zone() == "Europe/Berlin");
  CHECK(schedule.overlap() == v1::Schedule::REPLACE);
  CHECK(schedule.start_deadline().seconds() == 60);
  CHECK(schedule.history() == 3);
}

TEST_CASE("CronJobs that are wrong, and the errors of their job template") {
  const std::string errors = Errors(
      "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec:\n  schedule: \"* * * * *\"\n"
      "  concurrencyPolicy: Never\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Always, "
      "containers: [{image: "
      "x}]}}}}\n");
  CHECK(absl::StrContains(errors, "f.yaml:6:22: concurrencyPolicy \"Never\" is not Allow"));
  CHECK(absl::StrContains(errors, "f.yaml:7:57: restartPolicy \"Always\""));
}

std::string JobSetOf(const std::string& spec, const std::string& annotations = "") {
  const std::string pod =
      "{spec: {parallelism: 2, completions: 2, backoffLimit: 0, template: {spec: {restartPolicy: "
      "Never, containers: [{name: c, image: x, command: [run]}]}}}}";
  return absl::StrCat("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s",
                      annotations, "}\nspec: {", spec,
                      "replicatedJobs: [{name: driver, template: ", pod,
                      "}, {name: workers, replicas: 3, template: ", pod, "}]}\n");
}

TEST_CASE("a JobSet is one gang with a group for each replicated job") {
  const Converted set = Convert(JobSetOf(
      "failurePolicy: {maxRestarts: 3}, successPolicy: {operator: All, targetReplicatedJobs: "
      "[driver]}, startupPolicy: {startupPolicyOrder: InOrder}, "));
  CHECK(set.group(0).replicas() == 2);
  CHECK(set.group(1).replicas() == 6);
  CHECK(set.spec().max_retries() == 3);
  CHECK(set.spec().policies(0).action() == v1::LifecyclePolicy::RESTART_JOB);
  CHECK(set.group(0).policies(0).action() == v1::LifecyclePolicy::COMPLETE);
  CHECK(set.group(1).depends_on(0).group() == "driver");
  CHECK(set.group(0).command(1) == "JOB_COMPLETION_INDEX=${BERTH_GROUP_INDEX}");
  const Converted placed = Convert(JobSetOf(
      "", ", annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: example.com/rack}"));
  CHECK(placed.group(0).topology().highest_tier_name() == "rack");
  CHECK(placed.group(1).partition().size() == 2);
  CHECK(placed.group(1).partition().topology().highest_tier_name() == "rack");
  CHECK(absl::StrContains(Errors(JobSetOf("successPolicy: {operator: Any}, ")),
                          "Any: workers has several jobs"));
}

std::string Replica(const std::string& type, const std::string& more, const std::string& command) {
  return absl::StrCat(type, ": {", more,
                      "template: {spec: {containers: [{name: c, image: x, command: [", command,
                      "]}]}}}");
}

TEST_CASE("a PyTorchJob: the master decides, and restarts follow restartPolicy") {
  const Converted job = Convert(absl::StrCat(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec: {nprocPerNode: 4, "
      "runPolicy: {schedulingPolicy: {queue: q, minAvailable: 3}}, pytorchReplicaSpecs: {",
      Replica("Master", "restartPolicy: OnFailure, ", "train, $(RANK)"), ", ",
      Replica("Worker", "replicas: 2, restartPolicy: ExitCode, ", "train"), "}}\n"));
  CHECK(job.group(0).name() == "master");
  CHECK(job.group(0).command(1) == "${RANK}");
  CHECK(job.group(1).replicas() == 2);
  CHECK(job.group(1).env(0).name() == "PET_NPROC_PER_NODE");
  CHECK(job.group(1).policies(0).exit_codes_size() == 127);
  CHECK(job.spec().queue() == "q");
  CHECK(job.spec().min_available() == 3);
  CHECK(Errors("apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: t}\nspec: "
               "{pytorchReplicaSpecs: {" +
               Replica("Evaluator", "", "a") + "}}\n") ==
        "f.yaml:4:41: unsupported replica type \"Evaluator\"; known: Master, Worker");
}

TEST_CASE("an MPIJob: mpirun finds the hosts and mpi-launch-agent, and workers wait") {
  const Converted job = Convert(
      absl::StrCat("apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: m}\nspec: "
                   "{mpiReplicaSpecs: {",
                   Replica("Launcher", "", "mpirun, --hostfile, /etc/mpi/hostfile, a"), ", ",
                   Replica("Worker", "replicas: 2, ", "/usr/sbin/sshd, -De"), "}}\n"));
  CHECK(absl::StrJoin(job.group(0).command(), " ") ==
        "env OMPI_MCA_orte_default_hostfile=${BERTH_HOSTFILE} "
        "OMPI_MCA_plm_rsh_agent=mpi-launch-agent OMPI_MCA_plm_rsh_no_tree_spawn=1 "
        "OMPI_MCA_rmaps_base_oversubscribe=1 mpirun --hostfile ${BERTH_HOSTFILE} a");
  CHECK(absl::StrJoin(job.group(1).command(), " ") == "sleep infinity");
  CHECK(job.Warned("mpi-launch-agent in place of ssh"));
}

TEST_CASE("a TrainJob of the runtime torch-distributed, and of others") {
  const std::string begin =
      "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: t}\nspec: {";
  const Converted job =
      Convert(begin +
              "runtimeRef: {name: torch-distributed}, trainer: {image: x, command: "
              "[torchrun, a.py], numNodes: 2, numProcPerNode: 2, resourcesPerNode: "
              "{limits: {nvidia.com/gpu: 2}}}}\n");
  CHECK(job.group().replicas() == 2);
  CHECK(job.group().resources().devices(0).count() == 2);
  CHECK(job.group().env(0).value() == "2");
  CHECK(
      absl::StrContains(Errors(begin + "runtimeRef: {name: torchtune}, trainer: {command: [a]}}\n"),
                        "f.yaml:4:8: runtime \"torchtune\": "));
}

TEST_CASE("kinds that mean nothing here are refused or left out, and unknown ones are named") {
  CHECK(Errors("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n") ==
        "f.yaml:1:1: kind Service: tasks find each other by MASTER_ADDR and the file "
        "BERTH_HOSTFILE, not by names");
  CHECK(Convert("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").manifests.empty());
  CHECK(Errors("apiVersion: batch/v1\nkind: Jobs\n") ==
        "f.yaml:2:7: unknown kind \"Jobs\"; did you mean \"Job\"?");
  CHECK(absl::StrContains(Errors("apiVersion: batch/v2\nkind: Job\n"),
                          "unknown apiVersion \"batch/v2\"; did you mean \"batch/v1\"?"));
}

}  // namespace
}  // namespace berth
