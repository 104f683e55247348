#include "clients/cli/array_range.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

bool ParseNumber(absl::string_view text, int32_t* value) {
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
  return digits && absl::SimpleAtoi(text, value) && *value <= kMaxArrayIndex;
}

struct Range {
  int32_t first = 0;
  int32_t last = 0;
  int32_t step = 1;
};

bool ParseRange(absl::string_view text, Range* range) {
  const size_t colon = text.find(':');
  if (colon != absl::string_view::npos) {
    if (!ParseNumber(text.substr(colon + 1), &range->step) || range->step == 0) return false;
    text = text.substr(0, colon);
  }
  const size_t dash = text.find('-');
  if (!ParseNumber(text.substr(0, dash), &range->first)) return false;
  range->last = range->first;
  if (dash == absl::string_view::npos) return colon == absl::string_view::npos;
  return ParseNumber(text.substr(dash + 1), &range->last) && range->first <= range->last;
}

std::string RangeText(const Range& range) {
  if (range.first == range.last) return absl::StrCat(range.first);
  return absl::StrCat(range.first, "-", range.last,
                      range.step == 1 ? "" : absl::StrCat(":", range.step));
}

absl::StatusOr<std::vector<Range>> ParseRanges(absl::string_view text) {
  std::vector<Range> ranges;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (!ParseRange(part, &ranges.emplace_back())) {
      return absl::InvalidArgumentError(absl::StrCat("expected indexes from 0 to ", kMaxArrayIndex,
                                                     " such as 0-9, 1,3,5 or 0-100:10, got \"",
                                                     text, "\""));
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  return ranges;
}

}  // namespace

absl::StatusOr<v1::Array> ParseArray(absl::string_view text) {
  v1::Array array;
  if (const size_t percent = text.find('%'); percent != absl::string_view::npos) {
    int32_t most = 0;
    if (!ParseNumber(text.substr(percent + 1), &most) || most == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a number of jobs after %, such as 0-99%10, got \"", text, "\""));
    }
    array.set_parallelism(most);
    text = text.substr(0, percent);
  }
  const absl::StatusOr<std::vector<Range>> ranges = ParseRanges(text);
  if (!ranges.ok()) return ranges.status();
  const Range& first = ranges->front();
  if (ranges->size() == 1 && first.first == 0 && first.step == 1) {
    array.set_size(first.last + 1);
    return array;
  }
  array.set_indexes(absl::StrJoin(*ranges, ",", [](std::string* out, const Range& range) {
    absl::StrAppend(out, RangeText(range));
  }));
  return array;
}

}  // namespace berth
