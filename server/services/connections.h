// Connections: counts open connections for the limits. gRPC closes connections without notice, so
// each is identified by its descriptor and the inode of its socket: if the descriptor now refers to
// something else, the connection was closed. Single-threaded.
#ifndef BERTH_SERVER_SERVICES_CONNECTIONS_H_
#define BERTH_SERVER_SERVICES_CONNECTIONS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace berth {

struct ConnectionLimits {
  size_t total = 0;
  size_t per_address = 0;
};

// From `wanted` (0 = not set): all that this process's descriptors allow, minus some for files;
// half of these per address, so that no single address can lock out all others.
ConnectionLimits CompleteLimits(ConnectionLimits wanted);
inline constexpr size_t kDescriptorsForFiles = 1024;

// The peer to which a connection counts: an IPv4 address, or the first 64 bits of an IPv6 one,
// because one host may own all of those.
std::string PeerOf(const sockaddr_storage& address);

// One client's end: its address in network order (4 bytes for IPv4, also if mapped), and its port.
struct ClientEnd {
  std::string address;
  int port = 0;
  bool operator==(const ClientEnd&) const = default;
};
ClientEnd EndOf(const sockaddr_storage& address);
ClientEnd EndOf(std::string address, int port);
std::string TextOf(const ClientEnd& end);
// Of "10.0.0.7:41234" or "[2001:db8::1]:41234"; without an address if it is neither.
ClientEnd ParseClientEnd(absl::string_view text);
bool IsLoopback(const ClientEnd& end);

class Connections {
 public:
  explicit Connections(ConnectionLimits limits) : limits_(limits) {}

  // Counts an accepted socket, or returns false; then the caller closes it. `now`: steady time.
  bool Admit(int fd, const sockaddr_storage& address, absl::Duration now);
  size_t size() const { return open_.size(); }
  // Closes connections that are still open; clients waiting on one see it closed.
  void CutAll();
  // Closes the connection, and admits none of its peer until then, unless that is this machine: its
  // users share one address. False if it is not
  // open, or was cut before.
  bool Cut(const ClientEnd& end, absl::Duration until);
  // Closes the connection; its peer may connect again. False as for Cut.
  bool End(const ClientEnd& end);

 private:
  struct Open {
    dev_t device = 0;
    ino_t inode = 0;
    std::string peer;
    ClientEnd end;
    bool cut = false;
  };

  static bool IsOpen(int fd, const Open& open);
  // Null if it is not open, or was closed before.
  Open* Close(const ClientEnd& end);
  bool Fits(const std::string& peer) const;
  bool IsBanned(const std::string& peer, absl::Duration now);
  void Forget(int fd);
  void ForgetClosed();

  const ConnectionLimits limits_;
  absl::flat_hash_map<int, Open> open_;  // some of them have been closed since
  absl::flat_hash_map<std::string, size_t> by_peer_;
  absl::flat_hash_map<std::string, absl::Duration> banned_;  // until then
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CONNECTIONS_H_
