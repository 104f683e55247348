// Turns the result of discovery into the device topology that the node registers.
#ifndef BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_
#define BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_

#include <google/protobuf/repeated_ptr_field.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "berth/v1/node.pb.h"
#include "clients/agent/discovery/machine.h"

namespace berth {

// For a fixed number of devices; each path between two is stored once.
class TopologyBuilder {
 public:
  explicit TopologyBuilder(int devices);
  // Sets the path between two different devices. A 256th distinct path is dropped: unknown.
  void Set(int a, int b, const v1::DeviceLink& link);
  // Empty if no path is known.
  v1::DeviceTopology Take() &&;

 private:
  const size_t devices_;
  v1::DeviceTopology topology_;
  std::map<std::tuple<int, int32_t, int64_t, bool>, char> codes_;
};

// Links between the registered GPUs and NPUs, and from these to NICs, matched by UUID (a NIC's is
// its name); and the NUMA nodes with CPUs. PCI bandwidth is that of the slower device's own link,
// as NCCL assumes: four fifths of the raw bandwidth, and 5/6 of that through a host bridge; unknown
// if the machine does not report it.
v1::DeviceTopology TopologyOf(const discovery::Machine& machine,
                              const google::protobuf::RepeatedPtrField<v1::Device>& devices);

}  // namespace berth

#endif  // BERTH_CLIENTS_AGENT_DEVICE_TOPOLOGY_H_
