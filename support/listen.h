// Listening sockets.
#ifndef BERTH_SUPPORT_LISTEN_H_
#define BERTH_SUPPORT_LISTEN_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace berth {

// Non-blocking; the caller closes them.
struct Listeners {
  std::vector<int> fds;
  int port = 0;
};
// Listens on "ADDRESS:PORT"; port 0 picks a free one. A name listens on all of its addresses, with
// one port; 0.0.0.0 and [::] both mean IPv4 and IPv6. UNAVAILABLE with the system's reason.
absl::StatusOr<Listeners> ListenOn(const std::string& address);

}  // namespace berth

#endif  // BERTH_SUPPORT_LISTEN_H_
