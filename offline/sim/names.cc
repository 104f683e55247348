#include "offline/sim/names.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "support/name_pattern.h"

namespace berth {
namespace {

constexpr int kMaxTimes = 100'000;

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
