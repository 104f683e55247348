#include "server/metrics/families.h"

#include "support/visible.h"

namespace berth {

prometheus::ClientMetric& FamilyList::Add(const std::string& name, const std::string& help,
                                          prometheus::MetricType type, const MetricLabels& labels) {
  const std::string full = "berth_" + name;
  // The samples of one family are consecutive.
  if (families_.empty() || families_.back().name != full) {
    families_.emplace_back();
    families_.back().name = full;
    families_.back().help = help;
    families_.back().type = type;
  }
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  for (const auto& [label, value] : labels) {
    auto& added = metric.label.emplace_back();
    added.name = label;
    added.value = Visible(value);
  }
  return metric;
}

void FamilyList::Gauge(const std::string& name, const std::string& help, double value,
                       const MetricLabels& labels) {
  Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void FamilyList::Counter(const std::string& name, const std::string& help, double value,
                         const MetricLabels& labels) {
  Add(name + "_total", help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void FamilyList::AddHistogram(const std::string& name, const std::string& help,
                              const Histogram& histogram) {
  prometheus::ClientMetric& metric = Add(name, help, prometheus::MetricType::Histogram, {});
  uint64_t cumulative = 0;
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    cumulative += histogram.Count(i);
    metric.histogram.bucket.push_back({cumulative, histogram.Bound(i)});
  }
  metric.histogram.sample_count = cumulative + histogram.Count(Histogram::kBuckets);
  metric.histogram.sample_sum = histogram.SumSeconds();
}

}  // namespace berth
