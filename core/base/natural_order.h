// Natural order of names: numbers in them are compared as numbers.
#ifndef BERTH_CORE_BASE_NATURAL_ORDER_H_
#define BERTH_CORE_BASE_NATURAL_ORDER_H_

#include "absl/strings/string_view.h"

namespace berth {

// n2 before n10. A total order: names that differ only in leading zeros ("n1", "n01") are compared
// byte by byte.
bool NaturalLess(absl::string_view a, absl::string_view b);

}  // namespace berth

#endif  // BERTH_CORE_BASE_NATURAL_ORDER_H_
