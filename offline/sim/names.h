// Names in scenarios: patterns, and the order of things that are declared.
#ifndef BERTH_OFFLINE_SIM_NAMES_H_
#define BERTH_OFFLINE_SIM_NAMES_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/natural_order.h"

namespace berth {

// The keys of a map, sorted by name. Maps of messages have no order.
template <class Map>
std::vector<std::string> NamesIn(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  std::sort(names.begin(), names.end(), NaturalLess);
  return names;
}

// Expands items, which may be patterns ("n[0-3]") and have a count ("n[0-3]*2": n0 n0 n1 n1 ...).
absl::StatusOr<std::vector<std::string>> ExpandPlaces(const std::vector<std::string>& items);
// The reverse: "n0*2", "n1".
std::vector<std::string> CompressPlaces(const std::vector<std::string>& names);

// An error about the field at `path`; see Located in scenario_file.h.
template <class... Pieces>
absl::Status Wrong(absl::string_view path, const Pieces&... pieces) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", pieces...));
}
// Adds `path` to an error about the field there.
absl::Status Under(absl::string_view path, const absl::Status& status);

}  // namespace berth

#endif  // BERTH_OFFLINE_SIM_NAMES_H_
