#include "clients/cli/usage_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "clients/cli/csv.h"
#include "clients/cli/usage_figures.h"
#include "support/proto_time.h"

namespace berth {
namespace {

using UsageRequest = v1::GetUsageRequest;
constexpr absl::Duration kLagNamed = absl::Minutes(1);

// Columns of one kind of key: of a table, of CSV, and the values of a row.
struct UsageKey {
  UsageRequest::Dimension dimension;
  const char* heading;
  const char* column;
  const std::string& (v1::UsageRow::*value)() const;
};
constexpr UsageKey kUsageKeys[] = {
    {UsageRequest::QUEUE, "QUEUE", "queue", &v1::UsageRow::queue},
    {UsageRequest::USER, "USER", "user", &v1::UsageRow::user},
    {UsageRequest::ACCOUNT, "ACCOUNT", "account", &v1::UsageRow::account},
    {UsageRequest::PRIORITY_CLASS, "CLASS", "priority_class", &v1::UsageRow::priority_class},
    {UsageRequest::DEVICE_MODEL, "MODEL", "device_model", &v1::UsageRow::device_model}};

// What a row counts besides what was held.
struct UsagePart {
  const char* heading;
  const char* suffix;  // of a column of CSV
  bool wide;
  const v1::ResourceTime& (v1::UsageRow::*time)() const;
};
constexpr UsagePart kUsageParts[] = {
    {"LOST TO PREEMPTION", "lost_to_preemption", false, &v1::UsageRow::lost_to_preemption},
    {"LOST TO FAULTS", "lost_to_faults", false, &v1::UsageRow::lost_to_faults},
    {"PAUSED", "paused", true, &v1::UsageRow::paused},
    {"RESERVED", "reserved", true, &v1::UsageRow::reserved},
    {"WAITING", "waiting", true, &v1::UsageRow::waiting}};

// How capacity is divided, in the order of the message.
struct CapacityPart {
  const char* heading;
  const char* suffix;
  const v1::ResourceTime& (v1::CapacityRow::*time)() const;
};
constexpr CapacityPart kCapacityParts[] = {
    {"HELD", "held", &v1::CapacityRow::held},
    {"RESERVED", "reserved", &v1::CapacityRow::reserved},
    {"FREE", "free", &v1::CapacityRow::free},
    {"FRAGMENTED", "fragmented", &v1::CapacityRow::fragmented},
    {"CORDONED", "cordoned", &v1::CapacityRow::cordoned},
    {"DOWN", "down", &v1::CapacityRow::down},
    {"UNHEALTHY", "unhealthy", &v1::CapacityRow::unhealthy}};

std::vector<const UsageKey*> KeysOf(const UsageRequest& request) {
  std::vector<const UsageKey*> keys;
  for (const UsageKey& key : kUsageKeys) {
    for (const int dimension : request.by()) {
      if (dimension == key.dimension) keys.push_back(&key);
    }
  }
  return keys;
}

MeteredResources ResourcesIn(const v1::GetUsageResponse& usage) {
  MeteredResources resources;
  for (const v1::UsageRow& row : usage.rows()) {
    resources.See(row.held());
    for (const UsagePart& part : kUsageParts) resources.See((row.*part.time)());
  }
  return resources;
}

MeteredResources ResourcesIn(const v1::GetCapacityResponse& capacity) {
  MeteredResources resources;
  for (const v1::CapacityRow& row : capacity.rows()) {
    resources.See(row.total());
    for (const CapacityPart& share : kCapacityParts) resources.See((row.*share.time)());
  }
  return resources;
}

std::string ValueText(const std::string& value) { return value.empty() ? "-" : value; }

// Of a row of a table, behind its keys: the main resource and its parts, then the others.
void AddFigures(const v1::UsageRow& row, const std::string& main,
                const std::vector<std::string>& others, std::vector<Word>* cells) {
  cells->push_back({HoursText(HoursOf(row.held(), main))});
  for (const UsagePart& part : kUsageParts) {
    cells->push_back({HoursText(HoursOf((row.*part.time)(), main))});
  }
  for (const std::string& one : others) cells->push_back({HoursText(HoursOf(row.held(), one))});
}

v1::UsageRow SumOf(const v1::GetUsageResponse& usage) {
  v1::UsageRow sum;
  for (const v1::UsageRow& row : usage.rows()) {
    AddTime(row.held(), sum.mutable_held());
    AddTime(row.lost_to_preemption(), sum.mutable_lost_to_preemption());
    AddTime(row.lost_to_faults(), sum.mutable_lost_to_faults());
    AddTime(row.paused(), sum.mutable_paused());
    AddTime(row.reserved(), sum.mutable_reserved());
    AddTime(row.waiting(), sum.mutable_waiting());
  }
  return sum;
}

std::vector<Column> UsageColumns(const UsageRequest& request, const std::string& main,
                                 const std::vector<std::string>& others) {
  std::vector<Column> columns;
  if (request.step() != v1::HISTORY_STEP_TOTAL) columns.push_back({"PERIOD (UTC)"});
  for (const UsageKey* key : KeysOf(request)) columns.push_back({key->heading});
  columns.push_back({UnitHeading(main), Column::kRight});
  for (const UsagePart& part : kUsageParts) {
    columns.push_back({part.heading, Column::kRight | (part.wide ? Column::kWide : 0)});
  }
  for (const std::string& one : others) columns.push_back({UnitHeading(one), Column::kRight});
  return columns;
}

std::vector<std::string> TimesForCsv(const google::protobuf::Timestamp& from,
                                     const google::protobuf::Timestamp& to) {
  return {TimeForCsv(true, from), TimeForCsv(true, to)};
}

std::vector<std::string> UsageCsvHeader(const UsageRequest& request,
                                        const std::vector<std::string>& resources) {
  std::vector<std::string> cells = {"from", "to"};
  for (const UsageKey* key : KeysOf(request)) {
    cells.push_back(key->column);
    if (key->dimension == UsageRequest::QUEUE) cells.push_back("queue_path");
  }
  for (const std::string& one : resources) {
    cells.push_back(UnitColumn(one));
    for (const UsagePart& part : kUsageParts) {
      cells.push_back(absl::StrCat(UnitColumn(one), "_", part.suffix));
    }
  }
  return cells;
}

std::string Percent(int per_mille) {
  if (per_mille == 0) return "-";
  if (per_mille == 1000) return "100%";
  return absl::StrFormat("%d.%d%%", per_mille / 10, per_mille % 10);
}

std::vector<std::string> ShareTexts(const v1::CapacityRow& row, const std::string& resource,
                                    bool hours) {
  std::vector<int64_t> amounts;
  std::vector<std::string> texts;
  for (const CapacityPart& share : kCapacityParts) {
    amounts.push_back(AmountOfTime((row.*share.time)(), resource));
    if (hours) texts.push_back(HoursText(HoursIn(amounts.back(), resource)));
  }
  if (hours) return texts;
  for (const int share : PerMille(amounts)) texts.push_back(Percent(share));
  return texts;
}

std::string InUtc(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

}  // namespace

std::string PeriodText(v1::HistoryStep step, const google::protobuf::Timestamp& from) {
  const char* format = step == v1::HISTORY_STEP_MONTH ? "%Y-%m"
                       : step == v1::HISTORY_STEP_DAY ? "%Y-%m-%d"
                                                      : "%Y-%m-%d %H:%M";
  return absl::FormatTime(format, TimeFrom(from), absl::UTCTimeZone());
}

std::string TimeForCsv(bool has, const google::protobuf::Timestamp& time) {
  return has ? absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", TimeFrom(time), absl::UTCTimeZone()) : "";
}

Table UsageTable(const UsageRequest& request, const v1::GetUsageResponse& usage) {
  const MeteredResources resources = ResourcesIn(usage);
  const std::string main = resources.Main();
  std::vector<std::string> others = resources.Seen();
  std::erase(others, main);
  const std::vector<const UsageKey*> keys = KeysOf(request);
  const bool periods = request.step() != v1::HISTORY_STEP_TOTAL;
  Table table(UsageColumns(request, main, others));
  for (const v1::UsageRow& row : usage.rows()) {
    std::vector<Word> cells;
    if (periods) cells.push_back({PeriodText(request.step(), row.from())});
    for (const UsageKey* key : keys) cells.push_back({ValueText((row.*key->value)())});
    AddFigures(row, main, others, &cells);
    table.AddRow(std::move(cells));
  }
  const size_t lead = keys.size() + (periods ? 1 : 0);
  if (usage.rows_size() > 1 && lead > 0) {
    std::vector<Word> cells(lead, Word{" "});
    cells.front() = {"TOTAL"};
    AddFigures(SumOf(usage), main, others, &cells);
    table.AddRow(std::move(cells));
  }
  return table;
}

std::string UsageCsv(const UsageRequest& request, const v1::GetUsageResponse& usage) {
  const std::vector<std::string> resources = ResourcesIn(usage).ForCsv();
  const std::vector<const UsageKey*> keys = KeysOf(request);
  std::string text = CsvLine(UsageCsvHeader(request, resources));
  for (const v1::UsageRow& row : usage.rows()) {
    std::vector<std::string> cells = TimesForCsv(row.from(), row.to());
    for (const UsageKey* key : keys) {
      cells.push_back((row.*key->value)());
      if (key->dimension == UsageRequest::QUEUE) cells.push_back(row.queue_path());
    }
    for (const std::string& one : resources) {
      cells.push_back(HoursExact(HoursOf(row.held(), one)));
      for (const UsagePart& part : kUsageParts) {
        cells.push_back(HoursExact(HoursOf((row.*part.time)(), one)));
      }
    }
    absl::StrAppend(&text, CsvLine(cells));
  }
  return text;
}

Table CapacityTable(const v1::GetCapacityRequest& request, const v1::GetCapacityResponse& capacity,
                    bool hours) {
  const bool periods = request.step() != v1::HISTORY_STEP_TOTAL;
  std::vector<Column> columns;
  if (periods) columns.push_back({"PERIOD (UTC)"});
  if (request.by_model()) columns.push_back({"MODEL"});
  columns.push_back({"RESOURCE"});
  columns.push_back({"CAPACITY", Column::kRight});
  for (const CapacityPart& share : kCapacityParts)
    columns.push_back({share.heading, Column::kRight});
  columns.push_back({"OVERCOMMITTED", Column::kRight | Column::kWide});
  Table table(std::move(columns));
  for (const v1::CapacityRow& row : capacity.rows()) {
    MeteredResources resources;
    resources.See(row.total());
    resources.See(row.overcommitted());
    for (const std::string& one : resources.Seen()) {
      std::vector<Word> cells;
      if (periods) cells.push_back({PeriodText(request.step(), row.from())});
      if (request.by_model()) cells.push_back({ValueText(row.device_model())});
      cells.push_back({UnitName(one)});
      cells.push_back({HoursText(HoursOf(row.total(), one))});
      for (std::string& text : ShareTexts(row, one, hours)) cells.push_back({std::move(text)});
      cells.push_back({HoursText(HoursOf(row.overcommitted(), one))});
      table.AddRow(std::move(cells));
    }
  }
  return table;
}

std::string CapacityCsv(const v1::GetCapacityRequest& request,
                        const v1::GetCapacityResponse& capacity) {
  const std::vector<std::string> resources = ResourcesIn(capacity).ForCsv();
  std::vector<std::string> header = {"from", "to"};
  if (request.by_model()) header.push_back("device_model");
  for (const std::string& one : resources) {
    header.push_back(absl::StrCat(UnitColumn(one), "_total"));
    header.push_back(absl::StrCat(UnitColumn(one), "_overcommitted"));
    for (const CapacityPart& share : kCapacityParts) {
      header.push_back(absl::StrCat(UnitColumn(one), "_", share.suffix));
    }
  }
  std::string text = CsvLine(header);
  for (const v1::CapacityRow& row : capacity.rows()) {
    std::vector<std::string> cells = TimesForCsv(row.from(), row.to());
    if (request.by_model()) cells.push_back(row.device_model());
    for (const std::string& one : resources) {
      cells.push_back(HoursExact(HoursOf(row.total(), one)));
      cells.push_back(HoursExact(HoursOf(row.overcommitted(), one)));
      for (const CapacityPart& share : kCapacityParts) {
        cells.push_back(HoursExact(HoursOf((row.*share.time)(), one)));
      }
    }
    absl::StrAppend(&text, CsvLine(cells));
  }
  return text;
}

void PrintHistoryNotes(Session& session, const v1::HistoryState& state, absl::Time from,
                       absl::Time to) {
  std::ostream& err = session.err();
  to = std::min(to, session.Now());
  const absl::Time since = TimeFrom(state.since()), as_of = TimeFrom(state.as_of());
  if (state.has_since() && from != absl::InfinitePast() && since > from) {
    err << "berth: nothing is known before " << InUtc(since) << "\n";
  }
  for (const v1::HistoryGap& gap : state.gaps()) {
    const absl::Time begin = TimeFrom(gap.from()), end = TimeFrom(gap.to());
    if (end <= from || begin >= to) continue;
    err << "berth: too little is known of the time from " << InUtc(begin) << " to " << InUtc(end)
        << ": the server kept no history then\n";
  }
  if (state.has_as_of() && to - as_of > kLagNamed) {
    err << "berth: the figures end at " << InUtc(as_of)
        << ": the server has not counted yet what followed\n";
  }
}

}  // namespace berth
