// From what discovery finds to how the node's devices are connected, as it registers them.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_
#define BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "berth/v1/node.pb.h"
#include "clients/discovery/machine.h"

namespace berth {

// Of so many devices; each way between two is kept once.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(int devices);
  // The way between two different devices. A 256th different one is left out: unknown.
  void Set(int a, int b, const v1::DeviceLink& link);
  // Empty if no way is known.
  v1::DeviceTopology Take() &&;

 private:
  const size_t devices_;
  v1::DeviceTopology topology_;
  std::map<std::tuple<int, int32_t, int64_t, bool>, char> codes_;
};

// Links between the registered GPUs and NPUs, and from these to NICs, found by UUID (a NIC's is its
// name); and the NUMA nodes with CPUs. Bandwidth of PCI is that of the slower device's own link,
// as NCCL plans with it: four fifths of what the link carries, and the same again through a host
// bridge; unknown where the machine does not tell.
v1::DeviceTopology TopologyOf(const discovery::Machine& machine,
                              const google::protobuf::RepeatedPtrField<v1::Device>& devices);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_
