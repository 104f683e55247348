#include "core/model/device_topology.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr int64_t kMaxCpus = 1 << 16;

// The number of CPUs in "7" or "0-15"; -1 if it is neither.
int64_t CountRange(absl::string_view range) {
  const std::pair<absl::string_view, absl::string_view> ends =
      absl::StrSplit(range, absl::MaxSplits('-', 1));
  const bool one = range.find('-') == absl::string_view::npos;
  int32_t first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) || first < 0 || first >= kMaxCpus) return -1;
  if (one) return 1;
  if (!absl::SimpleAtoi(ends.second, &last) || last < first || last >= kMaxCpus) return -1;
  return last - first + 1;
}

}  // namespace

DeviceLink LinkBetween(const DeviceTopology& topology, size_t devices, size_t a, size_t b) {
  if (a == b || topology.between.empty()) return {};
  const size_t pair = PairIndex(std::min(a, b), std::max(a, b), devices);
  const auto code = static_cast<uint8_t>(topology.between[pair]);
  return code == 0 ? DeviceLink{} : topology.links[code - size_t{1}];
}

DeviceTopology Reordered(const DeviceTopology& topology, size_t before,
                         absl::Span<const int> from) {
  DeviceTopology result = topology;
  if (topology.between.empty()) return result;
  const size_t after = from.size();
  result.between.assign(PairsOf(after), '\0');
  for (size_t a = 0; a < after; ++a) {
    for (size_t b = a + 1; b < after; ++b) {
      if (from[a] < 0 || from[b] < 0) continue;
      const auto low = static_cast<size_t>(std::min(from[a], from[b]));
      const auto high = static_cast<size_t>(std::max(from[a], from[b]));
      result.between[PairIndex(a, b, after)] = topology.between[PairIndex(low, high, before)];
    }
  }
  return result;
}

int64_t CountCpus(const std::string& cpus) {
  if (cpus.empty()) return 0;
  int64_t count = 0;
  for (absl::string_view range : absl::StrSplit(cpus, ',')) {
    const int64_t more = CountRange(range);
    if (more < 0) return -1;
    count = std::min(count + more, kMaxCpus);
  }
  return count;
}

}  // namespace berth
