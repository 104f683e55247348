#include "core/policies/registry.h"

namespace berth {
namespace {

// Fewest free devices left, then least free CPU, so that whole nodes stay free. FreeIndex keeps
// nodes in this order, so there is nothing to rank. Tasks without devices therefore prefer nodes
// without devices.
class BestFitScore final : public NodeScore {
 public:
  absl::string_view name() const override { return "best_fit"; }
  std::optional<NodeRank> Prepare(const ScoreRequest&) const override { return NodeRank(); }
};

}  // namespace

std::unique_ptr<NodeScore> MakeBestFitScore() { return std::make_unique<BestFitScore>(); }

}  // namespace berth
