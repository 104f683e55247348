// Sockets that listen.
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
// "ADDRESS:PORT", port 0 for one that is free: all addresses that a name has, on one port; IPv4 and
// IPv6 for 0.0.0.0 and for [::]. UNAVAILABLE with the system's reason.
absl::StatusOr<Listeners> ListenOn(const std::string& address);

}  // namespace berth

#endif  // BERTH_SUPPORT_LISTEN_H_
