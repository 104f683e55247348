#include "clients/slurm/hosts.h"

#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

constexpr size_t kMostDigits = 18;

struct NumberedHost {
  std::string prefix;
  std::string digits;  // at its end; may be empty
  int64_t number = 0;
};

NumberedHost SplitHost(const std::string& name) {
  size_t at = name.size();
  while (at > 0 && name[at - 1] >= '0' && name[at - 1] <= '9') --at;
  NumberedHost host{name.substr(0, at), name.substr(at)};
  const bool fits = host.digits.size() <= kMostDigits;
  if (!host.digits.empty() && fits && absl::SimpleAtoi(host.digits, &host.number)) return host;
  return {name, ""};
}

// `next` follows `last` in a range: "n09" after "n08", and "n10" after "n9".
bool Follows(const NumberedHost& last, const NumberedHost& next) {
  const bool grows = next.digits.size() == last.digits.size() + 1 && last.digits[0] != '0' &&
                     next.digits[0] != '0';
  return next.number == last.number + 1 && (next.digits.size() == last.digits.size() || grows);
}

std::string RangesOf(const std::vector<NumberedHost>& hosts, size_t begin, size_t end) {
  std::vector<std::string> ranges;
  for (size_t at = begin; at < end;) {
    size_t last = at;
    while (last + 1 < end && Follows(hosts[last], hosts[last + 1]) &&
           hosts[last + 1].digits.size() == hosts[at].digits.size()) {
      ++last;
    }
    ranges.push_back(last == at ? hosts[at].digits
                                : absl::StrCat(hosts[at].digits, "-", hosts[last].digits));
    at = last + 1;
  }
  return absl::StrJoin(ranges, ",");
}

}  // namespace

std::string CompressHosts(const std::vector<std::string>& names) {
  std::vector<NumberedHost> hosts;
  for (const std::string& name : names) hosts.push_back(SplitHost(name));
  std::vector<std::string> parts;
  for (size_t at = 0; at < hosts.size();) {
    size_t end = at + 1;
    const bool numbered = !hosts[at].digits.empty();
    while (numbered && end < hosts.size() && !hosts[end].digits.empty() &&
           hosts[end].prefix == hosts[at].prefix) {
      ++end;
    }
    parts.push_back(end == at + 1
                        ? names[at]
                        : absl::StrCat(hosts[at].prefix, "[", RangesOf(hosts, at, end), "]"));
    at = end;
  }
  return absl::StrJoin(parts, ",");
}

std::string CompressCounts(const std::vector<int>& counts) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < counts.size();) {
    size_t end = at;
    while (end < counts.size() && counts[end] == counts[at]) ++end;
    parts.push_back(end - at == 1 ? absl::StrCat(counts[at])
                                  : absl::StrCat(counts[at], "(x", end - at, ")"));
    at = end;
  }
  return absl::StrJoin(parts, ",");
}

}  // namespace berth
