// DNS labels and names, as Berth takes them for the names of jobs, queues, nodes and HyperNodes.
#ifndef BERTH_SUPPORT_DNS_NAME_H_
#define BERTH_SUPPORT_DNS_NAME_H_

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr size_t kMaxLabelBytes = 63;
inline constexpr size_t kMaxDnsNameBytes = 253;

inline bool IsLowerAlnum(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_islower(byte) || absl::ascii_isdigit(byte);
}

// [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 bytes.
bool IsDnsLabel(absl::string_view text);
// DNS labels joined by dots, at most 253 bytes.
bool IsDnsName(absl::string_view text);

}  // namespace berth

#endif  // BERTH_SUPPORT_DNS_NAME_H_
