// Reads the counters of running GPUs and their XIDs through NVML.
#ifndef BERTH_CLIENTS_AGENT_DISCOVERY_NVML_WATCH_H_
#define BERTH_CLIENTS_AGENT_DISCOVERY_NVML_WATCH_H_

#include <vector>

#include "absl/time/time.h"
#include "clients/agent/discovery/gpu_report.h"
#include "clients/agent/discovery/nvml_library.h"

namespace berth::discovery {

class NvmlWatch {
 public:
  // Lists the GPUs and subscribes to their XIDs. `nvml` must outlive it.
  explicit NvmlWatch(const NvmlLibrary& nvml);
  ~NvmlWatch();
  NvmlWatch(const NvmlWatch&) = delete;
  NvmlWatch& operator=(const NvmlWatch&) = delete;

  // Waits for an XID. Returns false at once if there are no events to wait for.
  bool Wait(absl::Duration timeout);
  // Reads everything now, with the XIDs since the last call.
  GpuReport Read();

 private:
  struct Watched {
    NvmlDevice device = nullptr;
    GpuSample fixed;  // the constant fields
    std::vector<int64_t> xids;
  };

  void Add(unsigned index);
  GpuSample ReadGpu(const Watched& watched) const;
  void ReadLoad(NvmlDevice device, GpuSample* sample) const;
  void ReadErrors(NvmlDevice device, GpuSample* sample) const;
  void ReadLinks(NvmlDevice device, GpuSample* sample) const;
  void LinkCount(NvmlDevice device, unsigned link, unsigned field, int counter, int more,
                 int64_t* sum) const;
  void ReadInstances(const Watched& watched, std::vector<GpuSample>* to) const;
  template <class T>
  void Keep(NvmlResult result, const T& value, int64_t* to, GpuSample* sample) const;

  const NvmlLibrary& nvml_;
  NvmlEventSet events_ = nullptr;
  bool told_ = false;  // the driver reports XIDs of at least one GPU
  std::vector<Watched> watched_;
};

}  // namespace berth::discovery

#endif  // BERTH_CLIENTS_AGENT_DISCOVERY_NVML_WATCH_H_
