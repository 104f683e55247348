#include "clients/cli/usage_figures.h"

#include <algorithm>
#include <numeric>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace berth {
namespace {

constexpr double kMilliSecondsOfHour = 3'600'000;
constexpr double kMebibyteSecondsOfGibibyteHour = 1024.0 * 3600;
constexpr int kPerMilleOfAll = 1000;

// "12.50" -> "12.5", "12.00" -> "12".
std::string WithoutZeros(std::string text) {
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

int64_t AmountOfTime(const v1::ResourceTime& time, const std::string& resource) {
  if (resource == "cpu") return time.cpu_milli_seconds();
  if (resource == "memory") return time.memory_mebibyte_seconds();
  if (resource == "scratch") return time.scratch_mebibyte_seconds();
  const auto found = time.count_milli_seconds().find(resource);
  return found == time.count_milli_seconds().end() ? 0 : found->second;
}

double HoursIn(int64_t amount, const std::string& resource) {
  const bool bytes = resource == "memory" || resource == "scratch";
  return static_cast<double>(amount) /
         (bytes ? kMebibyteSecondsOfGibibyteHour : kMilliSecondsOfHour);
}

double HoursOf(const v1::ResourceTime& time, const std::string& resource) {
  return HoursIn(AmountOfTime(time, resource), resource);
}

void AddTime(const v1::ResourceTime& time, v1::ResourceTime* sum) {
  sum->set_cpu_milli_seconds(sum->cpu_milli_seconds() + time.cpu_milli_seconds());
  sum->set_memory_mebibyte_seconds(sum->memory_mebibyte_seconds() + time.memory_mebibyte_seconds());
  sum->set_scratch_mebibyte_seconds(sum->scratch_mebibyte_seconds() +
                                    time.scratch_mebibyte_seconds());
  for (const auto& [kind, amount] : time.count_milli_seconds()) {
    (*sum->mutable_count_milli_seconds())[kind] += amount;
  }
}

void MeteredResources::See(const v1::ResourceTime& time) {
  for (const char* resource : {"cpu", "memory", "scratch"}) {
    if (AmountOfTime(time, resource) != 0) seen_.insert(resource);
  }
  for (const auto& [kind, amount] : time.count_milli_seconds()) {
    if (amount != 0) seen_.insert(kind);
  }
}

std::vector<std::string> MeteredResources::Seen() const {
  std::vector<std::string> resources = {"gpu", "cpu", "memory"};
  std::erase_if(resources, [&](const std::string& one) { return !seen_.contains(one); });
  for (const std::string& one : seen_) {
    if (one != "gpu" && one != "cpu" && one != "memory") resources.push_back(one);
  }
  return resources;
}

std::vector<std::string> MeteredResources::ForCsv() const {
  MeteredResources all = *this;
  all.seen_.insert({"gpu", "cpu", "memory"});
  return all.Seen();
}

std::string UnitName(const std::string& resource) {
  if (resource == "cpu") return "core-hours";
  if (resource == "memory") return "GiB-hours";
  if (resource == "scratch") return "scratch GiB-hours";
  return absl::StrCat(resource, "-hours");
}

std::string UnitHeading(const std::string& resource) {
  return absl::AsciiStrToUpper(UnitName(resource));
}

std::string UnitColumn(const std::string& resource) {
  if (resource == "cpu") return "core_hours";
  if (resource == "memory" || resource == "scratch") return absl::StrCat(resource, "_gib_hours");
  return absl::StrCat(absl::StrReplaceAll(resource, {{"-", "_"}}), "_hours");
}

std::string HoursText(double hours) {
  if (hours == 0) return "-";
  if (hours < 0.005) return "<0.01";
  return WithoutZeros(absl::StrFormat("%.2f", hours));
}

std::string HoursExact(double hours) { return WithoutZeros(absl::StrFormat("%.6f", hours)); }

std::vector<int> PerMille(const std::vector<int64_t>& amounts) {
  std::vector<int> shares(amounts.size(), 0);
  absl::int128 sum = 0;
  for (const int64_t amount : amounts) sum += amount;
  if (sum == 0) return shares;
  std::vector<size_t> order(amounts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto left = [&](size_t i) { return absl::int128(amounts[i]) * kPerMilleOfAll % sum; };
  int missing = kPerMilleOfAll;
  for (size_t i = 0; i < amounts.size(); ++i) {
    shares[i] = static_cast<int>(absl::int128(amounts[i]) * kPerMilleOfAll / sum);
    missing -= shares[i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return left(a) > left(b); });
  for (size_t i = 0; i < static_cast<size_t>(missing); ++i) ++shares[order[i]];
  return shares;
}

}  // namespace berth
