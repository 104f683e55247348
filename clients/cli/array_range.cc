#include "clients/cli/array_range.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "clients/cli/apply.h"

namespace berth {
namespace {

bool ParseIndex(absl::string_view text, int32_t* value) {
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
    if (!ParseIndex(text.substr(colon + 1), &range->step) || range->step == 0) return false;
    text = text.substr(0, colon);
  }
  const size_t dash = text.find('-');
  if (!ParseIndex(text.substr(0, dash), &range->first)) return false;
  range->last = range->first;
  if (dash == absl::string_view::npos) return colon == absl::string_view::npos;
  return ParseIndex(text.substr(dash + 1), &range->last) && range->first <= range->last;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ParseArrayRange(absl::string_view text) {
  if (const size_t percent = text.find('%'); percent != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a limit of jobs that run at the same time (", text.substr(percent),
                     ") is not supported; remove it and set maxRunningJobs of the queue"));
  }
  std::set<int32_t> indexes;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    Range range;
    if (!ParseRange(part, &range)) {
      return absl::InvalidArgumentError(absl::StrCat("expected indexes from 0 to ", kMaxArrayIndex,
                                                     " such as 0-9, 1,3,5 or 0-100:10, got \"",
                                                     text, "\""));
    }
    for (int32_t index = range.first; index <= range.last; index += range.step) {
      indexes.insert(index);
      if (indexes.size() <= kJobsPerCall) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "more than ", kJobsPerCall, " jobs; an array is submitted in one call: split it"));
    }
  }
  return std::vector<int32_t>(indexes.begin(), indexes.end());
}

}  // namespace berth
