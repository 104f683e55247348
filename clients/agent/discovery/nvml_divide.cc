#include "clients/agent/discovery/nvml_divide.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace berth::discovery {
namespace {

class Divider {
 public:
  Divider(const NvmlLibrary& nvml, const std::string& uuid) : nvml_(nvml), uuid_(uuid) {}

  absl::Status Run(const std::vector<GpuPart>& parts) {
    if (absl::Status status = Find(); !status.ok()) return status;
    if (absl::Status status = ReadProfiles(); !status.ok()) return status;
    std::vector<Wanted> wanted;
    for (const GpuPart& part : parts) {
      if (absl::Status status = Want(part, &wanted); !status.ok()) return status;
    }
    if (absl::Status status = CheckUnused(); !status.ok()) return status;
    for (const NvmlGpuInstanceProfile& profile : profiles_) {
      if (absl::Status status = Clear(profile); !status.ok()) return status;
    }
    for (const Wanted& part : wanted) {
      if (absl::Status status = Make(part); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  struct Wanted {
    const NvmlGpuInstanceProfile* profile;
    NvmlPlacement placement;
  };

  absl::Status Failed(absl::string_view what, NvmlResult result) const {
    const std::string text =
        absl::StrCat("GPU ", uuid_, ": ", what, ": ", nvml_.ErrorText(result),
                     result == kNvmlNoPermission ? "; the agent must be root to divide GPUs" : "");
    return result == kNvmlFunctionNotFound ? absl::UnimplementedError(text)
                                           : absl::InternalError(text);
  }
  absl::Status Refused(absl::string_view why) const {
    return absl::FailedPreconditionError(absl::StrCat("GPU ", uuid_, " ", why));
  }

  absl::Status Find() {
    unsigned count = 0;
    if (const NvmlResult result = nvml_.DeviceCount(&count); result != kNvmlSuccess)
      return Failed("counting GPUs", result);
    bool found = false;
    for (unsigned i = 0; i < std::min(count, kMaxGpus) && !found; ++i) {
      std::string uuid;
      found = nvml_.Device(i, &device_) == kNvmlSuccess &&
              nvml_.Uuid(device_, &uuid) == kNvmlSuccess && uuid == uuid_;
    }
    if (!found) return absl::NotFoundError(absl::StrCat("NVML reports no GPU ", uuid_));
    bool enabled = false;
    const NvmlResult result = nvml_.MigMode(device_, &enabled);
    if (result != kNvmlSuccess) return Failed("reading its MIG mode", result);
    if (enabled) return absl::OkStatus();
    return Refused("is not in MIG mode; an operator can enable it with nvidia-smi -mig 1");
  }

  absl::Status ReadProfiles() {
    for (unsigned number = 0; number < kNvmlGpuInstanceProfiles; ++number) {
      NvmlGpuInstanceProfile profile;
      const NvmlResult result = nvml_.InstanceProfile(device_, number, &profile);
      if (result == kNvmlSuccess) {
        profiles_.push_back(profile);
      } else if (result != kNvmlNotSupported && result != kNvmlInvalidArgument) {
        return Failed("reading its MIG profiles", result);
      }
    }
    return absl::OkStatus();
  }

  static std::string NameOf(const NvmlGpuInstanceProfile& profile) {
    const absl::string_view name(profile.name, strnlen(profile.name, sizeof profile.name));
    return std::string(absl::StripPrefix(name, "MIG "));
  }

  absl::Status Want(const GpuPart& part, std::vector<Wanted>* wanted) const {
    const auto found = std::find_if(
        profiles_.begin(), profiles_.end(),
        [&](const NvmlGpuInstanceProfile& one) { return NameOf(one) == part.profile; });
    if (found == profiles_.end()) {
      return Refused(absl::StrCat(
          "has no profile ", part.profile, "; it has: ",
          absl::StrJoin(profiles_, ", ", [](std::string* out, const NvmlGpuInstanceProfile& one) {
            absl::StrAppend(out, NameOf(one));
          })));
    }
    std::vector<NvmlPlacement> placements;
    const NvmlResult result = nvml_.Placements(device_, *found, &placements);
    if (result != kNvmlSuccess) return Failed(absl::StrCat("placements of ", part.profile), result);
    for (const NvmlPlacement& placement : placements) {
      if (placement.start != static_cast<unsigned>(part.start)) continue;
      wanted->push_back({&*found, placement});
      return absl::OkStatus();
    }
    return Refused(absl::StrCat("has no placement ", ToString(part)));
  }

  absl::Status CheckUnused() const {
    unsigned slots = 0;
    if (const NvmlResult result = nvml_.MigSlots(device_, &slots); result != kNvmlSuccess)
      return Failed("listing its instances", result);
    for (unsigned slot = 0; slot < std::min(slots, kMaxMigSlots); ++slot) {
      NvmlDevice mig = nullptr;
      if (nvml_.MigDevice(device_, slot, &mig) != kNvmlSuccess) continue;  // most slots are empty
      unsigned processes = 0;
      const NvmlResult result = nvml_.ComputeProcesses(mig, &processes);
      if (result != kNvmlSuccess) return Failed("listing processes of an instance", result);
      if (processes == 0) continue;
      std::string uuid;
      if (nvml_.Uuid(mig, &uuid) != kNvmlSuccess) uuid = "unknown";
      return Refused(absl::StrCat("is in use: instance ", uuid, " has ", processes, " processes"));
    }
    return absl::OkStatus();
  }

  absl::Status Clear(const NvmlGpuInstanceProfile& profile) const {
    std::vector<NvmlGpuInstance> instances;
    NvmlResult result = nvml_.Instances(device_, profile, &instances);
    if (result != kNvmlSuccess && result != kNvmlNotSupported)
      return Failed(absl::StrCat("listing instances of ", NameOf(profile)), result);
    for (NvmlGpuInstance instance : instances) {
      result = ClearCompute(instance);
      if (result == kNvmlSuccess) result = nvml_.DestroyInstance(instance);
      if (result != kNvmlSuccess)
        return Failed(absl::StrCat("destroying an instance of ", NameOf(profile)), result);
    }
    return absl::OkStatus();
  }

  NvmlResult ClearCompute(NvmlGpuInstance instance) const {
    for (unsigned number = 0; number < kNvmlComputeInstanceProfiles; ++number) {
      NvmlComputeInstanceProfile profile;
      if (nvml_.ComputeProfile(instance, number, &profile) != kNvmlSuccess) continue;
      std::vector<NvmlComputeInstance> parts;
      NvmlResult result = nvml_.ComputeInstances(instance, profile, &parts);
      for (size_t i = 0; result == kNvmlSuccess && i < parts.size(); ++i)
        result = nvml_.DestroyComputeInstance(parts[i]);
      if (result != kNvmlSuccess) return result;
    }
    return kNvmlSuccess;
  }

  absl::Status Make(const Wanted& part) const {
    const std::string what =
        absl::StrCat("creating ", NameOf(*part.profile), "@", part.placement.start);
    NvmlGpuInstance instance = nullptr;
    NvmlResult result = nvml_.MakeInstance(device_, *part.profile, part.placement, &instance);
    if (result != kNvmlSuccess) return Failed(what, result);
    for (unsigned number = 0; number < kNvmlComputeInstanceProfiles; ++number) {
      NvmlComputeInstanceProfile whole;
      result = nvml_.ComputeProfile(instance, number, &whole);
      if (result != kNvmlSuccess || whole.slices != part.profile->slices) continue;
      result = nvml_.MakeComputeInstance(instance, whole);
      if (result == kNvmlSuccess) return absl::OkStatus();
      return Failed(absl::StrCat(what, ", compute instance"), result);
    }
    return Refused(absl::StrCat("has no compute instance for all of ", NameOf(*part.profile)));
  }

  const NvmlLibrary& nvml_;
  const std::string& uuid_;
  NvmlDevice device_ = nullptr;
  std::vector<NvmlGpuInstanceProfile> profiles_;  // those that the GPU supports
};

}  // namespace

std::string ToString(const GpuPart& part) { return absl::StrCat(part.profile, "@", part.start); }

bool ParsePart(const std::string& text, GpuPart* part) {
  const size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0) return false;
  part->profile = text.substr(0, at);
  return absl::SimpleAtoi(text.substr(at + 1), &part->start) && part->start >= 0;
}

absl::Status DivideGpu(const NvmlLibrary& nvml, const std::string& uuid,
                       const std::vector<GpuPart>& parts) {
  return Divider(nvml, uuid).Run(parts);
}

}  // namespace berth::discovery
