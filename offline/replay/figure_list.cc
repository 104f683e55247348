#include "offline/replay/figure_list.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace berth::replay {
namespace {

using AmountsByName = google::protobuf::Map<std::string, double>;

void AddDistribution(const std::string& name, const std::string& unit,
                     const sim::v1::Distribution& of, std::vector<Figure>* to) {
  to->push_back({name + ", mean", unit, of.mean()});
  to->push_back({name + ", median", unit, of.median()});
  to->push_back({name + ", p95", unit, of.p95()});
  to->push_back({name + ", p99", unit, of.p99()});
  to->push_back({name + ", max", unit, of.max()});
}

std::map<std::string, double> Sorted(const AmountsByName& amounts) {
  return {amounts.begin(), amounts.end()};
}

void AddPercent(const std::string& name, const AmountsByName& amounts, std::vector<Figure>* to) {
  for (const auto& [resource, part] : Sorted(amounts))
    to->push_back({absl::StrCat(name, " of ", resource), "%", 100 * part});
}

// Devices and cores. Memory and other resources are only in JSON.
void AddHours(const std::string& name, const AmountsByName& amounts, std::vector<Figure>* to) {
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

template <class Result>
void AddTimes(const Result& of, std::vector<Figure>* to) {
  AddDistribution("wait", "s", of.wait(), to);
  AddDistribution("completion", "s", of.completion(), to);
  AddDistribution("slowdown", "", of.bounded_slowdown(), to);
  to->push_back({"makespan", "s", of.makespan(), 0});
  AddPercent("utilisation", of.utilisation(), to);
  AddPercent("goodput", of.goodput(), to);
}

template <class Result>
void AddEnds(const Result& of, std::vector<Figure>* to) {
  AddCount("finished", of.finished(), to);
  AddCount("never started", of.never(), to);
  AddCount("preemptions", of.preemptions(), to);
  AddCount("tasks evicted", of.evictions(), to);
  AddCount("stopped by failures", of.failures(), to);
  AddHours("lost to preemptions", of.lost(), to);
  AddHours("lost to failures", of.lost_to_failures(), to);
  for (const sim::v1::Tier& tier : of.tiers()) {
    AddCount(absl::StrCat("gangs in: ", tier.name()), tier.jobs(), to);
  }
}

void AddNetwork(const sim::v1::NetworkFigures& network, std::vector<Figure>* to) {
  constexpr double kBytesPerTb = 1e12;
  AddDistribution("run / alone", "", network.slowdown(), to);
  AddCount("jobs that communicate", network.jobs(), to);
  to->push_back({"useful device time", "%", 100 * network.useful()});
  AddCount("stopped with work left", network.stopped(), to);
  for (const auto& [tier, bytes] : Sorted(network.traffic())) {
    to->push_back({absl::StrCat("traffic out of ", tier), "TB", bytes / kBytesPerTb, 1});
  }
}

void AddTraining(const sim::v1::TrainingFigures& training, std::vector<Figure>* to) {
  to->push_back({"effective training time", "%", 100 * training.ettr()});
  to->push_back({"time for checkpoints", "%", 100 * training.checkpoints()});
  to->push_back({"time for lost work", "%", 100 * training.lost()});
  to->push_back({"time in unknown faults", "%", 100 * training.undetected()});
  to->push_back({"time without places", "%", 100 * training.waiting()});
  to->push_back({"time to start again", "%", 100 * training.restarts()});
  AddCount("stopped with work left", training.stopped(), to);
  AddCount("faults", training.faults(), to);
  const auto& causes = training.interruptions();
  for (const auto& [cause, count] : std::map<std::string, int64_t>(causes.begin(), causes.end())) {
    AddCount(absl::StrCat("by ", cause), count, to);
  }
}

}  // namespace

std::vector<Figure> FigureList(const sim::v1::PolicyResult& policy) {
  std::vector<Figure> list;
  AddTimes(policy, &list);
  if (policy.has_fragmentation()) {
    list.push_back({"fragmentation", "%", 100 * policy.fragmentation()});
  }
  if (policy.has_queue_fairness()) {
    list.push_back({"fairness of queues", "", policy.queue_fairness(), 3});
  }
  if (policy.has_user_fairness()) {
    list.push_back({"fairness of users", "", policy.user_fairness(), 3});
  }
  AddEnds(policy, &list);
  if (policy.has_network()) AddNetwork(policy.network(), &list);
  if (policy.has_training()) AddTraining(policy.training(), &list);
  return list;
}

std::vector<Figure> FigureList(const sim::v1::OwnerResult& owner) {
  std::vector<Figure> list;
  AddCount("jobs", owner.jobs(), &list);
  AddTimes(owner, &list);
  list.push_back({"dominant share, mean", "%", 100 * owner.share()});
  list.push_back({"dominant share, max", "%", 100 * owner.max_share()});
  AddEnds(owner, &list);
  return list;
}

std::vector<FigureRow> FigureRows(const std::vector<std::vector<Figure>>& lists) {
  using Values = std::vector<std::optional<double>>;
  std::vector<FigureRow> rows;
  for (size_t column = 0; column < lists.size(); ++column) {
    size_t after = 0;  // the position for a new figure
    for (const Figure& figure : lists[column]) {
      auto found = std::find_if(rows.begin(), rows.end(), [&](const FigureRow& row) {
        return row.name == figure.name && row.unit == figure.unit;
      });
      if (found == rows.end()) {
        found = rows.insert(rows.begin() + static_cast<ptrdiff_t>(after),
                            FigureRow{.name = figure.name,
                                      .unit = figure.unit,
                                      .digits = figure.digits,
                                      .values = Values(lists.size())});
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
