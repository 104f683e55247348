// The fields of a plain struct, so that code which must handle every field cannot forget one.
//
//   struct Taint { std::string key, value; };
//   kFields<Taint> == 2              changes when a field is added: a static_assert on it stands
//                                    where fields are listed one by one
//   FieldsOf(taint)                  std::tie(taint.key, taint.value): for code that handles every
//                                    field alike, such as a hash
//
// For aggregates. A base class counts as one field; FieldsOf needs a struct without base classes.
#ifndef BERTH_CORE_BASE_FIELDS_H_
#define BERTH_CORE_BASE_FIELDS_H_

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace berth {
namespace fields_internal {

// Initializes a field of any type; never called.
struct Anything {
  template <class T>
  operator T() const noexcept;  // NOLINT(google-explicit-constructor)
};

// The largest number of values that initialize the aggregate.
template <class T, class... Fields>
consteval size_t Count() {
  if constexpr (requires { T{Fields{}..., Anything{}}; }) {
    return Count<T, Fields..., Anything>();
  } else {
    return sizeof...(Fields);
  }
}

}  // namespace fields_internal

template <class T>
inline constexpr size_t kFields = fields_internal::Count<T>();

// References to all fields, in order.
// clang-format off
template <class T>
constexpr auto FieldsOf(T& value) {
  constexpr size_t kCount = kFields<std::remove_const_t<T>>;
  static_assert(0 < kCount && kCount <= 42, "add lines below");
#define BERTH_TIE(fields, ...) \
  if constexpr (kCount == fields) { auto& [__VA_ARGS__] = value; return std::tie(__VA_ARGS__); }
  BERTH_TIE(1, a)
  BERTH_TIE(2, a, b)
  BERTH_TIE(3, a, b, c)
  BERTH_TIE(4, a, b, c, d)
  BERTH_TIE(5, a, b, c, d, e)
  BERTH_TIE(6, a, b, c, d, e, f)
  BERTH_TIE(7, a, b, c, d, e, f, g)
  BERTH_TIE(8, a, b, c, d, e, f, g, h)
  BERTH_TIE(9, a, b, c, d, e, f, g, h, i)
  BERTH_TIE(10, a, b, c, d, e, f, g, h, i, j)
  BERTH_TIE(11, a, b, c, d, e, f, g, h, i, j, k)
  BERTH_TIE(12, a, b, c, d, e, f, g, h, i, j, k, l)
  BERTH_TIE(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  BERTH_TIE(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  BERTH_TIE(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  BERTH_TIE(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  BERTH_TIE(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  BERTH_TIE(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  BERTH_TIE(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  BERTH_TIE(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  BERTH_TIE(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  BERTH_TIE(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  BERTH_TIE(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  BERTH_TIE(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  BERTH_TIE(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  BERTH_TIE(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  BERTH_TIE(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa)
  BERTH_TIE(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab)
  BERTH_TIE(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac)
  BERTH_TIE(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad)
  BERTH_TIE(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae)
  BERTH_TIE(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af)
  BERTH_TIE(33, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag)
  BERTH_TIE(34, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah)
  BERTH_TIE(35, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai)
  BERTH_TIE(36, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj)
  BERTH_TIE(37, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak)
  BERTH_TIE(38, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al)
  BERTH_TIE(39, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am)
  BERTH_TIE(40, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an)
  BERTH_TIE(41, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao)
  BERTH_TIE(42, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab, ac, ad, ae, af, ag, ah, ai, aj, ak, al, am, an, ao, ap)
#undef BERTH_TIE
}
// clang-format on

// Visits the fields of two structs in pairs, such as two instances of one template.
template <class A, class B, class Visit>
void ForEachPair(A& a, B& b, Visit&& visit) {
  std::apply(
      [&](auto&... of_a) {
        std::apply([&](auto&... of_b) { (visit(of_a, of_b), ...); }, FieldsOf(b));
      },
      FieldsOf(a));
}

// AbslHashValue of a struct: combines all fields.
template <class H, class T>
H HashFields(H h, const T& value) {
  return std::apply([&](const auto&... field) { return H::combine(std::move(h), field...); },
                    FieldsOf(value));
}

}  // namespace berth

#endif  // BERTH_CORE_BASE_FIELDS_H_
