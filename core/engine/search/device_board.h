// DeviceBoard: where the sharing policy (core/sharing) places a request for devices: the remaining
// room of each node, and the cost of each place. Kept across cycles. It follows the nodes that
// change, including tried and undone edits.
//
//   n0 has 400 and 1000 thousandths left, n1 600; a share of 400: n0, on the device with 400
//
// Covers the shared kind (core/engine/search/demand_watch.h) and assumes that all devices of a node
// have one model. A cache: no decision depends on what it held before. Not thread-safe.
#ifndef BERTH_CORE_ENGINE_SEARCH_DEVICE_BOARD_H_
#define BERTH_CORE_ENGINE_SEARCH_DEVICE_BOARD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/model/cluster_state.h"
#include "core/model/state_editor.h"
#include "core/sharing/score_board.h"

namespace berth {

class DeviceBoard {
 public:
  struct Place {
    NodeId node;
    int64_t left = 0;  // for a share: what its device has left before it is placed
    int64_t cost = 0;  // lower is better
  };

  // Brings it up to date. Without an editor, everything is read again.
  void Follow(StateEditor* editor, const ClusterState& state, SharingPolicy policy);

  // The cheapest place for a task of the shape on a permitted node; ties go to the lowest id. Call
  // Follow first.
  std::optional<Place> Best(const TaskShape& shape, absl::FunctionRef<bool(NodeId)> may_have);

 private:
  void Read(const ClusterState& state, NodeId id);

  std::optional<ScoreBoard> board_;
  SharingPolicy policy_ = SharingPolicy::kBidPrice;
  uint64_t mix_version_ = 0;
  uint64_t position_ = 0;            // in the log of changed nodes
  std::vector<std::string> models_;  // of the mix
  int64_t mib_per_core_ = 0;         // likewise
  std::vector<NodeId> changed_;
};

}  // namespace berth

#endif  // BERTH_CORE_ENGINE_SEARCH_DEVICE_BOARD_H_
