// shortest_first: shorter jobs of the queue go first, by requested and predicted run time
// (docs/developers/prediction.md).
//
//   rank = a log2 requested + b log2 expected + (1 - a - b) log2 harmonic      smallest first
//
// The walltime guards against users whose history misleads. The harmonic mean favors jobs that are
// likely to end at once. An unknown prediction is replaced by the walltime, and an unknown walltime
// by the expected run. Jobs with neither go last, oldest first.
//
//   a = 0.5, b = 0.25:   2 h asked, 1 h expected, harmonic 100 s -> 10.98    goes before
//                        1 h asked, 1 h expected, harmonic 1 h   -> 11.81
#include <algorithm>
#include <limits>

#include "core/base/fixed_log.h"
#include "core/policies/registry.h"

namespace berth {
namespace {

constexpr int64_t kUnknownRank = std::numeric_limits<int64_t>::max();
// The sum of the three weights, which are in thousandths.
constexpr int64_t kWeightSum = kRankOctave >> kLogBits;

// 0 if it has none.
int64_t WalltimeSeconds(const Job& job) {
  if (job.walltime == absl::InfiniteDuration()) return 0;
  return std::max<int64_t>(absl::ToInt64Seconds(job.walltime), 1);
}

int64_t RankOf(const Job& job, const ShortestFirstParameters& parameters) {
  const RunPrediction& known = job.prediction;
  int64_t requested = WalltimeSeconds(job);
  if (requested == 0 && !known.Known()) return kUnknownRank;
  if (requested == 0) requested = known.expected_s;
  const int64_t expected = known.Known() ? known.expected_s : requested;
  const int64_t harmonic = known.Known() ? known.harmonic_s : requested;
  const auto log = [](int64_t seconds) { return FixedLog2(static_cast<uint64_t>(seconds)); };
  const int64_t a = parameters.requested_weight, b = parameters.expected_weight;
  return a * log(requested) + b * log(expected) + (kWeightSum - a - b) * log(harmonic);
}

class ShortestFirstOrder final : public JobOrder {
 public:
  absl::string_view name() const override { return "shortest_first"; }
  JobCompare Prepare(const ClusterState&, Time) const override { return nullptr; }
  bool Ages() const override { return true; }
  std::optional<JobRank> PrepareRank(const Policies& policies, const ClusterState&) const override {
    return [parameters = policies.shortest_first()](const Job& job, Time) {
      return RankOf(job, parameters);
    };
  }
};

}  // namespace

std::unique_ptr<JobOrder> MakeShortestFirstOrder() {
  return std::make_unique<ShortestFirstOrder>();
}

}  // namespace berth
