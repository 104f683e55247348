// Resources times time, as hours: for tables and CSV.
#ifndef BERTH_CLIENTS_CLI_USAGE_FIGURES_H_
#define BERTH_CLIENTS_CLI_USAGE_FIGURES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "berth/v1/history.pb.h"

namespace berth {

// Names of resources as everywhere: "cpu", "memory", "scratch", and kinds of devices.
// In thousandths of a core or device times seconds, or in MiB times seconds.
int64_t AmountOfTime(const v1::ResourceTime& time, const std::string& resource);
// In core-hours, GiB-hours, or hours of one device.
double HoursIn(int64_t amount, const std::string& resource);
double HoursOf(const v1::ResourceTime& time, const std::string& resource);
void AddTime(const v1::ResourceTime& time, v1::ResourceTime* sum);

// Collects the resources of an answer.
class MeteredResources {
 public:
  void See(const v1::ResourceTime& time);
  // "gpu", "cpu", "memory", then the others by name: those that were seen.
  std::vector<std::string> Seen() const;
  // Also the first three if they were not seen, so that scripts find their columns.
  std::vector<std::string> ForCsv() const;
  // "gpu", or "cpu" if no GPU was seen: what losses are counted in.
  std::string Main() const { return seen_.contains("gpu") ? "gpu" : "cpu"; }

 private:
  std::set<std::string> seen_;
};

// "gpu-hours", "core-hours", "GiB-hours", "scratch GiB-hours", "nic-hours".
std::string UnitName(const std::string& resource);
// "GPU-HOURS": a heading of a table.
std::string UnitHeading(const std::string& resource);
// "gpu_hours", "core_hours", "memory_gib_hours", "scratch_gib_hours", "nic_hours": a column of CSV.
std::string UnitColumn(const std::string& resource);

// At most two decimals: "1234.5"; "<0.01"; "-" for nothing.
std::string HoursText(double hours);
// For programs: six decimals, without zeros at the end.
std::string HoursExact(double hours);

// Shares of 1000 that add up to 1000, by largest remainders; all 0 if the amounts are.
std::vector<int> PerMille(const std::vector<int64_t>& amounts);

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_USAGE_FIGURES_H_
