#include "clients/cli/volcano.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace berth {

std::string BerthResource(const std::string& name) {
  static const std::map<std::string, std::string> kNames = {
      {"cpu", "cpu"},           {"memory", "memory"},          {"nvidia.com/gpu", "gpu"},
      {"amd.com/gpu", "gpu"},   {"gpu.intel.com/i915", "gpu"}, {"cambricon.com/mlu", "mlu"},
      {"hygon.com/dcu", "dcu"},
  };
  const auto found = kNames.find(name);
  if (found != kNames.end()) return found->second;
  return absl::StartsWith(name, "huawei.com/Ascend") ? "npu" : "";
}

absl::StatusOr<int64_t> ParseKubernetesAmount(const std::string& berth_resource,
                                              const std::string& text) {
  if (berth_resource == "cpu") return ParseCpuMillis(text);
  if (berth_resource == "memory") return ParseBytes(text);
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
constexpr const char* kHarmless[] = {"status",
                                     "uid",
                                     "resourceVersion",
                                     "creationTimestamp",
                                     "generation",
                                     "managedFields",
                                     "selfLink",
                                     "ports",
                                     "hostNetwork",
                                     "dnsPolicy",
                                     "enableServiceLinks",
                                     "automountServiceAccountToken",
                                     "terminationMessagePath",
                                     "terminationMessagePolicy"};

YamlReadOptions VolcanoReadOptions(const ManifestOptions& options, YamlErrors* skipped,
                                   YamlPositions* positions) {
  YamlReadOptions read;
  read.refusal = "unsupported key";
  read.positions = positions;
  read.ignored = options.ignored;
  read.ignored.insert(std::begin(kHarmless), std::end(kHarmless));
  read.skipped = skipped;
  read.hints = {
      {"imagePullSecrets",
       "write a Berth manifest with registryAuth: FILE, or pass --ignore imagePullSecrets"},
      {"tensorflow", "Berth sets no TF_CONFIG; remove it or pass --ignore tensorflow"},
      {"ray", "Berth starts no Ray cluster; remove it or pass --ignore ray"},
      {"initContainers", "run the preparation in the task's own command"},
      {"valueFrom", "write the value out"},
      {"generateName", "give a name, or none to let the server choose one"},
  };
  return read;
}

}  // namespace berth
