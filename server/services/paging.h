// Page sizes and page tokens of the lists.
#ifndef BERTH_SERVER_SERVICES_PAGING_H_
#define BERTH_SERVER_SERVICES_PAGING_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr int kDefaultPageSize = 100;
inline constexpr int kMaxPageSize = 1000;
// Rows that one call examines. With a filter that matches little, a page may be shorter than
// requested and still have a token.
inline constexpr size_t kMaxRowsPerCall = 200'000;
// Rows rendered in one step under the reader lock: rendering costs more than examining.
inline constexpr size_t kMaxRenderedPerStep = 100;

struct Page {
  int size = kDefaultPageSize;
  std::string after;  // the last row's key of the previous page; empty for the first page
};

// INVALID_ARGUMENT for a size that is negative or above kMaxPageSize, for an invalid token, and for
// one of another list or filter. `scope`: FingerprintOf(list, filter).
absl::StatusOr<Page> ReadPage(int page_size, absl::string_view page_token,
                              const std::string& scope);

// Opaque to clients: "rows after this key of this list under this filter".
std::string PageToken(absl::string_view after, const std::string& scope);

// Numbers as keys.
std::string PageKey(uint64_t id);
uint64_t PageKeyId(absl::string_view key);  // 0 for an empty one

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_PAGING_H_
