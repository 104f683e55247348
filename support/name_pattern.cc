#include "support/name_pattern.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

absl::Status Bad(absl::string_view pattern, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("name pattern \"", pattern, "\": ", why));
}

bool ParseNumber(absl::string_view text, uint32_t* value) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(text, value);
}

std::string Padded(uint32_t value, size_t width) {
  std::string text = absl::StrCat(value);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

// Expands the inside of one bracket: "01-03,7" -> 01 02 03 7.
absl::StatusOr<std::vector<std::string>> ExpandList(absl::string_view pattern,
                                                    absl::string_view list) {
  std::vector<std::string> out;
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> range =
        absl::StrSplit(item, absl::MaxSplits('-', 1));
    uint32_t first = 0;
    uint32_t last = 0;
    if (!ParseNumber(range.first, &first))
      return Bad(pattern, absl::StrCat("\"", item, "\" is not a number or range"));
    last = first;
    if (item.find('-') != absl::string_view::npos && !ParseNumber(range.second, &last)) {
      return Bad(pattern, absl::StrCat("\"", item, "\" is not a number or range"));
    }
    if (last < first) return Bad(pattern, absl::StrCat("\"", item, "\" runs backwards"));
    if (last - first >= kMaxPatternNames) return Bad(pattern, "too many names");
    for (uint32_t n = first; n <= last; ++n) out.push_back(Padded(n, range.first.size()));
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNamePattern(absl::string_view pattern) {
  std::vector<std::string> names = {""};
  absl::string_view rest = pattern;
  while (!rest.empty()) {
    const size_t open = rest.find('[');
    const absl::string_view literal = rest.substr(0, open);
    if (literal.find(']') != absl::string_view::npos) return Bad(pattern, "\"]\" without \"[\"");
    for (std::string& name : names) absl::StrAppend(&name, literal);
    if (open == absl::string_view::npos) break;
    const size_t close = rest.find(']', open);
    if (close == absl::string_view::npos) return Bad(pattern, "\"[\" without \"]\"");
    auto list = ExpandList(pattern, rest.substr(open + 1, close - open - 1));
    if (!list.ok()) return list.status();
    if (names.size() * list->size() > kMaxPatternNames) return Bad(pattern, "too many names");
    std::vector<std::string> next;
    for (const std::string& name : names) {
      for (const std::string& item : *list) next.push_back(absl::StrCat(name, item));
    }
    names = std::move(next);
    rest.remove_prefix(close + 1);
  }
  if (pattern.empty()) return Bad(pattern, "empty");
  return names;
}

}  // namespace berth
