// A page of "Key:  value" lines with aligned values, and sections below: what `describe` shows.
#ifndef BERTH_CLIENTS_CLI_PAGE_H_
#define BERTH_CLIENTS_CLI_PAGE_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace berth {

class Page {
 public:
  // Empty values are left out.
  void Add(const std::string& key, const std::string& value) {
    if (!value.empty() && value != "-") lines_.emplace_back(key + ":", value);
  }
  // A heading with indented text below it; nothing for empty text.
  void AddSection(const std::string& heading, const std::string& text) {
    if (text.empty()) return;
    absl::StrAppend(&sections_, heading, ":\n");
    for (absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
      absl::StrAppend(&sections_, "  ", line, "\n");
    }
  }
  std::string Text() const {
    size_t width = 0;
    for (const auto& line : lines_) width = std::max(width, line.first.size());
    std::string text;
    for (const auto& line : lines_) {
      absl::StrAppend(&text, line.first, std::string(width - line.first.size() + 2, ' '),
                      line.second, "\n");
    }
    return text + sections_;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  std::string sections_;
};

// "a=1, b=2", by key.
template <class Map>
std::string KeyValues(const Map& map) {
  std::vector<std::string> parts;
  for (const auto& entry : map) parts.push_back(absl::StrCat(entry.first, "=", entry.second));
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, text.empty() ? "" : ", ", part);
  return text;
}

}  // namespace berth

#endif  // BERTH_CLIENTS_CLI_PAGE_H_
