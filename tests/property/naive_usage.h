// What the cluster is used for at a moment, computed from the whole state without any sums, and
// integrated over time: the oracle of the usage fold.
#ifndef BERTH_TESTS_PROPERTY_NAIVE_USAGE_H_
#define BERTH_TESTS_PROPERTY_NAIVE_USAGE_H_

#include <map>
#include <string>
#include <tuple>

#include "core/history/meter.h"
#include "core/history/usage_keys.h"
#include "core/model/cluster_state.h"
#include "core/model/event.h"

namespace berth {

// Resource, model and index of the figure, of somebody.
struct NaiveFigure {
  UsageKey key;
  std::string model, resource;
  size_t figure = 0;
  auto operator<=>(const NaiveFigure&) const = default;
};
using NaiveRates = std::map<NaiveFigure, int64_t>;

// Figures of Measure by queue, user, account and class; of CapacityPart with an empty key.
NaiveRates UsageRates(const ClusterState& state);
NaiveRates CapacityRates(const ClusterState& state);

// What the task takes of its node when it runs, as that figure.
NaiveRates AmountsOfTask(const ClusterState& state, const Job& job, uint32_t index,
                         const Task& task, size_t figure);

// The key of the job's usage: its account is the label "label".
UsageKey UsageKeyOf(const ClusterState& state, const Job& job);
std::string PathTextOf(const ClusterState& state, QueueId queue);

// Rates times time, by period.
class NaiveSums {
 public:
  // Width and begin of the period.
  using Period = std::tuple<int64_t, int64_t>;
  using Sums = std::map<std::pair<Period, NaiveFigure>, AmountTime>;

  // The rates hold from `from_ms` to `to_ms`.
  void Add(const NaiveRates& rates, int64_t from_ms, int64_t to_ms, int64_t width_ms);
  void AddOnce(const NaiveFigure& figure, AmountTime amount, int64_t at_ms, int64_t width_ms);
  // Without zeros.
  const Sums& sums() const { return sums_; }

 private:
  Sums sums_;
};

}  // namespace berth

#endif  // BERTH_TESTS_PROPERTY_NAIVE_USAGE_H_
