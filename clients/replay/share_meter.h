// Dominant shares over time, and how evenly they are spread: of the queues, or of the users.
//
// An owner's dominant share is its part of the resource of which it holds most, by what all nodes
// have (Ghodsi et al., "Dominant Resource Fairness", NSDI'11). Jain's index of n shares
// (Jain, Chiu, Hawe, DEC-TR-301, 1984) is (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one
// has everything. Queues' shares are divided by their weights first.
//
//   two owners, 30 % and 10 %: (0.4)^2 / (2 (0.09 + 0.01)) = 0.8
//
// The index counts while at least two owners have jobs and one of these jobs waits for its start:
// who has all that it asks for is not treated unfairly by getting less. Time with no shares at all
// does not count either. Constant time per change; nothing is looked through.
#ifndef BERTH_CLIENTS_REPLAY_SHARE_METER_H_
#define BERTH_CLIENTS_REPLAY_SHARE_METER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/numeric/int128.h"
#include "clients/replay/amounts.h"
#include "core/model/resources.h"

namespace berth::replay {

// What an owner's share came to.
struct ShareSum {
  double share_seconds = 0;
  double max = 0;  // 0..1
  Amounts held;    // times seconds
};

class ShareMeter {
 public:
  // An owner for each weight, 1 or more. `capacity`: of all nodes.
  ShareMeter(std::vector<int32_t> weights, const Resources& capacity);

  // It holds so many times `amounts` more, or less.
  void Hold(size_t owner, const Resources& amounts, int64_t times);
  // It has so many jobs more, and so many more that hold nothing.
  void Demand(size_t owner, int jobs, int waiting);
  void Pass(double seconds);

  // By owner, up to now.
  std::vector<ShareSum> Sums() const;
  const Resources& HeldBy(size_t owner) const { return owners_[owner].held; }
  // 0..1, of all resources the greatest.
  double ShareOf(size_t owner) const;
  // Jain's index, its mean over the time in which it counts; nullopt if that is none.
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
  // What its sums come to by now.
  ShareSum SumOf(const Owner& owner) const;
  void Count(const Owner& owner, int sign);

  const Resources capacity_;
  std::vector<Owner> owners_;
  double now_ = 0;
  // Of owners with jobs. Integers, so that what is added and taken away is the same.
  int64_t present_ = 0, waiting_ = 0;
  int64_t sum_ = 0;
  absl::uint128 squares_ = 0;
  double index_seconds_ = 0, index_time_ = 0;
};

}  // namespace berth::replay

#endif  // BERTH_CLIENTS_REPLAY_SHARE_METER_H_
