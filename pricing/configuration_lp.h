// The configuration LP: how much of a demand a cluster can hold at best, and what a place for one
// more request of each type would be worth.
//
// A configuration is a multiset of requests that fits into one room together. The LP decides how
// many rooms of each kind get which configuration, so that most devices are used; no more of a type
// than there is demand, no more configurations than rooms, fractions allowed. The dual of a type's
// row is its shadow price: what one more of them would add. It is what the demand itself is worth;
// the rest of a request's size is what the place is worth that it takes.
//
//   one room of one device; demand: two shares of 600, two of 400
//   best: {600, 400}, all used; one more 400 adds nothing, so its price is 0
//
// Column generation (Gilmore, Gomory 1961): configurations are found one by one, each the best for
// the present prices (core/sharing/room_value.h). Prices are smoothed towards those that gave the
// best bound (Wentges 1997), without which they swing. Done when the bound is within kGap.
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

// Rooms that are alike.
struct RoomKind {
  NodeRoom room;
  int64_t count = 1;
};

inline constexpr double kGap = 0.001;       // of all devices
inline constexpr int kMaxIterations = 600;  // of one Solve

class ConfigurationLp {
 public:
  ConfigurationLp(std::vector<RoomKind> kinds, std::vector<Request> requests);
  ~ConfigurationLp();

  struct Solution {
    double devices = 0;          // in use
    double bound = 0;            // no packing uses more
    std::vector<double> prices;  // by request, in devices; 0 or more
    int iterations = 0;
  };
  // For so many of each request. Configurations found before are used again, so solving for a
  // similar demand is quick. CANCELLED as soon as `stop` says so, which is asked often;
  // RESOURCE_EXHAUSTED after kMaxIterations; INTERNAL if the solver fails.
  absl::StatusOr<Solution> Solve(const std::vector<double>& demand,
                                 const std::function<bool()>& stop);

 private:
  using Prices = std::vector<double>;
  struct Column {
    size_t kind = 0;
    std::vector<std::pair<size_t, int>> counts;  // request, how many
    auto operator<=>(const Column&) const = default;
  };
  struct Priced {
    double bound = 0;
    std::vector<Column> columns;  // one for each kind
  };
  absl::Status SolveMaster();
  Priced Price(const std::vector<double>& demand, const Prices& prices) const;
  // How many of them were worth adding at the master's own prices.
  int AddColumns(const std::vector<Column>& columns);
  double Devices(const Column& column) const;
  Prices MasterPrices() const;

  std::vector<RoomKind> kinds_;
  std::vector<Request> requests_;
  double total_ = 0;  // devices of all rooms
  std::unique_ptr<ClpSimplex> master_;
  std::set<Column> known_;
};

}  // namespace berth

#endif  // BERTH_PRICING_CONFIGURATION_LP_H_
