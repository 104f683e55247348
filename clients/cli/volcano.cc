#include "clients/cli/volcano.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace berth {

std::string BerthResource(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {
      {"cpu", "cpu"},
      {"memory", "memory"},
      {"nvidia.com/gpu", "gpu"},
      {"amd.com/gpu", "gpu"},
      {"gpu.intel.com/i915", "gpu"},
      {"cambricon.com/mlu", "mlu"},
      {"hygon.com/dcu", "dcu"},
      {"ephemeral-storage", "scratch"},
  };
  const auto found = kNames.find(name);
  if (found != kNames.end()) return found->second;
  return absl::StartsWith(name, "huawei.com/Ascend") ? "npu" : "";
}

absl::StatusOr<int64_t> ParseKubernetesAmount(const std::string& berth_resource,
                                              const std::string& text) {
  if (berth_resource == "cpu") return ParseCpuMillis(text);
  if (berth_resource == "memory" || berth_resource == "scratch") return ParseBytes(text);
  int64_t count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 0) return count;
  return absl::InvalidArgumentError(
      absl::StrCat("expected a whole number of devices, got \"", text, "\""));
}

std::string WholeNameRegex(const std::string& pattern) {
  const bool begins = absl::StartsWith(pattern, "^");
  const bool ends = absl::EndsWith(pattern, "$") && !absl::EndsWith(pattern, "\\$");
  if (begins && ends && pattern.size() > 1 && pattern.find('|') == std::string::npos) {
    return pattern.substr(1, pattern.size() - 2);
  }
  return absl::StrCat(".*(?:", pattern, ").*");
}

// Keys without a meaning for Berth, or that Kubernetes' server sets: they are left out, with a
// warning.
constexpr const char* kHarmless[] = {
    // of exports
    "status", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
    "selfLink", "ownerReferences", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds",
    "selector", "manualSelector",
    // of pods
    "ports", "hostNetwork", "dnsPolicy", "dnsConfig", "enableServiceLinks",
    "automountServiceAccountToken", "serviceAccount", "serviceAccountName",
    "terminationMessagePath", "terminationMessagePolicy", "imagePullSecrets", "runtimeClassName",
    "readinessProbe", "startupProbe", "readinessGates", "stdin", "stdinOnce", "tty",
    "mountPropagation", "recursiveReadOnly", "setHostnameAsFQDN",
    "preferredDuringSchedulingIgnoredDuringExecution",
    // of securityContext
    "runAsUser", "runAsGroup", "runAsNonRoot", "fsGroup", "fsGroupChangePolicy",
    "supplementalGroups", "seccompProfile", "appArmorProfile", "seLinuxOptions",
    "allowPrivilegeEscalation", "readOnlyRootFilesystem", "procMount",
    // of jobs
    "maxRetry", "podReplacementPolicy", "runningEstimate", "coordinator", "scheduleTimeoutSeconds"};

// Keys that would change what a job does, and why Berth cannot honour them.
const std::map<std::string, std::string>& RefusedKeys() {
  static const std::map<std::string, std::string> kRefused = {
      {"hcclrank", "Berth sets no rank table; remove it or pass --ignore hcclrank"},
      {"ephemeralContainers", "use berth exec --container"},
      {"livenessProbe", "write a Berth manifest with watchdog:, or pass --ignore livenessProbe"},
      {"lifecycle", "run it in the container's own command"},
      {"persistentVolumeClaim",
       "Berth mounts no claims: mount the file system on the nodes, and use hostPath"},
      {"volumes", "Berth mounts no claims: write volumes of the pods, such as hostPath"},
      {"nfs", "mount the file system on the nodes, and use hostPath"},
      {"csi", "mount the file system on the nodes, and use hostPath"},
      {"ephemeral", "Berth creates no volumes: use emptyDir"},
      {"projected", "use a volume of a ConfigMap or Secret for each path"},
      {"downwardAPI", "a task has its name and place in BERTH_ variables, not in files"},
      {"subPathExpr", "write subPath"},
      {"volumeDevices", "tasks get no block devices"},
      {"requiredDuringSchedulingIgnoredDuringExecution", "write a Berth manifest with affinity:"},
      {"matchFields", "use matchExpressions on a label"},
      {"nodeName", "use nodeSelector: the scheduler chooses the node"},
      {"hostname", "a task has the host name of its node"},
      {"subdomain", "tasks have no names of their own: MASTER_ADDR is the address of rank 0"},
      {"hostAliases", "tasks have the hosts file of their node or image"},
      {"hostPID", "tasks see only their own processes"},
      {"hostIPC", "tasks have their own System V objects"},
      {"resourceClaims", "write the devices below resources"},
      {"claims", "write the devices below resources"},
      {"schedulingGates", "submit the job when it may start, or suspended"},
      {"probe", "a flow can only wait for the success of its targets"},
      {"patch", "write a JobTemplate for each variant"},
      {"successPolicy", "Berth counts successes (minSuccess), not indexes"},
      {"managedBy", "another controller would run the job"},
      {"topologyPolicy", "write a Berth manifest with minLink: for devices of one NUMA node"},
      {"subGroupPolicy", "Volcano's Job has partitionPolicy for this"},
      {"initializer", "run it as a job of its own, and let this one depend on it"},
      {"podSpecOverrides", "write them into trainer"},
      {"podTemplateOverrides", "write them into trainer"},
      {"runtimePatches", "write them into trainer"},
      {"onJobFailureReasons", "Berth restarts on every failure alike"},
      {"targetReplicatedJobs", "the gang restarts as a whole"},
      {"restartStrategy", "the gang restarts as a whole"},
      {"affinity", "queues have no node groups: give nodes labels, and jobs a nodeSelector"},
      {"extendClusters", "Berth is one cluster"},
  };
  return kRefused;
}

YamlReadOptions VolcanoReadOptions(const ManifestOptions& options, YamlErrors* skipped,
                                   YamlPositions* positions) {
  YamlReadOptions read;
  read.refusal = "unsupported key";
  read.positions = positions;
  read.ignored = options.ignored;
  read.ignored.insert(std::begin(kHarmless), std::end(kHarmless));
  read.skipped = skipped;
  read.hints = RefusedKeys();
  return read;
}

}  // namespace berth
