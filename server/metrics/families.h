// Small builders of Prometheus metric families.
#ifndef BERTH_SERVER_METRICS_FAMILIES_H_
#define BERTH_SERVER_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "server/loop/histogram.h"

namespace berth {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Collects families in order of first use. Names without the prefix, counters without "_total".
class FamilyList {
 public:
  void Gauge(const std::string& name, const std::string& help, double value,
             const MetricLabels& labels = {});
  void Counter(const std::string& name, const std::string& help, double value,
               const MetricLabels& labels = {});
  void AddHistogram(const std::string& name, const std::string& help, const Histogram& histogram);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  prometheus::ClientMetric& Add(const std::string& name, const std::string& help,
                                prometheus::MetricType type, const MetricLabels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace berth

#endif  // BERTH_SERVER_METRICS_FAMILIES_H_
