// The configuration LP: the largest part of a demand that a cluster can hold, and the value of a
// place for one more request of each type.
//
// A configuration is a multiset of requests that fits into one room together. The LP decides how
// many rooms of each kind get which configuration, so that most devices are used. It places no more
// of a type than there is demand, and no more configurations than rooms; fractions are allowed. The
// dual of a type's row is its shadow price: what one more request of it would add. That is the
// value of the demand itself; the rest of a request's size is the value of the place that it takes.
//
//   one room of one device; demand: two shares of 600, two of 400
//   best: {600, 400}, all used; one more 400 adds nothing, so its price is 0
//
// Column generation (Gilmore, Gomory 1961): finds configurations one by one, each the best for the
// present prices (core/sharing/room_value.h). Prices are smoothed towards those with the best bound
// (Wentges 1997); otherwise they oscillate. Stops when the bound is within kGap.
#ifndef BERTH_PRICING_CONFIGURATION_LP_H_
#define BERTH_PRICING_CONFIGURATION_LP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/sharing/node_room.h"
#include "core/sharing/request_mix.h"
#include "core/sharing/room_value.h"

class ClpSimplex;

namespace berth {

// A kind of equal rooms.
struct RoomKind {
  NodeRoom room;
  int64_t count = 1;
};

inline constexpr double kGap = 0.001;       // of all devices
inline constexpr int kMaxIterations = 600;  // per Solve

class ConfigurationLp {
 public:
  ConfigurationLp(std::vector<RoomKind> kinds, std::vector<Request> requests);
  ~ConfigurationLp();

  struct Solution {
    double devices = 0;          // in use
    double bound = 0;            // no packing uses more
    std::vector<double> prices;  // per request, in devices; 0 or more
    int iterations = 0;
  };
  // Solves for this demand per request. Reuses configurations found before, so solving for a
  // similar demand is fast. CANCELLED soon after `stop`, which is called often, returns true;
  // RESOURCE_EXHAUSTED after kMaxIterations; INTERNAL if the solver fails.
  absl::StatusOr<Solution> Solve(const std::vector<double>& demand,
                                 const std::function<bool()>& stop);

 private:
  using Prices = std::vector<double>;
  struct Column {
    size_t kind = 0;
    std::vector<std::pair<size_t, int>> counts;  // (request, count)
    auto operator<=>(const Column&) const = default;
  };
  struct Priced {
    double bound = 0;
    std::vector<Column> columns;  // one per kind
  };
  absl::Status SolveMaster();
  Priced Price(const std::vector<double>& demand, const Prices& prices) const;
  // Returns how many of them were worth adding at the master's own prices.
  int AddColumns(const std::vector<Column>& columns);
  double Devices(const Column& column) const;
  Prices MasterPrices() const;

  std::vector<RoomKind> kinds_;
  std::vector<Request> requests_;
  double total_ = 0;  // devices in all rooms
  std::unique_ptr<ClpSimplex> master_;
  std::set<Column> known_;
};

}  // namespace berth

#endif  // BERTH_PRICING_CONFIGURATION_LP_H_
