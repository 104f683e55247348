// Addresses of berthd, where a configuration or a flag takes several:
// "a.example:7070,b.example:7070".
#ifndef BERTH_SUPPORT_SERVER_LIST_H_
#define BERTH_SUPPORT_SERVER_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace berth {

inline constexpr size_t kMaxServers = 16;

// The addresses between commas, without blanks around them, in order.
std::vector<std::string> ServersOf(absl::string_view list);

// INVALID_ARGUMENT, with the reason: an address is none (CheckServerAddress), or given twice, or
// there are too many.
absl::Status CheckServerList(absl::string_view list);

// Whether all of them are addresses of this machine (IsLoopbackAddress).
bool AreLoopback(absl::string_view list);

}  // namespace berth

#endif  // BERTH_SUPPORT_SERVER_LIST_H_
