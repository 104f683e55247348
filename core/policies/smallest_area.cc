// smallest_area: the job that is expected to need the least device time goes first
// (docs/developers/prediction.md).
//
//   rank = log2 (rest of its expected run, else of its walltime, x devices)    smallest first
//
// With `rotate`, a job takes the room of one that needs at least twice as much. This is shortest
// remaining service first, as Tiresias (NSDI'19) calls it where run times are known. Jobs without
// prediction and walltime go last, by age.
//
//   4 devices for 1 h more go before 1 device for 5 h more
#include <limits>

#include "core/base/fixed_log.h"
#include "core/policies/registry.h"
#include "core/policies/service.h"

namespace berth {
namespace {

int64_t RankOf(const ClusterState& state, const Job& job, Time now) {
  const std::optional<int64_t> seconds = RemainingSeconds(job, now);
  if (!seconds.has_value()) return std::numeric_limits<int64_t>::max() - kRankRoom;
  return (kRankOctave >> kLogBits) *
         FixedLog2(static_cast<uint64_t>(*seconds * SizeOf(state, job)));
}

class SmallestAreaOrder final : public JobOrder {
 public:
  absl::string_view name() const override { return "smallest_area"; }
  JobCompare Prepare(const ClusterState&, Time) const override { return nullptr; }
  std::optional<JobRank> PrepareRank(const Policies&, const ClusterState& state) const override {
    return [&state](const Job& job, Time now) { return RankOf(state, job, now); };
  }
  bool Ages() const override { return true; }
  // A running job's remaining time falls until it runs longer than expected.
  JobStanding PrepareStanding(const Policies&) const override {
    return [](const ClusterState& state, const Job& job, Time now) {
      const auto seconds = RemainingSeconds(job, now);
      const Time until =
          seconds.has_value() ? now + absl::Seconds(*seconds) : absl::InfiniteFuture();
      return Standing{.value = RankOf(state, job, now), .until = until};
    };
  }
  int64_t StandingGap() const override { return kRankOctave; }
};

}  // namespace

std::unique_ptr<JobOrder> MakeSmallestAreaOrder() { return std::make_unique<SmallestAreaOrder>(); }

}  // namespace berth
