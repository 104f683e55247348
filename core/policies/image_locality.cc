#include "core/policies/registry.h"

namespace berth {
namespace {

// Nodes that hold the image of the task, among those of about the same fit: the task starts there
// without a pull. By default only the number of free devices must be equal, so that no node with
// more of them is broken up for an image. If all nodes hold it, or none does, there is nothing to
// prefer.
class ImageLocalityScore final : public NodeScore {
 public:
  absl::string_view name() const override { return "image_locality"; }
  std::optional<NodeRank> Prepare(const ScoreRequest& request) const override {
    const std::optional<ImagePreference> preference = Prefers(request);
    if (!preference.has_value()) return std::nullopt;
    return [preference = *preference, &free = request.state.free()](const Offer& offer) {
      return preference.LevelOf(offer.node, free.KeyOf(offer.node.id).room);
    };
  }
  std::optional<ImagePreference> Prefers(const ScoreRequest& request) const override {
    if (request.image == ImageId{}) return std::nullopt;
    const int64_t holders = request.state.HoldersOf(request.image);
    const auto nodes = static_cast<int64_t>(request.state.nodes().size());
    if (holders == 0 || holders == nodes) return std::nullopt;
    return ImagePreference{.image = request.image,
                           .devices = request.policies.image_locality().devices,
                           .downward = request.downward};
  }
};

}  // namespace

std::unique_ptr<NodeScore> MakeImageLocalityScore() {
  return std::make_unique<ImageLocalityScore>();
}

}  // namespace berth
