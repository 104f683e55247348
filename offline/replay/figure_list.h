// The figures of a policy as a list of numbers, for tables and comparisons.
#ifndef BERTH_OFFLINE_REPLAY_FIGURE_LIST_H_
#define BERTH_OFFLINE_REPLAY_FIGURE_LIST_H_

#include <optional>
#include <string>
#include <vector>

#include "berth/sim/v1/replay.pb.h"

namespace berth::replay {

struct Figure {
  std::string name;  // "wait, mean"
  std::string unit;  // "s", "%", "GPU h", ..., or empty
  double value = 0;
  int digits = 2;  // after the point
};
std::vector<Figure> FigureList(const sim::v1::PolicyResult& policy);
std::vector<Figure> FigureList(const sim::v1::OwnerResult& owner);

// A row for each figure of any list, a column for each list.
struct FigureRow {
  std::string name, unit;
  int digits = 2;
  std::vector<std::optional<double>> values;
};
std::vector<FigureRow> FigureRows(const std::vector<std::vector<Figure>>& lists);

// "12.50", "-" for nothing.
std::string FigureText(const std::optional<double>& value, int digits);

}  // namespace berth::replay

#endif  // BERTH_OFFLINE_REPLAY_FIGURE_LIST_H_
