// shortest_remaining: the job that is expected to end soonest goes first
// (docs/developers/prediction.md).
//
//   rank = log2 of the rest of its expected run, else of its walltime      smallest first
//
// With `rotate`, a job takes the room of one that has at least twice as much left: shortest
// remaining processing time first (SRPT: L. Schrage, Operations Research 16(3), 1968), with a gap
// so that two jobs do not alternate. Jobs without prediction and walltime go last, by age.
#include <limits>

#include "core/base/fixed_log.h"
#include "core/policies/registry.h"
#include "core/policies/service.h"

namespace berth {
namespace {

int64_t RankOf(const Job& job, Time now) {
  const std::optional<int64_t> seconds = RemainingSeconds(job, now);
  if (!seconds.has_value()) return std::numeric_limits<int64_t>::max() - kRankRoom;
  return (kRankOctave >> kLogBits) * FixedLog2(static_cast<uint64_t>(*seconds));
}

class ShortestRemainingOrder final : public JobOrder {
 public:
  absl::string_view name() const override { return "shortest_remaining"; }
  JobCompare Prepare(const ClusterState&, Time) const override { return nullptr; }
  std::optional<JobRank> PrepareRank(const Policies&, const ClusterState&) const override {
    return [](const Job& job, Time now) { return RankOf(job, now); };
  }
  bool Ages() const override { return true; }
  // A running job's remaining time falls until it runs longer than expected.
  JobStanding PrepareStanding(const Policies&) const override {
    return [](const ClusterState&, const Job& job, Time now) {
      const auto seconds = RemainingSeconds(job, now);
      const Time until =
          seconds.has_value() ? now + absl::Seconds(*seconds) : absl::InfiniteFuture();
      return Standing{.value = RankOf(job, now), .until = until};
    };
  }
  int64_t StandingGap() const override { return kRankOctave; }
};

}  // namespace

std::unique_ptr<JobOrder> MakeShortestRemainingOrder() {
  return std::make_unique<ShortestRemainingOrder>();
}

}  // namespace berth
