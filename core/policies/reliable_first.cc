#include "core/policies/registry.h"

namespace berth {
namespace {

constexpr int64_t kFault = 1000;  // thousandths

// Large groups go where nothing has failed lately (core/model/node_faults.h): one bad node stops
// all of their tasks. By whole faults, rounded, so that old ones do not matter more than a tight
// fit. Smaller groups go anywhere, and so use the other nodes.
class ReliableFirstScore final : public NodeScore {
 public:
  absl::string_view name() const override { return "reliable_first"; }
  std::optional<NodeRank> Prepare(const ScoreRequest& request) const override {
    const bool large = request.tasks >= request.policies.reliable_first().min_tasks;
    if (!large || request.state.faulty_nodes() == 0) return std::nullopt;
    return [now = request.state.passed_time()](const Offer& offer) {
      const int64_t faults = (FaultsAt(offer.node.status.faults, now) + kFault / 2) / kFault;
      return faults == 0 ? kBestRank : faults;
    };
  }
};

}  // namespace

std::unique_ptr<NodeScore> MakeReliableFirstScore() {
  return std::make_unique<ReliableFirstScore>();
}

}  // namespace berth
