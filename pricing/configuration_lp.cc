#include "pricing/configuration_lp.h"

#include <ClpSimplex.hpp>
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace berth {
namespace {

constexpr double kSmoothing = 0.7;   // weight of the prices with the best bound
constexpr double kMicros = 1e6;      // values in the dynamic program: millionths of a device
constexpr double kLeastGain = 1e-6;  // in devices: smaller gains are noise
constexpr double kDevice = kWholeDevice;

double DevicesOf(const Request& request) { return static_cast<double>(request.amount()) / kDevice; }

}  // namespace

ConfigurationLp::ConfigurationLp(std::vector<RoomKind> kinds, std::vector<Request> requests)
    : kinds_(std::move(kinds)),
      requests_(std::move(requests)),
      master_(std::make_unique<ClpSimplex>()) {
  master_->setLogLevel(0);
  const auto demands = static_cast<int>(requests_.size());
  master_->resize(demands + static_cast<int>(kinds_.size()), 0);
  for (size_t k = 0; k < kinds_.size(); ++k) {
    const auto count = static_cast<double>(kinds_[k].count);
    const int row = demands + static_cast<int>(k);
    const double one = 1;
    master_->setRowBounds(row, -COIN_DBL_MAX, count);
    // The room left empty. It has no effect, but Clp requires a column.
    master_->addColumn(1, &row, &one, 0, COIN_DBL_MAX, 0);
    total_ += count * static_cast<double>(kinds_[k].room.amount()) / kDevice;
  }
}

ConfigurationLp::~ConfigurationLp() = default;

double ConfigurationLp::Devices(const Column& column) const {
  double sum = 0;
  for (const auto& [request, count] : column.counts) sum += count * DevicesOf(requests_[request]);
  return sum;
}

absl::Status ConfigurationLp::SolveMaster() {
  master_->primal();
  if (master_->status() == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("Clp ended with status ", master_->status()));
}

ConfigurationLp::Prices ConfigurationLp::MasterPrices() const {
  Prices prices(requests_.size());
  // The master minimizes, so the duals of its upper bounds are not positive.
  for (size_t i = 0; i < prices.size(); ++i) {
    prices[i] = std::max(0.0, -master_->dualRowSolution()[i]);
  }
  return prices;
}

// Any prices give a bound: the demand's value at these prices, plus the most that each room could
// earn beyond them.
ConfigurationLp::Priced ConfigurationLp::Price(const std::vector<double>& demand,
                                               const Prices& prices) const {
  std::vector<ValuedRequest> valued;
  Priced priced;
  for (size_t i = 0; i < requests_.size(); ++i) {
    const double value = DevicesOf(requests_[i]) - prices[i];
    valued.push_back({requests_[i], std::llround(value * kMicros)});
    priced.bound += demand[i] * prices[i];
  }
  RoomValue values(std::move(valued));
  for (size_t k = 0; k < kinds_.size(); ++k) {
    priced.bound += static_cast<double>(kinds_[k].count) *
                    static_cast<double>(values.Of(kinds_[k].room)) / kMicros;
    Column column{.kind = k, .counts = {}};
    for (const size_t request : values.Best(kinds_[k].room)) {
      if (column.counts.empty() || column.counts.back().first != request) {
        column.counts.emplace_back(request, 0);
      }
      ++column.counts.back().second;
    }
    priced.columns.push_back(std::move(column));
  }
  return priced;
}

int ConfigurationLp::AddColumns(const std::vector<Column>& columns) {
  const double* duals = master_->dualRowSolution();
  const size_t first_kind = requests_.size();
  std::vector<const Column*> wanted;
  for (const Column& column : columns) {
    double gain = Devices(column) + duals[first_kind + column.kind];
    for (const auto& [request, count] : column.counts) gain += count * duals[request];
    if (gain > kLeastGain && known_.insert(column).second) wanted.push_back(&column);
  }
  for (const Column* column : wanted) {
    std::vector<int> rows;
    std::vector<double> amounts;
    for (const auto& [request, count] : column->counts) {
      rows.push_back(static_cast<int>(request));
      amounts.push_back(count);
    }
    rows.push_back(static_cast<int>(first_kind + column->kind));
    amounts.push_back(1);
    master_->addColumn(static_cast<int>(rows.size()), rows.data(), amounts.data(), 0, COIN_DBL_MAX,
                       -Devices(*column));
  }
  return static_cast<int>(wanted.size());
}

absl::StatusOr<ConfigurationLp::Solution> ConfigurationLp::Solve(
    const std::vector<double>& demand, const std::function<bool()>& stop) {
  for (size_t i = 0; i < demand.size(); ++i) {
    master_->setRowBounds(static_cast<int>(i), -COIN_DBL_MAX, demand[i]);
  }
  Solution solution;
  bool smooth = false;
  for (int i = 1; i <= kMaxIterations; ++i) {
    if (stop()) return absl::CancelledError("stopped");
    if (const absl::Status status = SolveMaster(); !status.ok()) return status;
    solution.devices = -master_->objectiveValue();
    solution.iterations = i;
    Prices prices = MasterPrices();
    if (smooth) {
      for (size_t k = 0; k < prices.size(); ++k) {
        prices[k] = kSmoothing * solution.prices[k] + (1 - kSmoothing) * prices[k];
      }
    }
    Priced priced = Price(demand, prices);
    if (solution.prices.empty() || priced.bound < solution.bound) {
      solution.bound = priced.bound;
      solution.prices = std::move(prices);
    }
    if (solution.bound - solution.devices <= kGap * total_) return solution;
    const int added = AddColumns(priced.columns);
    // Smoothed prices may find no column worth adding; the master's own prices do, unless it is
    // optimal.
    if (added == 0 && !smooth) return solution;
    smooth = added > 0;
  }
  return absl::ResourceExhaustedError("too many iterations");
}

}  // namespace berth
