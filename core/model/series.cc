#include "core/model/series.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace berth {
namespace {

bool ReadNumber(absl::string_view text, int64_t* number) {
  return !text.empty() && text.size() <= 18 &&
         text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, number);
}

// "7", "0-99", "0-99:10".
std::optional<IndexRange> ReadRange(absl::string_view text) {
  IndexRange range;
  const std::vector<absl::string_view> stepped = absl::StrSplit(text, ':');
  if (stepped.size() > 2) return std::nullopt;
  const std::vector<absl::string_view> ends = absl::StrSplit(stepped[0], '-');
  if (ends.size() > 2 || !ReadNumber(ends[0], &range.from)) return std::nullopt;
  range.to = range.from;
  if (ends.size() == 2 && !ReadNumber(ends[1], &range.to)) return std::nullopt;
  if (stepped.size() == 2 && (ends.size() < 2 || !ReadNumber(stepped[1], &range.step)))
    return std::nullopt;
  if (range.to < range.from || range.step < 1) return std::nullopt;
  range.to = range.from + (range.Count() - 1) * range.step;
  if (range.Count() == 1) range.step = 1;
  return range;
}

}  // namespace

int64_t CountOf(const IndexRanges& ranges) {
  int64_t count = 0;
  for (const IndexRange& range : ranges) count += range.Count();
  return count;
}

int64_t IndexAt(const IndexRanges& ranges, int64_t position) {
  for (const IndexRange& range : ranges) {
    if (position < range.Count()) return range.from + position * range.step;
    position -= range.Count();
  }
  BERTH_CHECK(false);
  return 0;
}

std::optional<IndexRanges> ParseIndexRanges(absl::string_view text, int64_t most,
                                            std::string* error) {
  IndexRanges ranges;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const std::optional<IndexRange> range = ReadRange(part);
    if (!range.has_value()) {
      *error = absl::StrCat("\"", part,
                            "\" is no index, no range as \"0-99\", and no range with a "
                            "step as \"0-99:10\"");
      return std::nullopt;
    }
    if (range->to > most) {
      *error = absl::StrCat("index ", range->to, " is above ", most);
      return std::nullopt;
    }
    // Ascending ranges are disjoint without looking at single indexes.
    if (!ranges.empty() && ranges.back().to >= range->from) {
      *error = absl::StrCat("\"", part, "\" does not begin above ", ranges.back().to,
                            ", the index before it: write indexes in ascending order");
      return std::nullopt;
    }
    ranges.push_back(*range);
  }
  return ranges;
}

std::string TextOf(const IndexRanges& ranges, size_t most) {
  std::string text;
  for (const IndexRange& range : ranges) {
    if (text.size() > most) return absl::StrCat(text, ",...");
    absl::StrAppend(&text, text.empty() ? "" : ",", range.from);
    if (range.to > range.from) absl::StrAppend(&text, "-", range.to);
    if (range.step > 1) absl::StrAppend(&text, ":", range.step);
  }
  return text;
}

void AddIndex(int64_t index, IndexRanges& ranges) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), index,
                       [](int64_t wanted, const IndexRange& range) { return wanted < range.from; });
  const bool joins_next = after != ranges.end() && after->from == index + 1;
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    if (before->to >= index) return;
    if (before->to + 1 == index) {
      before->to = index;
      if (!joins_next) return;
      before->to = after->to;
      ranges.erase(after);
      return;
    }
  }
  if (joins_next) {
    after->from = index;
  } else {
    ranges.insert(after, {.from = index, .to = index});
  }
}

std::string MemberName(const std::string& series, const SeriesSpec& spec, int64_t index) {
  if (!spec.IsSchedule()) return absl::StrCat(series, ".", index);
  return absl::StrCat(
      series, ".",
      absl::FormatTime("%Y%m%d-%H%M%S", absl::FromUnixSeconds(index), absl::UTCTimeZone()));
}

}  // namespace berth
