#include "clients/agent/discovery/nvml_watch.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "clients/agent/discovery/nvml_join.h"

namespace berth::discovery {
namespace {

constexpr size_t kMaxXids = 64;  // per GPU between two reports; later ones are dropped

template <class T>
int64_t Bounded(T value) {
  return static_cast<int64_t>(
      std::min<unsigned long long>(value, std::numeric_limits<int64_t>::max()));
}

}  // namespace

NvmlWatch::NvmlWatch(const NvmlLibrary& nvml) : nvml_(nvml) {
  if (nvml_.MakeEventSet(&events_) != kNvmlSuccess) events_ = nullptr;
  unsigned count = 0;
  if (nvml_.DeviceCount(&count) != kNvmlSuccess) return;
  for (unsigned i = 0; i < std::min(count, kMaxGpus); ++i) Add(i);
}

NvmlWatch::~NvmlWatch() {
  if (events_ != nullptr) nvml_.FreeEventSet(events_);
}

// A GPU without a UUID cannot be a device of the node: discovery reports that.
void NvmlWatch::Add(unsigned index) {
  Watched watched;
  NvmlPciInfo info = {};
  GpuSample& fixed = watched.fixed;
  if (nvml_.Device(index, &watched.device) != kNvmlSuccess) return;
  if (nvml_.Uuid(watched.device, &fixed.uuid) != kNvmlSuccess) return;
  fixed.index = static_cast<int32_t>(index);
  fixed.kind = "gpu";
  (void)nvml_.Name(watched.device, &fixed.model);
  if (nvml_.PciInfo(watched.device, &info) == kNvmlSuccess) fixed.pci = AddressOf(info);
  if (events_ != nullptr && nvml_.RegisterXids(watched.device, events_) == kNvmlSuccess)
    told_ = true;
  watched_.push_back(std::move(watched));
}

bool NvmlWatch::Wait(absl::Duration timeout) {
  if (!told_) return false;
  NvmlEvent event;
  const auto ms = static_cast<unsigned>(absl::ToInt64Milliseconds(timeout));
  const NvmlResult result = nvml_.WaitEvent(events_, ms, &event);
  if (result == kNvmlTimeout) return true;
  if (result != kNvmlSuccess) return false;  // returns at once, repeatedly: a lost GPU does this
  for (Watched& watched : watched_) {
    if (watched.device != event.device || event.type != kNvmlEventXid) continue;
    if (watched.xids.size() < kMaxXids) watched.xids.push_back(Bounded(event.data));
  }
  return true;
}

GpuReport NvmlWatch::Read() {
  GpuReport report;
  (void)nvml_.DriverVersion(&report.driver);
  report.xids_supported = told_;
  for (Watched& watched : watched_) {
    GpuSample sample = ReadGpu(watched);
    sample.xids = std::exchange(watched.xids, {});
    report.gpus.push_back(std::move(sample));
    ReadInstances(watched, &report.gpus);
  }
  return report;
}

GpuSample NvmlWatch::ReadGpu(const Watched& watched) const {
  GpuSample sample = watched.fixed;
  ReadLoad(watched.device, &sample);
  ReadErrors(watched.device, &sample);
  ReadLinks(watched.device, &sample);
  return sample;
}

// If a GPU falls off the bus, each call returns this. `value` is a reference: the call that gives
// the result writes it in the same expression.
template <class T>
void NvmlWatch::Keep(NvmlResult result, const T& value, int64_t* to, GpuSample* sample) const {
  if (result == kNvmlGpuIsLost) sample->problem = nvml_.ErrorText(result);
  if (result == kNvmlSuccess) *to = Bounded(value);
}

void NvmlWatch::ReadLoad(NvmlDevice device, GpuSample* sample) const {
  NvmlMemory memory = {};
  NvmlUtilization busy = {};
  unsigned small = 0;
  unsigned long long large = 0;
  NvmlResult result = nvml_.MemoryInUse(device, &memory, &sample->memory_reserved_bytes);
  Keep(result, memory.used, &sample->memory_used_bytes, sample);
  Keep(result, memory.free, &sample->memory_free_bytes, sample);
  result = nvml_.Utilization(device, &busy);
  Keep(result, busy.gpu, &sample->gpu_percent, sample);
  Keep(result, busy.memory, &sample->memory_percent, sample);
  Keep(nvml_.Encoder(device, &small), small, &sample->encoder_percent, sample);
  Keep(nvml_.Decoder(device, &small), small, &sample->decoder_percent, sample);
  Keep(nvml_.Temperature(device, &small), small, &sample->celsius, sample);
  (void)nvml_.Field(device, kNvmlFieldMemoryTemperature, 0, &sample->memory_celsius);
  Keep(nvml_.Power(device, &small), small, &sample->milliwatts, sample);
  Keep(nvml_.Energy(device, &large), large, &sample->millijoules, sample);
  Keep(nvml_.Clock(device, kNvmlClockSm, &small), small, &sample->sm_mhz, sample);
  Keep(nvml_.Clock(device, kNvmlClockMemory, &small), small, &sample->memory_mhz, sample);
  Keep(nvml_.ThrottleReasons(device, &large), large, &sample->throttle_reasons, sample);
  Keep(nvml_.PcieReplays(device, &small), small, &sample->pcie_replays, sample);
}

void NvmlWatch::ReadErrors(NvmlDevice device, GpuSample* sample) const {
  bool ecc = false;
  bool pending = false;
  unsigned pages = 0;
  unsigned long long count = 0;
  NvmlLibrary::Remapped rows;
  if (nvml_.EccMode(device, &ecc) == kNvmlSuccess && ecc) {
    Keep(nvml_.EccErrors(device, kNvmlCorrected, &count), count, &sample->ecc_corrected, sample);
    Keep(nvml_.EccErrors(device, kNvmlUncorrected, &count), count, &sample->ecc_uncorrected,
         sample);
  }
  if (const NvmlResult result = nvml_.RemappedRows(device, &rows); result == kNvmlSuccess) {
    Keep(result, rows.corrected, &sample->remapped_corrected, sample);
    Keep(result, rows.uncorrected, &sample->remapped_uncorrected, sample);
    sample->replace_pending = rows.pending != 0;
    sample->replace_failed = rows.failed != 0;
  } else {
    Keep(nvml_.RetiredPages(device, kNvmlRetiredCorrected, &pages), pages,
         &sample->retired_corrected, sample);
    Keep(nvml_.RetiredPages(device, kNvmlRetiredUncorrected, &pages), pages,
         &sample->retired_uncorrected, sample);
    if (nvml_.RetiredPending(device, &pending) == kNvmlSuccess) sample->replace_pending = pending;
  }
  (void)nvml_.Field(device, kNvmlFieldRecoveryAction, 0, &sample->recovery_action);
}

// Adds one link's count: from the field of newer drivers, else from one or two counters.
void NvmlWatch::LinkCount(NvmlDevice device, unsigned link, unsigned field, int counter, int more,
                          int64_t* sum) const {
  int64_t value = 0;
  unsigned long long count = 0;
  unsigned long long second = 0;
  if (nvml_.Field(device, field, link, &value) != kNvmlSuccess) {
    if (nvml_.LinkErrors(device, link, counter, &count) != kNvmlSuccess) return;
    if (more >= 0) (void)nvml_.LinkErrors(device, link, more, &second);
    value = Bounded(count + second);
  }
  *sum = std::max<int64_t>(*sum, 0) + std::clamp<int64_t>(value, 0, int64_t{1} << 56);
}

void NvmlWatch::ReadLinks(NvmlDevice device, GpuSample* sample) const {
  for (unsigned link = 0; link < kNvmlMaxLinks; ++link) {
    bool active = false;
    const NvmlResult result = nvml_.LinkState(device, link, &active);
    if (result == kNvmlInvalidArgument || result == kNvmlFunctionNotFound) break;
    if (result != kNvmlSuccess || !active) continue;
    LinkCount(device, link, kNvmlFieldLinkReplays, kNvmlLinkReplays, -1, &sample->nvlink_replays);
    LinkCount(device, link, kNvmlFieldLinkRecoveries, kNvmlLinkRecoveries, -1,
              &sample->nvlink_recoveries);
    LinkCount(device, link, kNvmlFieldLinkCrc, kNvmlLinkCrcFlit, kNvmlLinkCrcData,
              &sample->nvlink_crc);
  }
}

// Instances are listed each time: they come and go while their GPU stays.
void NvmlWatch::ReadInstances(const Watched& watched, std::vector<GpuSample>* to) const {
  bool enabled = false;
  unsigned slots = 0;
  if (nvml_.MigMode(watched.device, &enabled) != kNvmlSuccess || !enabled) return;
  if (nvml_.MigSlots(watched.device, &slots) != kNvmlSuccess) return;
  for (unsigned slot = 0; slot < std::min(slots, kMaxMigSlots); ++slot) {
    NvmlDevice mig = nullptr;
    GpuSample sample;
    std::string name;
    NvmlMemory memory = {};
    if (nvml_.MigDevice(watched.device, slot, &mig) != kNvmlSuccess) continue;
    if (nvml_.Uuid(mig, &sample.uuid) != kNvmlSuccess) continue;
    sample.index = watched.fixed.index;
    sample.kind = "mig";
    sample.parent = watched.fixed.uuid;
    sample.pci = watched.fixed.pci;
    if (nvml_.Name(mig, &name) == kNvmlSuccess) sample.model = MigProfile(name);
    const NvmlResult result = nvml_.MemoryInUse(mig, &memory, &sample.memory_reserved_bytes);
    Keep(result, memory.used, &sample.memory_used_bytes, &sample);
    Keep(result, memory.free, &sample.memory_free_bytes, &sample);
    to->push_back(std::move(sample));
  }
}

}  // namespace berth::discovery
