// Measures dominant shares over time and their fairness: of the queues, or of the users.
//
// The dominant share of an owner is the largest part that it holds of any resource of all nodes
// (Ghodsi et al., "Dominant Resource Fairness", NSDI'11). Jain's index of n shares (Jain, Chiu,
// Hawe, DEC-TR-301, 1984) is (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has
// everything. Queues' shares are divided by their weights first.
//
//   two owners, 30 % and 10 %: (0.4)^2 / (2 (0.09 + 0.01)) = 0.8
//
// The index counts while at least two owners have jobs and one of these jobs waits for its start:
// an owner whose requests are all met is not treated unfairly with a smaller share. Time without
// any shares does not count either. Each change takes constant time, without any scan.
#ifndef BERTH_OFFLINE_REPLAY_SHARE_METER_H_
#define BERTH_OFFLINE_REPLAY_SHARE_METER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "core/model/resources.h"
#include "offline/replay/amounts.h"

namespace berth::replay {

// The share of an owner, summed over time.
struct ShareSum {
  double share_seconds = 0;
  double max = 0;  // 0..1
  Amounts held;    // times seconds
};

class ShareMeter {
 public:
  // An owner for each weight, 1 or more. `capacity`: of all nodes.
  ShareMeter(std::vector<int32_t> weights, const Resources& capacity);

  // The owner holds `times` times `amounts` more, or less if negative.
  void Hold(size_t owner, const Resources& amounts, int64_t times);
  // The owner has this many jobs more, and this many more that hold nothing.
  void Demand(size_t owner, int jobs, int waiting);
  void Pass(double seconds);

  // By owner, up to now.
  std::vector<ShareSum> Sums() const;
  const Resources& HeldBy(size_t owner) const { return owners_[owner].held; }
  // 0..1, the greatest of all resources.
  double ShareOf(size_t owner) const;
  // The mean of Jain's index over the time in which it counts; nullopt if there is none.
  std::optional<double> Fairness() const;

 private:
  struct Owner {
    Resources held;
    int64_t share = 0;     // of the dominant resource, in kUnit
    int64_t weighted = 0;  // by weight
    int64_t weight = 1;
    int64_t jobs = 0;
    double since = 0;
    ShareSum sum;
  };
  int64_t Dominant(const Resources& held) const;
  // Its sums up to now.
  ShareSum SumOf(const Owner& owner) const;
  void Count(const Owner& owner, int sign);

  const Resources capacity_;
  std::vector<Owner> owners_;
  double now_ = 0;
  // Over owners with jobs. Integers, so that subtraction is exact.
  int64_t present_ = 0, waiting_ = 0;
  int64_t sum_ = 0;
  absl::uint128 squares_ = 0;
  double index_seconds_ = 0, index_time_ = 0;
};

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_SHARE_METER_H_
