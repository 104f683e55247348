#include "offline/replay/plot_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "offline/replay/csv_rows.h"
#include "offline/replay/replay_result.h"

namespace berth::replay {
namespace {

const std::vector<OwnerSum>& OwnersOf(const ReplayRun& run, OwnerKind kind) {
  return kind == OwnerKind::kQueue ? run.queues : run.users;
}

// The mean of a piecewise constant value over each of kPlotSteps equal steps.
class Steps {
 public:
  explicit Steps(double end) : width_(end / kPlotSteps), sums_(kPlotSteps), times_(kPlotSteps) {}

  // The value was `value` during this time.
  void Add(double from, double to, double value) {
    if (width_ <= 0) return;
    for (size_t i = At(from); i < kPlotSteps; ++i) {
      const double start = std::max(from, width_ * static_cast<double>(i));
      const double end = std::min(to, width_ * static_cast<double>(i + 1));
      if (start >= to) break;
      if (end <= start) continue;
      sums_[i] += value * (end - start);
      times_[i] += end - start;
    }
  }
  std::optional<double> Mean(size_t i) const {
    if (times_[i] <= 0) return std::nullopt;
    return sums_[i] / times_[i];
  }
  double Middle(size_t i) const { return width_ * (static_cast<double>(i) + 0.5); }

 private:
  size_t At(double time) const { return static_cast<size_t>(std::max(0.0, time / width_)); }

  const double width_;
  std::vector<double> sums_, times_;
};

double EndOf(const Record& record) {
  return record.moments.empty() ? 0 : record.moments.back().time;
}

std::string Number(const std::optional<double>& value) {
  return value.has_value() ? absl::StrFormat("%.6g", *value) : "";
}

// A cumulative distribution. Of values whose ranks differ by less than a thousandth of all, only
// some are kept. Values that many jobs share are always kept, and so is the last fiftieth.
std::string Cumulative(const char* name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::string text = absl::StrCat(name, ",percent,above_percent\n");
  const size_t count = values.size();
  size_t kept = 0;  // this many are at or below the last value that was kept
  for (size_t i = 0; i < count; ++i) {
    const bool last_of_equals = i + 1 == count || values[i + 1] > values[i];
    const bool far = i + 1 - kept >= count / 1000 + 1;
    if (!last_of_equals || !(kept == 0 || far || i + 1 + count / 50 >= count)) continue;
    kept = i + 1;
    const auto percent = [&](size_t part) {
      return 100 * static_cast<double>(part) / static_cast<double>(count);
    };
    absl::StrAppendFormat(&text, "%.6g,%.8g,%.6g\n", values[i], percent(kept),
                          percent(count - kept));
  }
  return text;
}

template <class Value>
std::vector<double> OfFinished(const Workload& workload, const ReplayRun& run, Value&& value) {
  std::vector<double> values;
  for (size_t i = 0; i < run.outcomes.size(); ++i) {
    if (run.outcomes[i].end == absl::InfiniteDuration()) continue;
    values.push_back(value(workload.jobs[i], run.outcomes[i]));
  }
  return values;
}

// From one change to the next of the same subject, and from the last one to the end.
template <class Change, class Subject, class Visit>
void ForEachSpell(const std::vector<Change>& changes, size_t subjects, double end,
                  Subject&& subject, Visit&& visit) {
  std::vector<const Change*> before(subjects, nullptr);
  for (const Change& change : changes) {
    const Change*& last = before[subject(change)];
    if (last != nullptr && change.time > last->time) visit(*last, change.time);
    last = &change;
  }
  for (const Change* last : before) {
    if (last != nullptr && end > last->time) visit(*last, end);
  }
}

TimelineRows RowsOfGpus(const Record& record) {
  TimelineRows rows{.what = "GPU"};
  for (const NodeOfRecord& node : record.nodes) {
    rows.of_node.push_back(rows.names.size());
    for (int64_t i = 0; i < node.gpus; ++i) rows.names.push_back(absl::StrCat(node.name, ":", i));
  }
  return rows;
}

TimelineRows RowsOfDomains(const Record& record) {
  TimelineRows rows{.what = "domain"};
  for (const NodeOfRecord& node : record.nodes) {
    const std::string name = node.domain.empty() ? "(none)" : node.domain;
    if (rows.names.empty() || rows.names.back() != name) rows.names.push_back(name);
    rows.of_node.push_back(rows.names.size() - 1);
  }
  return rows;
}

TimelineRows RowsOfBlocks(const Record& record) {
  const size_t size = (record.nodes.size() + kMaxShownRows - 1) / kMaxShownRows;
  TimelineRows rows{.what = size == 1 ? "node" : absl::StrCat("block of ", size, " nodes")};
  for (size_t i = 0; i < record.nodes.size(); ++i) {
    if (i % size == 0) rows.names.push_back(record.nodes[i].name);
    rows.of_node.push_back(rows.names.size() - 1);
  }
  return rows;
}

}  // namespace

TimeAxis AxisOf(const std::vector<PlottedRun>& runs) {
  double end = 0;
  for (const PlottedRun& one : runs) end = std::max(end, EndOf(one.run.record));
  TimeAxis axis{.unit = "seconds", .seconds = 1};
  if (end > 300) axis = {.unit = "minutes", .seconds = 60};
  if (end > 4 * 3600) axis = {.unit = "hours", .seconds = 3600};
  if (end > 4 * 86400) axis = {.unit = "days", .seconds = 86400};
  axis.end = end / axis.seconds;
  return axis;
}

std::string UtilisationCsv(const Record& record, const TimeAxis& axis) {
  const double end = EndOf(record);
  Steps held(end), unusable(end), waiting(end);
  const auto one = [](const Moment&) { return 0; };
  ForEachSpell(record.moments, 1, end, one, [&](const Moment& moment, double to) {
    held.Add(moment.time, to, 100 * moment.held);
    unusable.Add(moment.time, to, 100 * moment.unusable);
    waiting.Add(moment.time, to, static_cast<double>(moment.waiting));
  });
  std::string text = absl::StrCat("time_", axis.unit, ",in_use_percent,unusable_percent,waiting\n");
  for (size_t i = 0; i < kPlotSteps; ++i) {
    absl::StrAppend(&text, Number(held.Middle(i) / axis.seconds), ",", Number(held.Mean(i)), ",",
                    Number(unusable.Mean(i)), ",", Number(waiting.Mean(i)), "\n");
  }
  return text;
}

std::string WaitCsv(const Workload& workload, const ReplayRun& run) {
  return Cumulative("wait_seconds",
                    OfFinished(workload, run, [](const TraceJob& job, const Outcome& outcome) {
                      return absl::ToDoubleSeconds(outcome.first_start - job.submit);
                    }));
}

std::string SlowdownCsv(const Workload& workload, const ReplayRun& run) {
  return Cumulative("slowdown",
                    OfFinished(workload, run, [](const TraceJob& job, const Outcome& o) {
                      return SlowdownOf(job, o);
                    }));
}

std::vector<std::string> ShownOwners(const std::vector<PlottedRun>& runs, OwnerKind kind) {
  std::map<std::string, double> greatest;
  for (const PlottedRun& one : runs) {
    for (const OwnerSum& owner : OwnersOf(one.run, kind)) {
      greatest[owner.name] += owner.share.share_seconds;
    }
  }
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [name, share] : greatest) ranked.emplace_back(-share, name);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (const auto& [share, name] : ranked) {
    if (names.size() < kMaxShownOwners) names.push_back(name);
  }
  return names;
}

std::string SharesCsv(const ReplayRun& run, OwnerKind kind, const std::vector<std::string>& owners,
                      const TimeAxis& axis) {
  const double end = EndOf(run.record);
  const std::vector<OwnerSum>& all = OwnersOf(run, kind);
  std::vector<Steps> steps(all.size(), Steps(end));
  // Shares are 0 before the first change.
  std::vector<ShareMoment> shares;
  for (size_t owner = 0; owner < all.size(); ++owner) shares.push_back({.owner = owner});
  const auto& list = kind == OwnerKind::kQueue ? run.record.queue_shares : run.record.user_shares;
  shares.insert(shares.end(), list.begin(), list.end());
  ForEachSpell(
      shares, all.size(), end, [](const ShareMoment& m) { return m.owner; },
      [&](const ShareMoment& m, double to) { steps[m.owner].Add(m.time, to, 100 * m.share); });
  std::vector<size_t> columns;
  std::string text = absl::StrCat("time_", axis.unit);
  for (const std::string& name : owners) {
    absl::StrAppend(&text, ",", CsvField(name.empty() ? "-" : name));
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const OwnerSum& owner) { return owner.name == name; });
    columns.push_back(static_cast<size_t>(found - all.begin()));
  }
  for (size_t i = 0; i < kPlotSteps; ++i) {
    absl::StrAppend(&text, "\n", Number(Steps(end).Middle(i) / axis.seconds));
    for (const size_t column : columns) {
      absl::StrAppend(&text, ",", column < steps.size() ? Number(steps[column].Mean(i)) : "");
    }
  }
  return text + "\n";
}

TimelineRows RowsOf(const Record& record) {
  if (!record.spans.empty()) return RowsOfGpus(record);
  if (record.nodes.size() <= kMaxShownRows) return RowsOfBlocks(record);
  TimelineRows rows = RowsOfDomains(record);
  const bool few = rows.names.size() > 1 && rows.names.size() <= kMaxShownRows;
  return few ? rows : RowsOfBlocks(record);
}

std::string HeatCsv(const Record& record, const TimelineRows& rows, const TimeAxis& axis) {
  const double end = EndOf(record);
  std::vector<Steps> steps(rows.names.size(), Steps(end));
  ForEachSpell(
      record.node_moments, record.nodes.size(), end, [](const NodeMoment& m) { return m.node; },
      [&](const NodeMoment& m, double to) {
        if (m.ready) steps[rows.of_node[m.node]].Add(m.time, to, 100 * m.held);
      });
  std::string text = absl::StrCat("time_", axis.unit, ",row,in_use_percent\n");
  for (size_t row = 0; row < steps.size(); ++row) {
    for (size_t i = 0; i < kPlotSteps; ++i) {
      const std::optional<double> mean = steps[row].Mean(i);
      absl::StrAppend(&text, Number(steps[row].Middle(i) / axis.seconds), ",", row, ",",
                      mean.has_value() ? Number(mean) : "NaN", "\n");
    }
  }
  return text;
}

std::string SpansCsv(const Workload& workload, const Record& record, const TimelineRows& rows,
                     const TimeAxis& axis) {
  std::string text = absl::StrCat("start_", axis.unit, ",end_", axis.unit, ",row,job,name\n");
  for (const DeviceUseSpan& span : record.spans) {
    absl::StrAppend(&text, Number(span.start / axis.seconds), ",", Number(span.end / axis.seconds),
                    ",", rows.of_node[span.node] + span.device, ",", span.job, ",",
                    CsvField(workload.jobs[span.job].name), "\n");
  }
  return text;
}

}  // namespace berth::replay
