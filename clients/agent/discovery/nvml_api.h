// The part of NVIDIA's management library that discovery calls: our own declarations of its public
// interface, so that builds do not need its headers. Layouts must match libnvidia-ml.so.1;
// static_asserts check their sizes.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NVML_API_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NVML_API_H_

namespace berth::discovery {

using NvmlResult = int;
inline constexpr NvmlResult kNvmlSuccess = 0;
inline constexpr NvmlResult kNvmlInvalidArgument = 2;
inline constexpr NvmlResult kNvmlNotSupported = 3;
inline constexpr NvmlResult kNvmlNoPermission = 4;
inline constexpr NvmlResult kNvmlNotFound = 6;
inline constexpr NvmlResult kNvmlInsufficientSize = 7;
inline constexpr NvmlResult kNvmlDriverNotLoaded = 9;
inline constexpr NvmlResult kNvmlTimeout = 10;
inline constexpr NvmlResult kNvmlFunctionNotFound = 13;
inline constexpr NvmlResult kNvmlGpuIsLost = 15;
inline constexpr NvmlResult kNvmlInUse = 19;

using NvmlDevice = struct NvmlDeviceHandle*;
using NvmlEventSet = struct NvmlEventSetHandle*;
using NvmlGpuInstance = struct NvmlGpuInstanceHandle*;
using NvmlComputeInstance = struct NvmlComputeInstanceHandle*;

// nvmlPciInfo_t. Functions of version 2 fill only the fields before bus_id.
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

// nvmlMemory_v2_t: `used` excludes the memory that the driver reserves.
struct NvmlMemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(NvmlMemoryV2) == 40);
inline constexpr unsigned kNvmlMemoryV2Version = sizeof(NvmlMemoryV2) | 2u << 24;

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

// nvmlGpuInstancePlacement_t, in slices of memory.
struct NvmlPlacement {
  unsigned start;
  unsigned size;
};
static_assert(sizeof(NvmlPlacement) == 8);

// nvmlGpuInstanceProfileInfo_v2_t: the first version has no name.
struct NvmlGpuInstanceProfile {
  unsigned version;
  unsigned id;  // for the calls below; not the number used to query it
  unsigned peer_to_peer;
  unsigned slices;  // of compute
  unsigned most_instances;
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
  unsigned long long memory_mebibytes;
  char name[96];
};
static_assert(sizeof(NvmlGpuInstanceProfile) == 152);
inline constexpr unsigned kNvmlGpuInstanceProfileVersion =
    sizeof(NvmlGpuInstanceProfile) | 2u << 24;
// Profiles are queried by number; drivers support fewer or more of them.
inline constexpr unsigned kNvmlGpuInstanceProfiles = 32;

// nvmlComputeInstanceProfileInfo_t
struct NvmlComputeInstanceProfile {
  unsigned id;
  unsigned slices;
  unsigned most_instances;
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
};
static_assert(sizeof(NvmlComputeInstanceProfile) == 36);
inline constexpr unsigned kNvmlComputeInstanceProfiles = 8;
inline constexpr unsigned kNvmlSharedEngines = 0;
inline constexpr unsigned kNvmlMaxInstances = 32;  // of one kind on one GPU; more than any has

struct NvmlUtilization {
  unsigned gpu;     // percent of the time
  unsigned memory;  // percent of the time
};
static_assert(sizeof(NvmlUtilization) == 8);

struct NvmlEvent {
  NvmlDevice device;
  unsigned long long type;
  unsigned long long data;  // for an XID, its number; 999 = unknown
  unsigned gpu_instance;    // version 2 only, which is requested
  unsigned compute_instance;
};
static_assert(sizeof(NvmlEvent) == 32);
inline constexpr unsigned long long kNvmlEventXid = 8;

// nvmlFieldValue_t
struct NvmlField {
  unsigned id;
  unsigned scope;  // for a link, its number
  long long time;
  long long latency;
  int type;
  NvmlResult result;
  union {
    double d;
    unsigned u;
    unsigned long ul;
    unsigned long long ull;
    long long ll;
    int i;
    unsigned short us;
  } value;
};
static_assert(sizeof(NvmlField) == 40);
enum NvmlValueType {
  kNvmlDouble = 0,
  kNvmlUnsigned = 1,
  kNvmlUnsignedLong = 2,
  kNvmlUnsignedLongLong = 3,
  kNvmlLongLong = 4,
  kNvmlInt = 5,
  kNvmlUnsignedShort = 6
};
inline constexpr unsigned kNvmlFieldMemoryTemperature = 82;
inline constexpr unsigned kNvmlFieldLinkReplays = 161;  // of one link, like the next two
inline constexpr unsigned kNvmlFieldLinkRecoveries = 162;
inline constexpr unsigned kNvmlFieldLinkCrc = 163;
inline constexpr unsigned kNvmlFieldRecoveryAction = 230;

// nvmlGpuFabricInfo_t, supported by drivers before 545.
struct NvmlFabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique_id;
  unsigned char state;
};
static_assert(sizeof(NvmlFabricInfo) == 28);

// nvmlGpuFabricInfo_v2_t. The library rejects a version that does not encode the size.
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
// nvmlPageRetirementCause_t
inline constexpr int kNvmlRetiredCorrected = 0;
inline constexpr int kNvmlRetiredUncorrected = 1;
// nvmlNvLinkErrorCounter_t, for drivers without the fields
inline constexpr int kNvmlLinkReplays = 0;
inline constexpr int kNvmlLinkRecoveries = 1;
inline constexpr int kNvmlLinkCrcFlit = 2;
inline constexpr int kNvmlLinkCrcData = 3;
// nvmlClockType_t
inline constexpr int kNvmlClockSm = 1;
inline constexpr int kNvmlClockMemory = 2;

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NVML_API_H_
