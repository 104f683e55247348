// A libnvidia-ml.so with three GPUs, for tests. BERTH_FAKE_NVML selects a failure:
//   ""          none: GPUs 0 and 1 are linked by 4 NVLinks, and each by 2 to a hidden switch;
//               GPU 2 has two MIG instances
//   "init"      nvmlInit fails     "count"  counting fails
//   "handle"    GPU 1 cannot be opened, like a GPU that fell off the bus
//   "lost"      GPU 1 opens, and is lost from then on
//   "a100"      the GPUs are NVIDIA A100-SXM4-80GB
// The file that BERTH_FAKE_NVML_STATE names changes the driver while it runs. Its lines are "WHAT
// GPU VALUE", and the last one for a GPU counts:
//   ecc, pending, failed, action, replays, crc    values that the GPU reports
//   lost 1 1       is lost from now on            gone 1 1    NVML no longer reports it
//   mig 1 1        is divided like GPU 2; mig 2 0: no longer
//   hang 0 1       queries of it hang             xid 0 79    one event for each such line
//   busy 2 1       processes use its instances    stuck 2 1   they cannot be destroyed
//   room 2 3       at most this many can be made  slow 2 500  making one takes this many ms
// With BERTH_FAKE_NVML_OLD it is a driver from ten years ago: no fabric, no MIG, no types of link
// peers, PCI records of version 2.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "clients/agent/discovery/nvml_api.h"
#include "tests/unit/discovery/fake/fake_mig.h"

using berth::discovery::kNvmlEventXid;
using berth::discovery::kNvmlGpuIsLost;
using berth::discovery::kNvmlInsufficientSize;
using berth::discovery::kNvmlInUse;
using berth::discovery::kNvmlInvalidArgument;
using berth::discovery::kNvmlMemoryV2Version;
using berth::discovery::kNvmlNotFound;
using berth::discovery::kNvmlNotSupported;
using berth::discovery::kNvmlSuccess;
using berth::discovery::kNvmlTimeout;
using berth::discovery::kNvmlUnsignedLongLong;
using berth::discovery::NvmlAttributes;
using berth::discovery::NvmlComputeInstanceProfile;
using berth::discovery::NvmlEvent;
using berth::discovery::NvmlFabricInfo;
using berth::discovery::NvmlFabricInfoV2;
using berth::discovery::NvmlField;
using berth::discovery::NvmlGpuInstanceProfile;
using berth::discovery::NvmlMemory;
using berth::discovery::NvmlMemoryV2;
using berth::discovery::NvmlPciInfo;
using berth::discovery::NvmlPlacement;
using berth::discovery::NvmlUtilization;

namespace {

constexpr unsigned kGpus = 3;
constexpr unsigned kLinks = 6;

bool Is(const char* name) {
  const char* selected = std::getenv("BERTH_FAKE_NVML");
  return selected != nullptr && std::strcmp(selected, name) == 0;
}

// Handles are numbers: GPUs from 1, MIG instances of GPU 2 from 100, those of other GPUs above.
using Handle = size_t;
unsigned GpuOf(Handle handle) { return static_cast<unsigned>(handle - 1); }
bool IsMig(Handle handle) { return handle >= 100; }

// The value in the state file; `otherwise` if it has none.
long long StateValue(const char* what, unsigned gpu, long long otherwise) {
  const char* path = std::getenv("BERTH_FAKE_NVML_STATE");
  if (path == nullptr) return otherwise;
  std::ifstream file(path);
  std::string name;
  unsigned of = 0;
  for (long long value = 0; file >> name >> of >> value;) {
    if (name == what && of == gpu) otherwise = value;
  }
  return otherwise;
}
#ifndef BERTH_FAKE_NVML_OLD
// The XID in the `nth` such line, from 0. False: there are fewer lines.
bool StateXid(size_t nth, unsigned* gpu, unsigned long long* xid) {
  const char* path = std::getenv("BERTH_FAKE_NVML_STATE");
  if (path == nullptr) return false;
  std::ifstream file(path);
  std::string name;
  size_t seen = 0;
  while (file >> name >> *gpu >> *xid) {
    if (name == "xid" && seen++ == nth) return true;
  }
  return false;
}
#endif

bool Lost(Handle handle) {
  return (Is("lost") && handle == 2) ||
         (!IsMig(handle) && StateValue("lost", GpuOf(handle), 0) != 0);
}
bool Divided(Handle handle) {
  return StateValue("mig", GpuOf(handle), GpuOf(handle) == 2 ? 1 : 0) != 0;
}

std::string ProfileOf(Handle mig) {
  if (mig < fake_mig::kFirstHandle) return "3g.40gb";
  fake_mig::Layout layout(fake_mig::GpuOfHandle(mig));
  const fake_mig::Instance* one = layout.Find(fake_mig::IdOf(mig));
  return one == nullptr ? "" : one->profile;
}

void Fill(unsigned bus, NvmlPciInfo* info) {
  std::snprintf(info->bus_id_legacy, sizeof info->bus_id_legacy, "0000:%02X:00.0", bus);
  info->domain = 0;
  info->bus = bus;
  info->device = 0;
  info->device_and_vendor = 0x233010de;
#ifndef BERTH_FAKE_NVML_OLD
  std::snprintf(info->bus_id, sizeof info->bus_id, "00000000:%02X:00.0", bus);
#endif
}

int Write(const std::string& text, char* buffer, unsigned length) {
  if (length <= text.size()) return 7;  // insufficient size
  std::strcpy(buffer, text.c_str());
  return kNvmlSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return Is("init") ? 9 : kNvmlSuccess; }
int nvmlShutdown() { return kNvmlSuccess; }
const char* nvmlErrorString(int result) {
  return result == 9    ? "Driver Not Loaded"
         : result == 15 ? "GPU is lost"
         : result == 19 ? "In use by another client"
         : result == 23 ? "Insufficient Resources"
                        : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* buffer, unsigned length) {
  return Write("555.42.06", buffer, length);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return Is("count") ? 999 : kNvmlSuccess;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* device) {
  if (Is("handle") && index == 1) return kNvmlGpuIsLost;
  if (StateValue("gone", index, 0) != 0) return kNvmlGpuIsLost;
  *device = index + 1;
  return index < kGpus ? kNvmlSuccess : kNvmlInvalidArgument;
}
int nvmlDeviceGetName(Handle device, char* buffer, unsigned length) {
  if (Lost(device)) return kNvmlGpuIsLost;
  std::string name = Is("a100") ? "NVIDIA A100-SXM4-80GB" : "NVIDIA Fake";
  if (IsMig(device)) name += " MIG " + ProfileOf(device);
  return Write(name, buffer, length);
}
int nvmlDeviceGetUUID(Handle device, char* buffer, unsigned length) {
  if (Lost(device)) return kNvmlGpuIsLost;
  return Write((IsMig(device) ? "MIG-fake-" : "GPU-fake-") + std::to_string(device), buffer,
               length);
}
#ifdef BERTH_FAKE_NVML_OLD
#define nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v2
#else
#define nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v3
#endif
int nvmlDeviceGetPciInfo(Handle device, NvmlPciInfo* info) {
  Fill(0x10 + GpuOf(device), info);
  return kNvmlSuccess;
}
int nvmlDeviceGetMemoryInfo(Handle device, NvmlMemory* memory) {
  if (Lost(device)) return kNvmlGpuIsLost;
  while (StateValue("hang", 0, 0) != 0) usleep(10000);
  *memory = {80ull << 30, 79ull << 30, 1ull << 30};
  return kNvmlSuccess;
}
#ifndef BERTH_FAKE_NVML_OLD
int nvmlDeviceGetMemoryInfo_v2(Handle device, NvmlMemoryV2* memory) {
  if (memory->version != kNvmlMemoryV2Version) return kNvmlInvalidArgument;
  NvmlMemory plain = {};
  const int result = nvmlDeviceGetMemoryInfo(device, &plain);
  if (result != kNvmlSuccess) return result;
  const unsigned long long reserved = 512ull << 20;
  *memory = {memory->version, plain.total, reserved, plain.free, plain.used - reserved};
  return kNvmlSuccess;
}
int nvmlDeviceGetEncoderUtilization(Handle, unsigned* percent, unsigned* period_us) {
  *percent = 12;
  *period_us = 167000;
  return kNvmlSuccess;
}
int nvmlDeviceGetCudaComputeCapability(Handle device, int* major, int* minor) {
  if (Lost(device)) return kNvmlGpuIsLost;
  if (GpuOf(device) == 2) return kNvmlNotSupported;
  *major = 9;
  *minor = 0;
  return kNvmlSuccess;
}
#endif
int nvmlDeviceGetNvLinkState(Handle device, unsigned link, unsigned* active) {
  if (link >= kLinks) return kNvmlInvalidArgument;
  if (GpuOf(device) == 2) return kNvmlNotSupported;
  if (Lost(device)) return kNvmlGpuIsLost;
  *active = 1;
  return kNvmlSuccess;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Handle device, unsigned link, NvmlPciInfo* info) {
  Fill(GpuOf(device) == 0 ? 0x11 : 0x10, info);
  if (link >= 4) info->domain = info->bus = info->device = 0xffffffff;
  return kNvmlSuccess;
}
int nvmlDeviceGetEccMode(Handle device, unsigned* current, unsigned* pending) {
  *current = *pending = GpuOf(device) != 2;
  return Lost(device) ? kNvmlGpuIsLost : kNvmlSuccess;
}
int nvmlDeviceGetTotalEccErrors(Handle device, int type, int, unsigned long long* count) {
  *count = type == 0 ? 5 : static_cast<unsigned long long>(StateValue("ecc", GpuOf(device), 1));
  return kNvmlSuccess;
}
int nvmlDeviceGetTemperature(Handle device, int, unsigned* celsius) {
  *celsius = 40 + GpuOf(device);
  return Lost(device) ? kNvmlGpuIsLost : kNvmlSuccess;
}
int nvmlDeviceGetPowerUsage(Handle, unsigned* milliwatts) {
  *milliwatts = 71500;
  return kNvmlSuccess;
}
int nvmlDeviceGetUtilizationRates(Handle device, NvmlUtilization* busy) {
  *busy = {97, 33};
  return Divided(device) ? kNvmlNotSupported : kNvmlSuccess;
}

#ifndef BERTH_FAKE_NVML_OLD
int nvmlDeviceGetNvLinkRemoteDeviceType(Handle, unsigned link, unsigned* type) {
  *type = link >= 4 ? 2 : 0;
  return kNvmlSuccess;
}
int nvmlDeviceGetGpuFabricInfoV(Handle, NvmlFabricInfoV2* info) {
  if (info->version != 0x02000024) return 25;  // argument version mismatch
  for (unsigned i = 0; i < 16; ++i) info->cluster_uuid[i] = static_cast<unsigned char>(i + 1);
  info->status = 0;
  info->clique_id = 7;
  info->state = 3;
  return kNvmlSuccess;
}
int nvmlDeviceGetMigMode(Handle device, unsigned* current, unsigned* pending) {
  *current = *pending = Divided(device);
  return kNvmlSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(Handle, unsigned* count) {
  *count = 7;
  return kNvmlSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Handle device, unsigned slot, Handle* mig) {
  const fake_mig::Layout layout(GpuOf(device));
  for (const fake_mig::Instance& one : layout.instances) {
    if (!one.compute || slot-- > 0) continue;
    *mig = fake_mig::HandleOf(GpuOf(device), one.id);
    return kNvmlSuccess;
  }
  if (layout.there() || (slot != 0 && slot != 3)) return kNvmlNotFound;
  *mig = (GpuOf(device) == 2 ? 100 : 100 * (device + 1)) + slot;
  return kNvmlSuccess;
}
int nvmlDeviceGetGpuInstanceId(Handle mig, unsigned* id) {
  const bool made = mig >= fake_mig::kFirstHandle;
  *id = static_cast<unsigned>(made ? fake_mig::IdOf(mig) : mig % 100 + 1);
  return kNvmlSuccess;
}
int nvmlDeviceGetComputeInstanceId(Handle, unsigned* id) {
  *id = 0;
  return kNvmlSuccess;
}
int nvmlDeviceGetAttributes_v2(Handle mig, NvmlAttributes* attributes) {
  *attributes = {};
  attributes->gpu_instance_slices = attributes->compute_instance_slices = 3;
  attributes->memory_mebibytes = 40448;
  if (mig < fake_mig::kFirstHandle) return kNvmlSuccess;
  const fake_mig::Profile* profile = fake_mig::ByName(ProfileOf(mig));
  if (profile == nullptr) return kNvmlInvalidArgument;
  attributes->gpu_instance_slices = attributes->compute_instance_slices = profile->compute;
  attributes->memory_mebibytes = profile->mebibytes;
  return kNvmlSuccess;
}
int nvmlDeviceGetComputeRunningProcesses_v3(Handle mig, unsigned* count, void*) {
  const unsigned gpu = mig < fake_mig::kFirstHandle ? 2 : fake_mig::GpuOfHandle(mig);
  *count = static_cast<unsigned>(StateValue("busy", gpu, 0));
  return *count == 0 ? kNvmlSuccess : kNvmlInsufficientSize;
}
int nvmlDeviceGetGpuInstanceProfileInfoV(Handle, unsigned number, NvmlGpuInstanceProfile* info) {
  if (info->version != 0x02000098) return 25;  // argument version mismatch
  const fake_mig::Profile* profile = fake_mig::ByNumber(number);
  if (profile == nullptr) return number < 10 ? kNvmlNotSupported : kNvmlInvalidArgument;
  info->id = profile->id;
  info->slices = profile->compute;
  info->most_instances = profile->most;
  info->memory_mebibytes = profile->mebibytes;
  std::snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
  return kNvmlSuccess;
}
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(Handle, unsigned id, NvmlPlacement* placements,
                                                  unsigned* count) {
  const fake_mig::Profile* profile = fake_mig::ById(id);
  if (profile == nullptr) return kNvmlInvalidArgument;
  if (*count < profile->starts.size()) return kNvmlInsufficientSize;
  *count = 0;
  for (const unsigned start : profile->starts) placements[(*count)++] = {start, profile->memory};
  return kNvmlSuccess;
}
int nvmlDeviceGetGpuInstances(Handle device, unsigned id, Handle* instances, unsigned* count) {
  const fake_mig::Profile* profile = fake_mig::ById(id);
  if (profile == nullptr) return kNvmlInvalidArgument;
  *count = 0;
  for (const fake_mig::Instance& one : fake_mig::Layout(GpuOf(device)).instances) {
    if (one.profile == profile->name)
      instances[(*count)++] = fake_mig::HandleOf(GpuOf(device), one.id);
  }
  return kNvmlSuccess;
}
int nvmlDeviceCreateGpuInstanceWithPlacement(Handle device, unsigned id, const NvmlPlacement* place,
                                             Handle* instance) {
  const unsigned gpu = GpuOf(device);
  usleep(static_cast<unsigned>(StateValue("slow", gpu, 0)) * 1000);
  const fake_mig::Profile* profile = fake_mig::ById(id);
  fake_mig::Layout layout(gpu);
  if (profile == nullptr || place->size != profile->memory) return kNvmlInvalidArgument;
  if (layout.instances.size() >= static_cast<size_t>(StateValue("room", gpu, 99))) return 23;
  if (!layout.Fits(*profile, place->start)) return 23;  // insufficient resources
  const size_t made = layout.NextId();
  layout.instances.push_back({profile->name, place->start, made, false});
  layout.Save();
  *instance = fake_mig::HandleOf(gpu, made);
  return kNvmlSuccess;
}
int nvmlGpuInstanceDestroy(Handle instance) {
  fake_mig::Layout layout(fake_mig::GpuOfHandle(instance));
  const fake_mig::Instance* one = layout.Find(fake_mig::IdOf(instance));
  if (one == nullptr) return kNvmlInvalidArgument;
  if (one->compute) return kNvmlInUse;
  layout.instances.erase(layout.instances.begin() + (one - layout.instances.data()));
  layout.Save();
  return kNvmlSuccess;
}
int nvmlGpuInstanceGetComputeInstanceProfileInfo(Handle instance, unsigned number, unsigned,
                                                 NvmlComputeInstanceProfile* info) {
  const fake_mig::Profile* whole = fake_mig::ByName(ProfileOf(instance));
  const fake_mig::Profile* profile = fake_mig::ByNumber(number);
  if (whole == nullptr || profile == nullptr) return kNvmlInvalidArgument;
  if (profile->compute > whole->compute) return kNvmlNotSupported;
  info->id = number;
  info->slices = profile->compute;
  return kNvmlSuccess;
}
// A compute instance has the handle of its GPU instance, and always its full size.
int nvmlGpuInstanceGetComputeInstances(Handle instance, unsigned number, Handle* parts,
                                       unsigned* count) {
  fake_mig::Layout layout(fake_mig::GpuOfHandle(instance));
  const fake_mig::Instance* one = layout.Find(fake_mig::IdOf(instance));
  if (one == nullptr) return kNvmlInvalidArgument;
  const fake_mig::Profile* profile = fake_mig::ByNumber(number);
  const bool whole = profile != nullptr && number < 7 &&
                     profile->compute == fake_mig::ByName(one->profile)->compute;
  *count = whole && one->compute ? 1 : 0;
  if (*count == 1) parts[0] = instance;
  return kNvmlSuccess;
}
int nvmlGpuInstanceCreateComputeInstance(Handle instance, unsigned number, Handle* part) {
  fake_mig::Layout layout(fake_mig::GpuOfHandle(instance));
  fake_mig::Instance* one = layout.Find(fake_mig::IdOf(instance));
  const fake_mig::Profile* profile = fake_mig::ByNumber(number);
  if (one == nullptr || profile == nullptr) return kNvmlInvalidArgument;
  if (one->compute || profile->compute != fake_mig::ByName(one->profile)->compute) return 23;
  one->compute = true;
  layout.Save();
  *part = instance;
  return kNvmlSuccess;
}
int nvmlComputeInstanceDestroy(Handle part) {
  fake_mig::Layout layout(fake_mig::GpuOfHandle(part));
  fake_mig::Instance* one = layout.Find(fake_mig::IdOf(part));
  if (one == nullptr) return kNvmlInvalidArgument;
  if (StateValue("stuck", fake_mig::GpuOfHandle(part), 0) != 0) return kNvmlInUse;
  one->compute = false;
  layout.Save();
  return kNvmlSuccess;
}
int nvmlDeviceGetRemappedRows(Handle device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = 2;
  *uncorrected = 0;
  *failed = static_cast<unsigned>(StateValue("failed", GpuOf(device), 0));
  *pending = static_cast<unsigned>(StateValue("pending", GpuOf(device), GpuOf(device) == 1));
  return kNvmlSuccess;
}
int nvmlDeviceGetClockInfo(Handle, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1980 : 2619;
  return kNvmlSuccess;
}
int nvmlDeviceGetFieldValues(Handle device, int count, NvmlField* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].type = kNvmlUnsignedLongLong;
    fields[i].result = kNvmlSuccess;
    const char* what = fields[i].id == 161   ? "replays"
                       : fields[i].id == 162 ? "recoveries"
                       : fields[i].id == 163 ? "crc"
                       : fields[i].id == 230 ? "action"
                                             : nullptr;
    if (what == nullptr) fields[i].result = kNvmlNotSupported;
    if (what != nullptr)
      fields[i].value.ull = static_cast<unsigned long long>(StateValue(what, GpuOf(device), 0));
  }
  return kNvmlSuccess;
}
int nvmlEventSetCreate(Handle* set) {
  *set = 1;
  return kNvmlSuccess;
}
int nvmlEventSetFree(Handle) { return kNvmlSuccess; }
int nvmlDeviceRegisterEvents(Handle, unsigned long long types, Handle) {
  return types == kNvmlEventXid ? kNvmlSuccess : kNvmlInvalidArgument;
}
int nvmlEventSetWait_v2(Handle, NvmlEvent* event, unsigned timeout_ms) {
  static size_t reported = 0;
  unsigned gpu = 0;
  if (!StateXid(reported, &gpu, &event->data)) {
    usleep(std::min(timeout_ms, 20u) * 1000);
    return kNvmlTimeout;
  }
  ++reported;
  event->device = reinterpret_cast<berth::discovery::NvmlDevice>(Handle{gpu} + 1);
  event->type = kNvmlEventXid;
  return kNvmlSuccess;
}
#else
int nvmlDeviceGetRetiredPages(Handle device, int cause, unsigned* count, unsigned long long*) {
  *count = cause == 1 ? 3 + GpuOf(device) : 0;
  return *count == 0 ? kNvmlSuccess : 7;
}
int nvmlDeviceGetRetiredPagesPendingStatus(Handle device, unsigned* pending) {
  *pending = GpuOf(device) == 1;
  return kNvmlSuccess;
}
#endif

}  // extern "C"
