#include "clients/replay/compare.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/replay/figure_list.h"
#include "clients/replay/trace_file.h"
#include "clients/sim/output.h"

namespace berth::replay {
namespace {

absl::StatusOr<sim::v1::ReplayResult> ReadResult(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTraceFile(path);
  if (!text.ok()) return text.status();
  sim::v1::ReplayResult result;
  const auto status = google::protobuf::util::JsonStringToMessage(*text, &result);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no result of a replay: ", std::string(status.message())));
  }
  if (result.policies_size() > 0) return result;
  return absl::InvalidArgumentError(absl::StrCat(path, ": no policy in it"));
}

std::string Label(const std::string& path, const sim::v1::PolicyResult& policy) {
  return absl::StrCat(path, ": ", policy.name());
}

// As a double in JSON would show it; 0 and not -0 for no difference.
double Difference(double first, double second) { return second == first ? 0 : second - first; }

sim::v1::ReplayComparison CompareTwo(const sim::v1::PolicyResult& first,
                                     const sim::v1::PolicyResult& second) {
  sim::v1::ReplayComparison comparison;
  for (const FigureRow& row : FigureRows({&first, &second})) {
    sim::v1::ComparedFigure& figure = *comparison.add_figures();
    figure.set_name(row.name);
    figure.set_unit(row.unit);
    const auto &a = row.values[0], &b = row.values[1];
    if (a.has_value()) figure.set_first(*a);
    if (b.has_value()) figure.set_second(*b);
    if (a.has_value() && b.has_value()) figure.set_difference(Difference(*a, *b));
  }
  return comparison;
}

std::optional<double> Ratio(const sim::v1::ComparedFigure& figure) {
  if (!figure.has_difference() || figure.first() == 0) return std::nullopt;
  return 100 * figure.difference() / figure.first();
}

std::string Table(const sim::v1::ReplayComparison& comparison) {
  std::string text =
      absl::StrFormat("first:  %s\nsecond: %s\n\n%-32s %14s %14s %14s %9s\n", comparison.first(),
                      comparison.second(), "", "first", "second", "difference", "%");
  for (const sim::v1::ComparedFigure& one : comparison.figures()) {
    const auto shown = [](bool has, double value) {
      return FigureText(has ? std::optional<double>(value) : std::nullopt, 3);
    };
    absl::StrAppendFormat(&text, "%-25s %-6s %14s %14s %14s %9s\n", one.name(), one.unit(),
                          shown(one.has_first(), one.first()),
                          shown(one.has_second(), one.second()),
                          shown(one.has_difference(), one.difference()), FigureText(Ratio(one), 1));
  }
  return text;
}

}  // namespace

absl::StatusOr<std::vector<sim::v1::ReplayComparison>> Compare(const std::string& first,
                                                               const std::string& second) {
  const absl::StatusOr<sim::v1::ReplayResult> a = ReadResult(first);
  if (!a.ok()) return a.status();
  const absl::StatusOr<sim::v1::ReplayResult> b = ReadResult(second);
  if (!b.ok()) return b.status();
  const bool alone = a->policies_size() == 1 && b->policies_size() == 1;
  std::vector<sim::v1::ReplayComparison> comparisons;
  for (const sim::v1::PolicyResult& one : a->policies()) {
    for (const sim::v1::PolicyResult& other : b->policies()) {
      if (!alone && one.name() != other.name()) continue;
      comparisons.push_back(CompareTwo(one, other));
      comparisons.back().set_first(Label(first, one));
      comparisons.back().set_second(Label(second, other));
    }
  }
  if (!comparisons.empty()) return comparisons;
  return absl::InvalidArgumentError(
      absl::StrCat(first, " and ", second, " have no policy of the same name"));
}

std::string Printed(const std::vector<sim::v1::ReplayComparison>& comparisons,
                    absl::string_view format) {
  std::string text;
  for (const sim::v1::ReplayComparison& one : comparisons) {
    if (format == "table" && !text.empty()) text += "\n";
    text += format == "table" ? Table(one) : PrintedMessage(one, format);
  }
  return text;
}

}  // namespace berth::replay
