// Where tasks ran, by name: for who wants to check placements.
#ifndef BERTH_CLIENTS_REPLAY_PLACES_H_
#define BERTH_CLIENTS_REPLAY_PLACES_H_

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

  // Of each task, separated by blanks; "-": none. Empty if there is none at all.
  std::string Nodes(const std::vector<TaskPlace>& places) const;
  // The same of devices; several of one task are joined by "+".
  std::string Devices(const std::vector<TaskPlace>& places) const;

 private:
  struct NodeNames {
    std::string name;
    std::vector<std::string> devices;
  };
  std::vector<NodeNames> nodes_;  // by id
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_PLACES_H_
