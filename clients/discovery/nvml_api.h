// The part of NVIDIA's management library that discovery calls: our own declarations of its public
// interface, so that no build needs its headers. Layouts must match libnvidia-ml.so.1; the
// static_asserts hold their sizes.
#ifndef BERTH_CLIENTS_DISCOVERY_NVML_API_H_
#define BERTH_CLIENTS_DISCOVERY_NVML_API_H_

namespace berth::discovery {

using NvmlResult = int;
inline constexpr NvmlResult kNvmlSuccess = 0;
inline constexpr NvmlResult kNvmlInvalidArgument = 2;
inline constexpr NvmlResult kNvmlNotSupported = 3;
inline constexpr NvmlResult kNvmlNoPermission = 4;
inline constexpr NvmlResult kNvmlNotFound = 6;
inline constexpr NvmlResult kNvmlDriverNotLoaded = 9;
inline constexpr NvmlResult kNvmlFunctionNotFound = 13;
inline constexpr NvmlResult kNvmlGpuIsLost = 15;

using NvmlDevice = struct NvmlDeviceHandle*;

// nvmlPciInfo_t. Functions of version 2 fill only what stands before bus_id.
struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_and_vendor;  // device << 16 | vendor
  unsigned subsystem;
  char bus_id[32];
};
static_assert(sizeof(NvmlPciInfo) == 68);

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(NvmlMemory) == 24);

struct NvmlAttributes {
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
  unsigned gpu_instance_slices;
  unsigned compute_instance_slices;
  unsigned long long memory_mebibytes;
};
static_assert(sizeof(NvmlAttributes) == 40);

// nvmlGpuFabricInfo_t, which drivers before 545 answer.
struct NvmlFabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(NvmlFabricInfo) == 28);

// nvmlGpuFabricInfo_v2_t. The library refuses a version that does not hold the size.
struct NvmlFabricInfoV2 {
  unsigned version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(NvmlFabricInfoV2) == 36);
inline constexpr unsigned kNvmlFabricInfoV2Version = sizeof(NvmlFabricInfoV2) | 2u << 24;

inline constexpr unsigned char kNvmlFabricNotSupported = 0;
inline constexpr unsigned char kNvmlFabricNotStarted = 1;
inline constexpr unsigned char kNvmlFabricInProgress = 2;
inline constexpr unsigned char kNvmlFabricCompleted = 3;

inline constexpr unsigned kNvmlMaxLinks = 36;
inline constexpr unsigned kNvmlNameBytes = 96;
inline constexpr unsigned kNvmlVersionBytes = 80;
// nvmlIntNvLinkDeviceType_t
inline constexpr unsigned kNvmlRemoteGpu = 0;
inline constexpr unsigned kNvmlRemoteCpu = 1;
inline constexpr unsigned kNvmlRemoteSwitch = 2;
// nvmlMemoryErrorType_t, nvmlEccCounterType_t
inline constexpr int kNvmlCorrected = 0;
inline constexpr int kNvmlUncorrected = 1;
inline constexpr int kNvmlVolatile = 0;

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_DISCOVERY_NVML_API_H_
