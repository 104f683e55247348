#include "core/policies/registry.h"

namespace berth {
namespace {

// Higher priority first, then order of submission, which is the order of ids. PendingIndex keeps
// its classes in this order.
class PriorityThenSubmitOrder final : public JobOrder {
 public:
  absl::string_view name() const override { return "priority_then_submit"; }
  JobCompare Prepare(const ClusterState&, Time) const override { return nullptr; }
  std::optional<JobRank> PrepareRank(const Policies&, const ClusterState&) const override {
    return JobRank();
  }
};

}  // namespace

std::unique_ptr<JobOrder> MakePriorityThenSubmitOrder() {
  return std::make_unique<PriorityThenSubmitOrder>();
}

}  // namespace berth
