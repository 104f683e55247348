#include "support/nearest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {
constexpr size_t kMaxWord = 64;  // longer words are compared by their prefixes
constexpr size_t kMaxListed = 50;

int CommonBeginning(absl::string_view a, absl::string_view b) {
  size_t same = 0;
  while (same < std::min(a.size(), b.size()) &&
         absl::ascii_tolower(static_cast<unsigned char>(a[same])) ==
             absl::ascii_tolower(static_cast<unsigned char>(b[same]))) {
    ++same;
  }
  return static_cast<int>(same);
}
}  // namespace

// Optimal string alignment (Damerau 1964), row by row: row[j] is the distance between a[0..i) and
// b[0..j).
int EditDistance(absl::string_view first, absl::string_view second) {
  const std::string a = absl::AsciiStrToLower(first.substr(0, kMaxWord));
  const std::string b = absl::AsciiStrToLower(second.substr(0, kMaxWord));
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = last;
    last = row;
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int changed = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearestWord(absl::string_view word, const std::vector<std::string>& known) {
  const int most = std::max(1, static_cast<int>(std::min(word.size(), kMaxWord) / 3));
  std::pair<int, int> best = {most + 1, 0};  // distance, negative length of the common prefix
  std::string nearest;
  for (const std::string& candidate : known) {
    const std::pair<int, int> found = {EditDistance(word, candidate),
                                       -CommonBeginning(word, candidate)};
    if (found.first > most || found >= best) continue;
    best = found;
    nearest = candidate;
  }
  return nearest;
}

std::string UnknownWord(absl::string_view what, absl::string_view word,
                        const std::vector<std::string>& known) {
  const std::string message = absl::StrCat(what, " \"", word, "\"");
  if (const std::string nearest = NearestWord(word, known); !nearest.empty()) {
    return absl::StrCat(message, "; did you mean \"", nearest, "\"?");
  }
  if (known.empty() || known.size() > kMaxListed) return message;
  return absl::StrCat(message, "; known: ", absl::StrJoin(known, ", "));
}

}  // namespace berth
