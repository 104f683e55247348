// Changes every field of a value, one at a time: also fields of nested structs, and of the first
// element of each list. For tests of code that must handle every field.
#ifndef BERTH_TESTS_UNIT_CORE_TESTING_CHANGES_H_
#define BERTH_TESTS_UNIT_CORE_TESTING_CHANGES_H_

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/base/boxed.h"
#include "core/base/fields.h"

namespace berth {

template <class T>
constexpr bool IsVector = false;
template <class T>
constexpr bool IsVector<std::vector<T>> = true;
template <class T>
constexpr bool IsOptional = false;
template <class T>
constexpr bool IsOptional<std::optional<T>> = true;

template <class T>
constexpr bool IsBoxed = false;
template <class T>
constexpr bool IsBoxed<Boxed<T>> = true;

// A value that differs from this one.
template <class T>
T Changed(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return !value;
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(value == T{} ? 1 : 0);
  } else if constexpr (std::is_same_v<T, std::string>) {
    std::string text = value.empty() ? "w" : value;
    text[0] = static_cast<char>(text[0] ^ 1);
    return text;
  } else if constexpr (std::is_same_v<T, absl::Time>) {
    return absl::FromUnixSeconds(value == absl::FromUnixSeconds(7) ? 8 : 7);
  } else if constexpr (std::is_same_v<T, absl::Duration>) {
    return absl::Seconds(value == absl::Seconds(7) ? 8 : 7);
  } else {
    static_assert(std::is_integral_v<T>);
    return static_cast<T>(value + 1);
  }
}

// Calls `visit` with each of the changes in place. Empty lists get an element, whose fields then
// change as well.
template <class T, class Visit>
void ForEachChange(T& value, const Visit& visit) {
  const T before = value;
  if constexpr (IsBoxed<T>) {
    value.Mutable();
    if (value != before) visit();
    ForEachChange(value.Mutable(), visit);
  } else if constexpr (IsVector<T> || IsOptional<T>) {
    if constexpr (IsVector<T>) {
      if (value.empty()) value.emplace_back();
      if (value != before) visit();
      ForEachChange(value.front(), visit);
    } else {
      if (!value.has_value()) value.emplace();
      if (value != before) visit();
      ForEachChange(*value, visit);
    }
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
    value["changed"] = "";
    visit();
    value["changed"] = "as well";
    visit();
  } else if constexpr (requires { value.first; }) {
    ForEachChange(value.first, visit);
    ForEachChange(value.second, visit);
  } else if constexpr (requires { value.fill({}); }) {
    for (auto& element : value) ForEachChange(element, visit);
  } else if constexpr (std::is_aggregate_v<T>) {
    std::apply([&](auto&... field) { (ForEachChange(field, visit), ...); }, FieldsOf(value));
  } else {
    value = Changed(value);
    visit();
  }
  value = before;
}

}  // namespace berth

#endif  // BERTH_TESTS_UNIT_CORE_TESTING_CHANGES_H_
