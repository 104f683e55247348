#include "core/base/fields.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/model/ids.h"

namespace berth {
namespace {

struct Nothing {};
struct Pair {
  int first = 1;
  std::string second = "two";
};
// Types that other types convert to, or whose braces could be left out.
struct Everything {
  Pair pair;
  std::array<int, 3> array;
  std::optional<int> optional;
  std::optional<std::string> optional_text;
  std::vector<std::vector<bool>> vectors;
  std::map<std::string, std::string> map;
  absl::Span<const Pair> span;
  absl::InlinedVector<int, 2> inlined;
  absl::Time time;
  JobId id;
  const Pair* pointer = nullptr;
  int no_default;
};
struct Derived : Pair {
  int third = 3;
};
template <class T>
struct Of {
  int number = 0;
  T value{};
};

static_assert(kFields<Nothing> == 0);
static_assert(kFields<Pair> == 2);
static_assert(kFields<Everything> == 12);
static_assert(kFields<Derived> == 2);  // the base counts as one

TEST_CASE("fields of a struct are visited in order, and can be changed") {
  Pair pair;
  CHECK(FieldsOf(pair) == std::tuple(1, "two"));
  std::get<0>(FieldsOf(pair)) = 7;
  CHECK(pair.first == 7);
  const Pair constant;
  CHECK(std::get<1>(FieldsOf(constant)) == "two");
}

TEST_CASE("fields of two instances of a template are visited in pairs") {
  const Of<int> a{.number = 1, .value = 2};
  Of<std::string> b;
  ForEachPair(a, b, [](const auto& from, auto& to) {
    if constexpr (requires { to = std::to_string(from); }) {
      to = std::to_string(from);
    } else {
      to = from;
    }
  });
  CHECK(b.number == 1);
  CHECK(b.value == "2");
}

}  // namespace
}  // namespace berth
