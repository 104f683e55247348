#include "core/engine/search/device_board.h"

#include <utility>

#include "core/engine/search/demand_watch.h"
#include "core/sharing/host_resource.h"

namespace berth {

void DeviceBoard::Read(const ClusterState& state, NodeId id) {
  const bool listed = state.nodes().Find(id) != nullptr && state.free().Has(id);
  if (!listed) return board_->Set(id.value, NodeRoom{});
  const Node& node = state.nodes().At(id);
  const NodeRoom room = RoomOf(node, state.free().FreeOf(id), TakenDevices(node), models_);
  board_->Set(id.value, Counted(room, mib_per_core_));
}

void DeviceBoard::Follow(StateEditor* editor, const ClusterState& state, SharingPolicy policy) {
  const bool anew = !board_.has_value() || editor == nullptr;
  if (anew || policy != policy_ || mix_version_ != state.request_mix_version()) {
    policy_ = policy;
    mix_version_ = state.request_mix_version();
    const RequestMix& mix = state.request_mix();
    const bool same_rooms = models_ == mix.models && mib_per_core_ == mix.mib_per_core;
    models_ = mix.models;
    mib_per_core_ = mix.mib_per_core;
    PlacementScorer scorer(policy, mix);
    if (board_.has_value() && same_rooms) {
      board_->Use(std::move(scorer));
    } else {
      board_.emplace(std::move(scorer));
      position_ = 0;
    }
  }
  changed_.clear();
  const bool followed = editor != nullptr && editor->ReadChangedNodes(&position_, &changed_);
  if (followed) {
    for (NodeId id : changed_) Read(state, id);
    return;
  }
  state.nodes().ForEach([&](NodeId id, const Node&) { Read(state, id); });
}

std::optional<DeviceBoard::Place> DeviceBoard::Best(const TaskShape& shape,
                                                    absl::FunctionRef<bool(NodeId)> may_have) {
  const auto may = [&](size_t node) { return may_have(NodeId{static_cast<uint32_t>(node)}); };
  const auto best = board_->Best(Counted(RequestOf(shape, models_), mib_per_core_), may);
  if (!best.has_value()) return std::nullopt;
  return Place{
      .node = NodeId{static_cast<uint32_t>(best->node)}, .left = best->from, .cost = best->score};
}

}  // namespace berth
