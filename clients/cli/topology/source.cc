#include "clients/cli/topology/source.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {

std::string SourcePlace::text() const {
  return position.line == 0 ? "" : absl::StrCat(file, ":", position.line, ":", position.column);
}

std::string Counted(size_t count, absl::string_view one) {
  return absl::StrCat(count, " ", one, count == 1 ? "" : "s");
}

std::string SomeOf(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  const size_t shown = names.size() <= kShown + 1 ? names.size() : kShown;
  std::string text =
      absl::StrJoin(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ");
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

}  // namespace berth
