// Names of the places where tasks ran, to check placements.
#ifndef BERTH_OFFLINE_REPLAY_PLACES_H_
#define BERTH_OFFLINE_REPLAY_PLACES_H_

#include <string>
#include <vector>

#include "core/model/cluster_state.h"

namespace berth::replay {

struct TaskPlace {
  bool any = false;  // it has had a place
  NodeId node;
  DeviceSet devices;  // of all kinds
};

// Names of nodes, and of their devices.
class PlaceNames {
 public:
  PlaceNames() = default;
  explicit PlaceNames(const ClusterState& state);

  // The node of each task, separated by blanks; "-": none. Empty if no task has one.
  std::string Nodes(const std::vector<TaskPlace>& places) const;
  // Likewise for devices. Several devices of one task are joined by "+".
  std::string Devices(const std::vector<TaskPlace>& places) const;

 private:
  struct NodeNames {
    std::string name;
    std::vector<std::string> devices;
  };
  std::vector<NodeNames> nodes_;  // by id
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_PLACES_H_
