#include "offline/replay/compare.h"

#include <google/protobuf/util/json_util.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/replay/figure_list.h"
#include "offline/replay/trace_file.h"
#include "offline/sim/output.h"
#include "support/visible_message.h"

namespace berth::replay {
namespace {

absl::StatusOr<sim::v1::ReplayResult> ReadResult(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTraceFile(path);
  if (!text.ok()) return text.status();
  sim::v1::ReplayResult result;
  const auto status = google::protobuf::util::JsonStringToMessage(*text, &result);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a result of a replay: ", std::string(status.message())));
  }
  if (result.policies_size() > 0) return result;
  return absl::InvalidArgumentError(absl::StrCat(path, ": contains no policy"));
}

std::string Label(const std::string& path, const sim::v1::PolicyResult& policy) {
  return absl::StrCat(path, ": ", policy.name());
}

// Rounded like a double in JSON; 0 and not -0 for no difference.
double Difference(double first, double second) { return second == first ? 0 : second - first; }

void AddFigures(const std::vector<Figure>& first, const std::vector<Figure>& second,
                google::protobuf::RepeatedPtrField<sim::v1::ComparedFigure>* to) {
  for (const FigureRow& row : FigureRows({first, second})) {
    sim::v1::ComparedFigure& figure = *to->Add();
    figure.set_name(row.name);
    figure.set_unit(row.unit);
    const auto &a = row.values[0], &b = row.values[1];
    if (a.has_value()) figure.set_first(*a);
    if (b.has_value()) figure.set_second(*b);
    if (a.has_value() && b.has_value()) figure.set_difference(Difference(*a, *b));
  }
}

using Owners = google::protobuf::RepeatedPtrField<sim::v1::OwnerResult>;

void AddOwners(const Owners& first, const Owners& second,
               google::protobuf::RepeatedPtrField<sim::v1::ComparedOwner>* to) {
  using Figures = std::vector<Figure>;
  std::map<std::string, std::pair<Figures, Figures>> by_name;
  for (const sim::v1::OwnerResult& one : first) by_name[one.name()].first = FigureList(one);
  for (const sim::v1::OwnerResult& one : second) by_name[one.name()].second = FigureList(one);
  for (const auto& [name, figures] : by_name) {
    sim::v1::ComparedOwner& owner = *to->Add();
    owner.set_name(name);
    AddFigures(figures.first, figures.second, owner.mutable_figures());
  }
}

sim::v1::ReplayComparison CompareTwo(const sim::v1::PolicyResult& first,
                                     const sim::v1::PolicyResult& second) {
  sim::v1::ReplayComparison comparison;
  AddFigures(FigureList(first), FigureList(second), comparison.mutable_figures());
  AddOwners(first.queues(), second.queues(), comparison.mutable_queues());
  AddOwners(first.users(), second.users(), comparison.mutable_users());
  return comparison;
}

std::vector<std::string> NotesOn(const sim::v1::ReplayResult& first,
                                 const sim::v1::ReplayResult& second) {
  std::vector<std::string> notes;
  if (first.workload() != second.workload()) {
    notes.push_back(
        absl::StrCat("different workloads: ", first.workload(), " and ", second.workload()));
  }
  if (first.jobs() != second.jobs()) {
    notes.push_back(
        absl::StrCat("different numbers of jobs: ", first.jobs(), " and ", second.jobs()));
  }
  return notes;
}

std::optional<double> Ratio(const sim::v1::ComparedFigure& figure) {
  if (!figure.has_difference() || figure.first() == 0) return std::nullopt;
  return 100 * figure.difference() / figure.first();
}

std::string Shown(bool has, double value) {
  return FigureText(has ? std::optional<double>(value) : std::nullopt, 3);
}

void AppendRow(const std::string& name, const sim::v1::ComparedFigure& one, std::string* text) {
  absl::StrAppendFormat(text, "%-32s %14s %14s %14s %9s\n", name,
                        Shown(one.has_first(), one.first()), Shown(one.has_second(), one.second()),
                        Shown(one.has_difference(), one.difference()), FigureText(Ratio(one), 1));
}

// A table for each figure, a line for each owner.
void AppendOwners(const google::protobuf::RepeatedPtrField<sim::v1::ComparedOwner>& owners,
                  const char* what, std::string* text) {
  for (const char* name :
       {"wait, mean", "wait, p95", "completion, mean", "slowdown, mean", "dominant share, mean"}) {
    absl::StrAppendFormat(text, "\n%-32s %14s %14s %14s %9s\n",
                          absl::StrCat("by ", what, ": ", name), "first", "second", "difference",
                          "%");
    for (const sim::v1::ComparedOwner& owner : owners) {
      for (const sim::v1::ComparedFigure& one : owner.figures()) {
        if (one.name() == name) AppendRow(owner.name().empty() ? "-" : owner.name(), one, text);
      }
    }
  }
}

std::string Table(const sim::v1::ReplayComparison& comparison, TableOf of) {
  std::string text =
      absl::StrFormat("first:  %s\nsecond: %s\n", comparison.first(), comparison.second());
  for (const std::string& note : comparison.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  absl::StrAppendFormat(&text, "\n%-32s %14s %14s %14s %9s\n", "", "first", "second", "difference",
                        "%");
  for (const sim::v1::ComparedFigure& one : comparison.figures()) {
    AppendRow(absl::StrFormat("%-25s %-6s", one.name(), one.unit()), one, &text);
  }
  if (of == TableOf::kQueues) AppendOwners(comparison.queues(), "queue", &text);
  if (of == TableOf::kUsers) AppendOwners(comparison.users(), "user", &text);
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
      for (const std::string& note : NotesOn(*a, *b)) comparisons.back().add_notes(note);
    }
  }
  if (!comparisons.empty()) return comparisons;
  return absl::InvalidArgumentError(
      absl::StrCat(first, " and ", second, " have no policy of the same name"));
}

std::string Printed(const std::vector<sim::v1::ReplayComparison>& comparisons,
                    absl::string_view format, TableOf of) {
  std::string text;
  for (const sim::v1::ReplayComparison& one : comparisons) {
    if (format == "table" && !text.empty()) text += "\n";
    text += format == "table" ? Table(VisibleCopy(one), of) : PrintedFigures(one, format);
  }
  return text;
}

}  // namespace berth::replay
