// A libnvidia-ml.so of three GPUs, for tests. BERTH_FAKE_NVML picks what goes wrong:
//   ""          nothing: GPU 0 and 1 linked by 4 NVLinks and each by 2 to a switch that is hidden;
//               GPU 2 has two MIG instances
//   "init"      nvmlInit fails     "count"  counting fails
//   "handle"    GPU 1 cannot be opened, as a GPU that fell off the bus
//   "lost"      GPU 1 opens, and is lost from then on
// Compiled with BERTH_FAKE_NVML_OLD it is a driver of ten years ago: no fabric, no MIG, no types of
// link peers, PCI records of version 2.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "clients/discovery/nvml_api.h"

using berth::discovery::kNvmlGpuIsLost;
using berth::discovery::kNvmlInvalidArgument;
using berth::discovery::kNvmlNotFound;
using berth::discovery::kNvmlNotSupported;
using berth::discovery::kNvmlSuccess;
using berth::discovery::NvmlAttributes;
using berth::discovery::NvmlFabricInfo;
using berth::discovery::NvmlFabricInfoV2;
using berth::discovery::NvmlMemory;
using berth::discovery::NvmlPciInfo;

namespace {

constexpr unsigned kGpus = 3;
constexpr unsigned kLinks = 6;

bool Is(const char* name) {
  const char* wish = std::getenv("BERTH_FAKE_NVML");
  return wish != nullptr && std::strcmp(wish, name) == 0;
}

// Handles are numbers: GPUs from 1, MIG instances from 100.
using Handle = size_t;
unsigned GpuOf(Handle handle) { return static_cast<unsigned>(handle - 1); }
bool IsMig(Handle handle) { return handle >= 100; }
bool Lost(Handle handle) { return Is("lost") && handle == 2; }

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
  return result == 9 ? "Driver Not Loaded" : result == 15 ? "GPU is lost" : "Unknown Error";
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
  *device = index + 1;
  return index < kGpus ? kNvmlSuccess : kNvmlInvalidArgument;
}
int nvmlDeviceGetName(Handle device, char* buffer, unsigned length) {
  if (Lost(device)) return kNvmlGpuIsLost;
  return Write(IsMig(device) ? "NVIDIA Fake MIG 3g.40gb" : "NVIDIA Fake", buffer, length);
}
int nvmlDeviceGetUUID(Handle device, char* buffer, unsigned length) {
  if (Lost(device)) return kNvmlGpuIsLost;
  return Write((IsMig(device) ? "MIG-fake-" : "GPU-fake-") + std::to_string(device), buffer,
               length);
}
#ifdef BERTH_FAKE_NVML_OLD
int nvmlDeviceGetPciInfo_v2(Handle device, NvmlPciInfo* info) {
#else
int nvmlDeviceGetPciInfo_v3(Handle device, NvmlPciInfo* info) {
#endif
  Fill(0x10 + GpuOf(device), info);
  return kNvmlSuccess;
}
int nvmlDeviceGetMemoryInfo(Handle device, NvmlMemory* memory) {
  if (Lost(device)) return kNvmlGpuIsLost;
  *memory = {80ull << 30, 79ull << 30, 1ull << 30};
  return kNvmlSuccess;
}
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
int nvmlDeviceGetTotalEccErrors(Handle, int type, int, unsigned long long* count) {
  *count = type == 0 ? 5 : 1;
  return kNvmlSuccess;
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
  *current = *pending = GpuOf(device) == 2;
  return kNvmlSuccess;
}
int nvmlDeviceGetMaxMigDeviceCount(Handle, unsigned* count) {
  *count = 7;
  return kNvmlSuccess;
}
int nvmlDeviceGetMigDeviceHandleByIndex(Handle, unsigned slot, Handle* mig) {
  if (slot != 0 && slot != 3) return kNvmlNotFound;
  *mig = 100 + slot;
  return kNvmlSuccess;
}
int nvmlDeviceGetGpuInstanceId(Handle mig, unsigned* id) {
  *id = static_cast<unsigned>(mig - 99);
  return kNvmlSuccess;
}
int nvmlDeviceGetComputeInstanceId(Handle, unsigned* id) {
  *id = 0;
  return kNvmlSuccess;
}
int nvmlDeviceGetAttributes_v2(Handle, NvmlAttributes* attributes) {
  *attributes = {};
  attributes->gpu_instance_slices = attributes->compute_instance_slices = 3;
  attributes->memory_mebibytes = 40448;
  return kNvmlSuccess;
}
int nvmlDeviceGetRemappedRows(Handle device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  *corrected = *uncorrected = *failed = 0;
  *pending = GpuOf(device) == 1;
  return kNvmlSuccess;
}
#endif

}  // extern "C"
