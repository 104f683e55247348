#include "clients/replay/figure_list.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace berth::replay {
namespace {

using Amounts = google::protobuf::Map<std::string, double>;

void AddDistribution(const std::string& name, const std::string& unit,
                     const sim::v1::Distribution& of, std::vector<Figure>* to) {
  to->push_back({name + ", mean", unit, of.mean()});
  to->push_back({name + ", median", unit, of.median()});
  to->push_back({name + ", p95", unit, of.p95()});
  to->push_back({name + ", p99", unit, of.p99()});
  to->push_back({name + ", max", unit, of.max()});
}

void AddPercent(const std::string& name, const Amounts& amounts, std::vector<Figure>* to) {
  for (const auto& [resource, part] : std::map<std::string, double>(amounts.begin(), amounts.end()))
    to->push_back({absl::StrCat(name, " of ", resource), "%", 100 * part});
}

// Devices and cores; of memory and what else there is, only JSON tells.
void AddHours(const std::string& name, const Amounts& amounts, std::vector<Figure>* to) {
  constexpr double kHour = 3600, kMillis = 1000;
  if (const auto gpu = amounts.find("gpu"); gpu != amounts.end()) {
    to->push_back({name, "GPU h", gpu->second / kHour});
  }
  if (const auto cpu = amounts.find("cpu"); cpu != amounts.end()) {
    to->push_back({name, "core h", cpu->second / kHour / kMillis});
  }
}

void AddCount(const std::string& name, int64_t count, std::vector<Figure>* to) {
  to->push_back({name, "", static_cast<double>(count), 0});
}

}  // namespace

std::vector<Figure> FigureList(const sim::v1::PolicyResult& policy) {
  std::vector<Figure> list;
  AddDistribution("wait", "s", policy.wait(), &list);
  AddDistribution("completion", "s", policy.completion(), &list);
  AddDistribution("slowdown", "", policy.bounded_slowdown(), &list);
  list.push_back({"makespan", "s", policy.makespan(), 0});
  AddPercent("utilisation", policy.utilisation(), &list);
  AddPercent("goodput", policy.goodput(), &list);
  if (policy.has_fragmentation()) {
    list.push_back({"fragmentation", "%", 100 * policy.fragmentation()});
  }
  if (policy.has_queue_fairness()) {
    list.push_back({"fairness of queues", "", policy.queue_fairness(), 3});
  }
  if (policy.has_user_fairness()) {
    list.push_back({"fairness of users", "", policy.user_fairness(), 3});
  }
  AddCount("finished", policy.finished(), &list);
  AddCount("never started", policy.never(), &list);
  AddCount("preemptions", policy.preemptions(), &list);
  AddCount("tasks evicted", policy.evictions(), &list);
  AddCount("stopped by failures", policy.failures(), &list);
  AddHours("lost to preemptions", policy.lost(), &list);
  AddHours("lost to failures", policy.lost_to_failures(), &list);
  for (const sim::v1::Tier& tier : policy.tiers()) {
    AddCount(absl::StrCat("gangs in: ", tier.name()), tier.jobs(), &list);
  }
  return list;
}

std::vector<FigureRow> FigureRows(const std::vector<const sim::v1::PolicyResult*>& policies) {
  using Values = std::vector<std::optional<double>>;
  std::vector<FigureRow> rows;
  for (size_t column = 0; column < policies.size(); ++column) {
    size_t after = 0;  // where a figure that is new has its place
    for (const Figure& figure : FigureList(*policies[column])) {
      auto found = std::find_if(rows.begin(), rows.end(), [&](const FigureRow& row) {
        return row.name == figure.name && row.unit == figure.unit;
      });
      if (found == rows.end()) {
        found = rows.insert(rows.begin() + static_cast<ptrdiff_t>(after),
                            FigureRow{.name = figure.name,
                                      .unit = figure.unit,
                                      .digits = figure.digits,
                                      .values = Values(policies.size())});
      }
      found->values[column] = figure.value;
      after = static_cast<size_t>(found - rows.begin()) + 1;
    }
  }
  return rows;
}

std::string FigureText(const std::optional<double>& value, int digits) {
  return value.has_value() ? absl::StrFormat("%.*f", digits, *value) : "-";
}

}  // namespace berth::replay
