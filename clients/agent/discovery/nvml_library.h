// libnvidia-ml.so.1, loaded if present.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NVML_LIBRARY_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NVML_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/agent/discovery/nvml_api.h"

namespace berth::discovery {

inline constexpr char kNvmlLibraryName[] = "libnvidia-ml.so.1";
// What is read at most of a driver, whatever it reports.
inline constexpr unsigned kMaxGpus = 256;
inline constexpr unsigned kMaxMigSlots = 64;

// Every method returns NVML's result, or kNvmlFunctionNotFound if the library is too old to have
// it. Outputs are written only on kNvmlSuccess. Not thread-safe.
class NvmlLibrary {
 public:
  // NOT_FOUND if there is no library of that name or file; FAILED_PRECONDITION if the driver is not
  // loaded; INTERNAL if it is not an NVML library or does not start. The last two have NVML's error
  // text.
  static absl::StatusOr<std::unique_ptr<NvmlLibrary>> Open(const std::string& name);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  std::string ErrorText(NvmlResult result) const;

  NvmlResult DriverVersion(std::string* version) const;
  NvmlResult DeviceCount(unsigned* count) const;
  NvmlResult Device(unsigned index, NvmlDevice* device) const;

  NvmlResult Name(NvmlDevice device, std::string* name) const;
  NvmlResult Uuid(NvmlDevice device, std::string* uuid) const;
  NvmlResult PciInfo(NvmlDevice device, NvmlPciInfo* info) const;
  NvmlResult ComputeCapability(NvmlDevice device, int* major, int* minor) const;
  NvmlResult Memory(NvmlDevice device, NvmlMemory* memory) const;
  // Drivers before 510 do not report reserved memory: then `used` includes it, and *reserved is -1.
  NvmlResult MemoryInUse(NvmlDevice device, NvmlMemory* memory, int64_t* reserved) const;

  NvmlResult LinkState(NvmlDevice device, unsigned link, bool* active) const;
  NvmlResult LinkPeer(NvmlDevice device, unsigned link, NvmlPciInfo* peer) const;
  NvmlResult LinkPeerType(NvmlDevice device, unsigned link, unsigned* type) const;
  // Falls back to the first version on drivers without the second.
  NvmlResult Fabric(NvmlDevice device, NvmlFabricInfo* info) const;

  NvmlResult MigMode(NvmlDevice device, bool* enabled) const;
  NvmlResult MigSlots(NvmlDevice device, unsigned* count) const;
  NvmlResult MigDevice(NvmlDevice device, unsigned slot, NvmlDevice* mig) const;
  NvmlResult MigIds(NvmlDevice mig, unsigned* gpu_instance, unsigned* compute_instance) const;
  NvmlResult Attributes(NvmlDevice mig, NvmlAttributes* attributes) const;
  // The number of compute processes that use it.
  NvmlResult ComputeProcesses(NvmlDevice mig, unsigned* count) const;

  // Dividing a GPU (MIG). Profiles are numbered below kNvmlGpuInstanceProfiles; the GPU returns
  // kNvmlNotSupported or kNvmlInvalidArgument for profiles that it does not have.
  NvmlResult InstanceProfile(NvmlDevice device, unsigned number,
                             NvmlGpuInstanceProfile* profile) const;
  NvmlResult Placements(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                        std::vector<NvmlPlacement>* placements) const;
  NvmlResult Instances(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                       std::vector<NvmlGpuInstance>* instances) const;
  NvmlResult MakeInstance(NvmlDevice device, const NvmlGpuInstanceProfile& profile,
                          NvmlPlacement placement, NvmlGpuInstance* instance) const;
  NvmlResult DestroyInstance(NvmlGpuInstance instance) const;
  // The same for compute instances. A GPU instance needs one to run programs.
  NvmlResult ComputeProfile(NvmlGpuInstance instance, unsigned number,
                            NvmlComputeInstanceProfile* profile) const;
  NvmlResult ComputeInstances(NvmlGpuInstance instance, const NvmlComputeInstanceProfile& profile,
                              std::vector<NvmlComputeInstance>* instances) const;
  NvmlResult MakeComputeInstance(NvmlGpuInstance instance,
                                 const NvmlComputeInstanceProfile& profile) const;
  NvmlResult DestroyComputeInstance(NvmlComputeInstance instance) const;

  NvmlResult EccMode(NvmlDevice device, bool* enabled) const;
  NvmlResult EccErrors(NvmlDevice device, int type, unsigned long long* count) const;
  // Rows (or, on GPUs without row remapping, pages) that are pending a reset.
  NvmlResult RemapPending(NvmlDevice device, bool* pending) const;

  struct Remapped {
    unsigned corrected = 0, uncorrected = 0;  // rows replaced
    unsigned pending = 0, failed = 0;         // 1: some await a reset; one could not be replaced
  };
  NvmlResult RemappedRows(NvmlDevice device, Remapped* rows) const;
  NvmlResult RetiredPages(NvmlDevice device, int cause, unsigned* count) const;
  NvmlResult RetiredPending(NvmlDevice device, bool* pending) const;
  NvmlResult Utilization(NvmlDevice device, NvmlUtilization* utilization) const;
  NvmlResult Encoder(NvmlDevice device, unsigned* percent) const;
  NvmlResult Decoder(NvmlDevice device, unsigned* percent) const;
  NvmlResult Temperature(NvmlDevice device, unsigned* celsius) const;
  NvmlResult Power(NvmlDevice device, unsigned* milliwatts) const;
  NvmlResult Energy(NvmlDevice device, unsigned long long* millijoules) const;
  NvmlResult Clock(NvmlDevice device, int type, unsigned* mhz) const;
  NvmlResult ThrottleReasons(NvmlDevice device, unsigned long long* reasons) const;
  NvmlResult PcieReplays(NvmlDevice device, unsigned* replays) const;
  NvmlResult LinkErrors(NvmlDevice device, unsigned link, int counter,
                        unsigned long long* count) const;
  NvmlResult Field(NvmlDevice device, unsigned id, unsigned scope, int64_t* value) const;

  NvmlResult MakeEventSet(NvmlEventSet* set) const;
  NvmlResult RegisterXids(NvmlDevice device, NvmlEventSet set) const;
  // kNvmlTimeout if there was none.
  NvmlResult WaitEvent(NvmlEventSet set, unsigned timeout_ms, NvmlEvent* event) const;
  void FreeEventSet(NvmlEventSet set) const;

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  // The function with the first name that the library has, or null.
  template <class Function>
  Function Find(const char* name, const char* older = nullptr) const;
  // Calls it if it exists.
  template <class... Args>
  NvmlResult Call(const char* name, const char* older, Args... args) const;

  void* handle_;
  bool started_ = false;
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NVML_LIBRARY_H_
