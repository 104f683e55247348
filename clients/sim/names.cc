#include "clients/sim/names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

constexpr int kMaxTimes = 100'000;

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

// Takes the digits at the front, without leading zeros.
absl::string_view TakeNumber(absl::string_view* text) {
  size_t end = 0;
  while (end < text->size() && IsDigit((*text)[end])) ++end;
  absl::string_view digits = text->substr(0, end);
  text->remove_prefix(end);
  while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
  return digits;
}

absl::Status ExpandItem(absl::string_view item, std::vector<std::string>* places) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(item, absl::MaxSplits('*', 1));
  int times = 1;
  const bool counted = item.find('*') != absl::string_view::npos;
  if (counted && (!absl::SimpleAtoi(parts.second, &times) || times < 1 || times > kMaxTimes)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", item, "\": expected NAME*NUMBER"));
  }
  auto names = ExpandNamePattern(parts.first);
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    places->insert(places->end(), static_cast<size_t>(times), name);
  }
  if (places->size() <= kMaxPatternNames) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", item, "\": too many names"));
}

}  // namespace

bool NaturalLess(absl::string_view a, absl::string_view b) {
  absl::string_view x = a, y = b;
  while (!x.empty() && !y.empty()) {
    if (IsDigit(x[0]) && IsDigit(y[0])) {
      const absl::string_view m = TakeNumber(&x), n = TakeNumber(&y);
      if (m.size() != n.size()) return m.size() < n.size();
      if (m != n) return m < n;
      continue;
    }
    if (x[0] != y[0]) return x[0] < y[0];
    x.remove_prefix(1);
    y.remove_prefix(1);
  }
  return x.size() != y.size() ? x.size() < y.size() : a < b;
}

absl::StatusOr<std::vector<std::string>> ExpandPlaces(const std::vector<std::string>& items) {
  std::vector<std::string> places;
  for (const std::string& item : items) {
    if (auto status = ExpandItem(item, &places); !status.ok()) return status;
  }
  return places;
}

std::vector<std::string> CompressPlaces(const std::vector<std::string>& names) {
  std::vector<std::string> items;
  for (size_t i = 0, end = 0; i < names.size(); i = end) {
    while (end < names.size() && names[end] == names[i]) ++end;
    items.push_back(end - i == 1 ? names[i] : absl::StrCat(names[i], "*", end - i));
  }
  return items;
}

absl::Status Under(absl::string_view path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace berth
