#include "clients/agent/discovery/nvml_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace berth::discovery {
namespace {

// Buffers are NUL-terminated here, whatever the library wrote.
template <size_t N>
std::string Text(const char (&buffer)[N]) {
  return std::string(buffer, strnlen(buffer, N));
}

bool IsMissing(const std::string& error, const std::string& name) {
  return absl::StrContains(error, name) && absl::StrContains(error, "No such file");
}

}  // namespace

template <class Function>
Function NvmlLibrary::Find(const char* name, const char* older) const {
  void* found = dlsym(handle_, name);
  if (found == nullptr && older != nullptr) found = dlsym(handle_, older);
  return reinterpret_cast<Function>(found);
}

template <class... Args>
NvmlResult NvmlLibrary::Call(const char* name, const char* older, Args... args) const {
  const auto function = Find<NvmlResult (*)(Args...)>(name, older);
  return function == nullptr ? kNvmlFunctionNotFound : function(args...);
}

absl::StatusOr<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Open(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    const std::string error = text == nullptr ? "unknown error" : text;
    return IsMissing(error, name) ? absl::NotFoundError(error) : absl::InternalError(error);
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  const NvmlResult result = library->Call("nvmlInit_v2", "nvmlInit");
  library->started_ = result == kNvmlSuccess;
  if (library->started_) return library;
  const std::string why = absl::StrCat(name, " does not start: ", library->ErrorText(result));
  return result == kNvmlDriverNotLoaded ? absl::FailedPreconditionError(why)
                                        : absl::InternalError(why);
}

NvmlLibrary::~NvmlLibrary() {
  if (started_) Call("nvmlShutdown", nullptr);
  dlclose(handle_);
}

std::string NvmlLibrary::ErrorText(NvmlResult result) const {
  if (result == kNvmlFunctionNotFound) return "the driver is too old for this call";
  const auto function = Find<const char* (*)(NvmlResult)>("nvmlErrorString");
  const char* text = function == nullptr ? nullptr : function(result);
  return text == nullptr ? absl::StrCat("error ", result) : text;
}

NvmlResult NvmlLibrary::DriverVersion(std::string* version) const {
  char buffer[kNvmlVersionBytes] = {};
  const NvmlResult result =
      Call("nvmlSystemGetDriverVersion", nullptr, &buffer[0], kNvmlVersionBytes);
  if (result == kNvmlSuccess) *version = Text(buffer);
  return result;
}

NvmlResult NvmlLibrary::DeviceCount(unsigned* count) const {
  return Call("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", count);
}

NvmlResult NvmlLibrary::Device(unsigned index, NvmlDevice* device) const {
  return Call("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", index, device);
}

NvmlResult NvmlLibrary::Name(NvmlDevice device, std::string* name) const {
  char buffer[kNvmlNameBytes] = {};
  const NvmlResult result = Call("nvmlDeviceGetName", nullptr, device, &buffer[0], kNvmlNameBytes);
  if (result == kNvmlSuccess) *name = Text(buffer);
  return result;
}

NvmlResult NvmlLibrary::Uuid(NvmlDevice device, std::string* uuid) const {
  char buffer[kNvmlNameBytes] = {};
  const NvmlResult result = Call("nvmlDeviceGetUUID", nullptr, device, &buffer[0], kNvmlNameBytes);
  if (result == kNvmlSuccess) *uuid = Text(buffer);
  return result;
}

NvmlResult NvmlLibrary::PciInfo(NvmlDevice device, NvmlPciInfo* info) const {
  *info = {};
  return Call("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", device, info);
}

NvmlResult NvmlLibrary::Memory(NvmlDevice device, NvmlMemory* memory) const {
  return Call("nvmlDeviceGetMemoryInfo", nullptr, device, memory);
}

NvmlResult NvmlLibrary::MemoryInUse(NvmlDevice device, NvmlMemory* memory,
                                    int64_t* reserved) const {
  NvmlMemoryV2 newer = {};
  newer.version = kNvmlMemoryV2Version;
  *reserved = -1;
  if (const NvmlResult result = Call("nvmlDeviceGetMemoryInfo_v2", nullptr, device, &newer);
      result != kNvmlSuccess) {
    return result == kNvmlGpuIsLost ? result : Memory(device, memory);
  }
  *memory = {newer.total, newer.free, newer.used};
  *reserved = static_cast<int64_t>(std::min<unsigned long long>(newer.reserved, INT64_MAX));
  return kNvmlSuccess;
}

NvmlResult NvmlLibrary::ComputeCapability(NvmlDevice device, int* major, int* minor) const {
  return Call("nvmlDeviceGetCudaComputeCapability", nullptr, device, major, minor);
}

NvmlResult NvmlLibrary::LinkState(NvmlDevice device, unsigned link, bool* active) const {
  unsigned state = 0;
  const NvmlResult result = Call("nvmlDeviceGetNvLinkState", nullptr, device, link, &state);
  if (result == kNvmlSuccess) *active = state == 1;
  return result;
}

NvmlResult NvmlLibrary::LinkPeer(NvmlDevice device, unsigned link, NvmlPciInfo* peer) const {
  *peer = {};
  return Call("nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo", device,
              link, peer);
}

NvmlResult NvmlLibrary::LinkPeerType(NvmlDevice device, unsigned link, unsigned* type) const {
  return Call("nvmlDeviceGetNvLinkRemoteDeviceType", nullptr, device, link, type);
}

NvmlResult NvmlLibrary::Fabric(NvmlDevice device, NvmlFabricInfo* info) const {
  NvmlFabricInfoV2 newer = {};
  newer.version = kNvmlFabricInfoV2Version;
  NvmlResult result = Call("nvmlDeviceGetGpuFabricInfoV", nullptr, device, &newer);
  if (result == kNvmlFunctionNotFound)
    return Call("nvmlDeviceGetGpuFabricInfo", nullptr, device, info);
  if (result != kNvmlSuccess) return result;
  std::memcpy(info->cluster_uuid, newer.cluster_uuid, sizeof info->cluster_uuid);
  info->status = newer.status;
  info->clique_id = newer.clique_id;
  info->state = newer.state;
  return result;
}

NvmlResult NvmlLibrary::MigMode(NvmlDevice device, bool* enabled) const {
  unsigned current = 0;
  unsigned pending = 0;
  const NvmlResult result = Call("nvmlDeviceGetMigMode", nullptr, device, &current, &pending);
  if (result == kNvmlSuccess) *enabled = current == 1;
  return result;
}

NvmlResult NvmlLibrary::MigSlots(NvmlDevice device, unsigned* count) const {
  return Call("nvmlDeviceGetMaxMigDeviceCount", nullptr, device, count);
}

NvmlResult NvmlLibrary::MigDevice(NvmlDevice device, unsigned slot, NvmlDevice* mig) const {
  return Call("nvmlDeviceGetMigDeviceHandleByIndex", nullptr, device, slot, mig);
}

NvmlResult NvmlLibrary::MigIds(NvmlDevice mig, unsigned* gpu_instance,
                               unsigned* compute_instance) const {
  const NvmlResult result = Call("nvmlDeviceGetGpuInstanceId", nullptr, mig, gpu_instance);
  if (result != kNvmlSuccess) return result;
  return Call("nvmlDeviceGetComputeInstanceId", nullptr, mig, compute_instance);
}

NvmlResult NvmlLibrary::Attributes(NvmlDevice mig, NvmlAttributes* attributes) const {
  return Call("nvmlDeviceGetAttributes_v2", nullptr, mig, attributes);
}

// With room for none, it returns the count.
NvmlResult NvmlLibrary::ComputeProcesses(NvmlDevice mig, unsigned* count) const {
  *count = 0;
  const NvmlResult result =
      Call("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
           mig, count, static_cast<void*>(nullptr));
  return result == kNvmlInsufficientSize ? kNvmlSuccess : result;
}

NvmlResult NvmlLibrary::InstanceProfile(NvmlDevice device, unsigned number,
                                        NvmlGpuInstanceProfile* profile) const {
  *profile = {};
  profile->version = kNvmlGpuInstanceProfileVersion;
  return Call("nvmlDeviceGetGpuInstanceProfileInfoV", nullptr, device, number, profile);
}

NvmlResult NvmlLibrary::Placements(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                                   std::vector<NvmlPlacement>* placements) const {
  placements->assign(kNvmlMaxInstances, {});
  unsigned count = kNvmlMaxInstances;
  const NvmlResult result = Call("nvmlDeviceGetGpuInstancePossiblePlacements_v2", nullptr, device,
                                 profile.id, placements->data(), &count);
  placements->resize(result == kNvmlSuccess ? std::min(count, kNvmlMaxInstances) : 0);
  return result;
}

NvmlResult NvmlLibrary::Instances(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                                  std::vector<NvmlGpuInstance>* instances) const {
  instances->assign(kNvmlMaxInstances, nullptr);
  unsigned count = kNvmlMaxInstances;
  const NvmlResult result =
      Call("nvmlDeviceGetGpuInstances", nullptr, device, profile.id, instances->data(), &count);
  instances->resize(result == kNvmlSuccess ? std::min(count, kNvmlMaxInstances) : 0);
  return result;
}

NvmlResult NvmlLibrary::MakeInstance(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                                     NvmlPlacement placement, NvmlGpuInstance* instance) const {
  return Call("nvmlDeviceCreateGpuInstanceWithPlacement", nullptr, device, profile.id,
              static_cast<const NvmlPlacement*>(&placement), instance);
}

NvmlResult NvmlLibrary::DestroyInstance(NvmlGpuInstance instance) const {
  return Call("nvmlGpuInstanceDestroy", nullptr, instance);
}

NvmlResult NvmlLibrary::ComputeProfile(NvmlGpuInstance instance, unsigned number,
                                       NvmlComputeInstanceProfile* profile) const {
  *profile = {};
  return Call("nvmlGpuInstanceGetComputeInstanceProfileInfo", nullptr, instance, number,
              kNvmlSharedEngines, profile);
}

NvmlResult NvmlLibrary::ComputeInstances(NvmlGpuInstance instance,
                                         const NvmlComputeInstanceProfile& profile,
                                         std::vector<NvmlComputeInstance>* instances) const {
  instances->assign(kNvmlMaxInstances, nullptr);
  unsigned count = kNvmlMaxInstances;
  const NvmlResult result = Call("nvmlGpuInstanceGetComputeInstances", nullptr, instance,
                                 profile.id, instances->data(), &count);
  instances->resize(result == kNvmlSuccess ? std::min(count, kNvmlMaxInstances) : 0);
  return result;
}

NvmlResult NvmlLibrary::MakeComputeInstance(NvmlGpuInstance instance,
                                            const NvmlComputeInstanceProfile& profile) const {
  NvmlComputeInstance made = nullptr;
  return Call("nvmlGpuInstanceCreateComputeInstance", nullptr, instance, profile.id, &made);
}

NvmlResult NvmlLibrary::DestroyComputeInstance(NvmlComputeInstance instance) const {
  return Call("nvmlComputeInstanceDestroy", nullptr, instance);
}

NvmlResult NvmlLibrary::EccMode(NvmlDevice device, bool* enabled) const {
  unsigned current = 0;
  unsigned pending = 0;
  const NvmlResult result = Call("nvmlDeviceGetEccMode", nullptr, device, &current, &pending);
  if (result == kNvmlSuccess) *enabled = current == 1;
  return result;
}

NvmlResult NvmlLibrary::EccErrors(NvmlDevice device, int type, unsigned long long* count) const {
  return Call("nvmlDeviceGetTotalEccErrors", nullptr, device, type, kNvmlVolatile, count);
}

NvmlResult NvmlLibrary::RemapPending(NvmlDevice device, bool* pending) const {
  Remapped rows;
  const NvmlResult result = RemappedRows(device, &rows);
  if (result == kNvmlFunctionNotFound || result == kNvmlNotSupported)
    return RetiredPending(device, pending);
  if (result == kNvmlSuccess) *pending = rows.pending != 0 || rows.failed != 0;
  return result;
}

NvmlResult NvmlLibrary::RemappedRows(NvmlDevice device, Remapped* rows) const {
  return Call("nvmlDeviceGetRemappedRows", nullptr, device, &rows->corrected, &rows->uncorrected,
              &rows->pending, &rows->failed);
}

// With room for none, it returns the count.
NvmlResult NvmlLibrary::RetiredPages(NvmlDevice device, int cause, unsigned* count) const {
  *count = 0;
  const NvmlResult result = Call("nvmlDeviceGetRetiredPages", nullptr, device, cause, count,
                                 static_cast<unsigned long long*>(nullptr));
  return result == kNvmlInsufficientSize ? kNvmlSuccess : result;
}

NvmlResult NvmlLibrary::RetiredPending(NvmlDevice device, bool* pending) const {
  unsigned waits = 0;
  const NvmlResult result = Call("nvmlDeviceGetRetiredPagesPendingStatus", nullptr, device, &waits);
  if (result == kNvmlSuccess) *pending = waits != 0;
  return result;
}

NvmlResult NvmlLibrary::Utilization(NvmlDevice device, NvmlUtilization* utilization) const {
  return Call("nvmlDeviceGetUtilizationRates", nullptr, device, utilization);
}

NvmlResult NvmlLibrary::Encoder(NvmlDevice device, unsigned* percent) const {
  unsigned period_us = 0;
  return Call("nvmlDeviceGetEncoderUtilization", nullptr, device, percent, &period_us);
}

NvmlResult NvmlLibrary::Decoder(NvmlDevice device, unsigned* percent) const {
  unsigned period_us = 0;
  return Call("nvmlDeviceGetDecoderUtilization", nullptr, device, percent, &period_us);
}

NvmlResult NvmlLibrary::Temperature(NvmlDevice device, unsigned* celsius) const {
  return Call("nvmlDeviceGetTemperature", nullptr, device, 0, celsius);
}

NvmlResult NvmlLibrary::Power(NvmlDevice device, unsigned* milliwatts) const {
  return Call("nvmlDeviceGetPowerUsage", nullptr, device, milliwatts);
}

NvmlResult NvmlLibrary::Energy(NvmlDevice device, unsigned long long* millijoules) const {
  return Call("nvmlDeviceGetTotalEnergyConsumption", nullptr, device, millijoules);
}

NvmlResult NvmlLibrary::Clock(NvmlDevice device, int type, unsigned* mhz) const {
  return Call("nvmlDeviceGetClockInfo", nullptr, device, type, mhz);
}

NvmlResult NvmlLibrary::ThrottleReasons(NvmlDevice device, unsigned long long* reasons) const {
  return Call("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
              device, reasons);
}

NvmlResult NvmlLibrary::PcieReplays(NvmlDevice device, unsigned* replays) const {
  return Call("nvmlDeviceGetPcieReplayCounter", nullptr, device, replays);
}

NvmlResult NvmlLibrary::LinkErrors(NvmlDevice device, unsigned link, int counter,
                                   unsigned long long* count) const {
  return Call("nvmlDeviceGetNvLinkErrorCounter", nullptr, device, link, counter, count);
}

NvmlResult NvmlLibrary::Field(NvmlDevice device, unsigned id, unsigned scope,
                              int64_t* value) const {
  NvmlField field = {};
  field.id = id;
  field.scope = scope;
  const NvmlResult result = Call("nvmlDeviceGetFieldValues", nullptr, device, 1, &field);
  if (result != kNvmlSuccess) return result;
  if (field.result != kNvmlSuccess) return field.result;
  const auto bounded = [](unsigned long long v) {
    return static_cast<int64_t>(std::min<unsigned long long>(v, INT64_MAX));
  };
  switch (field.type) {
    case kNvmlUnsigned:
      *value = field.value.u;
      return kNvmlSuccess;
    case kNvmlUnsignedLong:
      *value = bounded(field.value.ul);
      return kNvmlSuccess;
    case kNvmlUnsignedLongLong:
      *value = bounded(field.value.ull);
      return kNvmlSuccess;
    case kNvmlLongLong:
      *value = field.value.ll;
      return kNvmlSuccess;
    case kNvmlInt:
      *value = field.value.i;
      return kNvmlSuccess;
    case kNvmlUnsignedShort:
      *value = field.value.us;
      return kNvmlSuccess;
    default:
      return kNvmlNotSupported;
  }
}

NvmlResult NvmlLibrary::MakeEventSet(NvmlEventSet* set) const {
  return Call("nvmlEventSetCreate", nullptr, set);
}

NvmlResult NvmlLibrary::RegisterXids(NvmlDevice device, NvmlEventSet set) const {
  return Call("nvmlDeviceRegisterEvents", nullptr, device, kNvmlEventXid, set);
}

// The first version fills in a part of the same record.
NvmlResult NvmlLibrary::WaitEvent(NvmlEventSet set, unsigned timeout_ms, NvmlEvent* event) const {
  *event = {};
  return Call("nvmlEventSetWait_v2", "nvmlEventSetWait", set, event, timeout_ms);
}

void NvmlLibrary::FreeEventSet(NvmlEventSet set) const { Call("nvmlEventSetFree", nullptr, set); }

}  // namespace berth::discovery
