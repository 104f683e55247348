#include "clients/session/array_range.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/model/series.h"

namespace berth {
namespace {

bool ParseCount(absl::string_view text, int32_t* value) {
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
  return digits && absl::SimpleAtoi(text, value) && *value > 0 && *value <= kMaxArrayIndex;
}

// As the server reads them, but in any order, as sbatch does.
absl::StatusOr<IndexRanges> ParseRanges(absl::string_view text) {
  IndexRanges ranges;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    std::string error;
    const auto range = ParseIndexRanges(part, kMaxArrayIndex, &error);
    if (!range.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("expected indexes from 0 to ", kMaxArrayIndex,
                                                     " such as 0-9, 1,3,5 or 0-100:10, got \"",
                                                     text, "\": ", error));
    }
    ranges.push_back(range->front());
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const IndexRange& a, const IndexRange& b) { return a.from < b.from; });
  return ranges;
}

}  // namespace

absl::StatusOr<v1::Array> ParseArray(absl::string_view text) {
  v1::Array array;
  if (const size_t percent = text.find('%'); percent != absl::string_view::npos) {
    int32_t most = 0;
    if (!ParseCount(text.substr(percent + 1), &most)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a number of jobs after %, such as 0-99%10, got \"", text, "\""));
    }
    array.set_parallelism(most);
    text = text.substr(0, percent);
  }
  const absl::StatusOr<IndexRanges> ranges = ParseRanges(text);
  if (!ranges.ok()) return ranges.status();
  const IndexRange& first = ranges->front();
  if (ranges->size() == 1 && first.from == 0 && first.step == 1) {
    array.set_size(static_cast<int32_t>(first.to + 1));
    return array;
  }
  array.set_indexes(TextOf(*ranges, std::string::npos));
  return array;
}

}  // namespace berth
