// Connections: who is connected, as far as bounds need to know it. gRPC closes connections by
// itself and tells nobody, so each is known by its descriptor and the inode of its socket: a
// descriptor that stands for something else by now was closed. One thread.
#ifndef BERTH_SERVER_SERVICES_CONNECTIONS_H_
#define BERTH_SERVER_SERVICES_CONNECTIONS_H_

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace berth {

struct ConnectionLimits {
  size_t total = 0;
  size_t per_address = 0;
};

// Of `wanted` (0 = not said): all that the descriptors of this process allow, some of which are
// kept for files; of these half to one address, so that no single one can lock out all others.
ConnectionLimits CompleteLimits(ConnectionLimits wanted);
inline constexpr size_t kDescriptorsForFiles = 1024;

// Whom a connection counts for: an IPv4 address, or the first 64 bits of an IPv6 one, which one
// host may have all of.
std::string PeerOf(const sockaddr_storage& address);

class Connections {
 public:
  explicit Connections(ConnectionLimits limits) : limits_(limits) {}

  // Counts an accepted socket, or says no; then the caller closes it.
  bool Admit(int fd, const std::string& peer);
  size_t size() const { return open_.size(); }
  // Ends those that are still open; whoever waits for an answer on one finds it closed.
  void CutAll();

 private:
  struct Open {
    dev_t device = 0;
    ino_t inode = 0;
    std::string peer;
  };

  bool Fits(const std::string& peer) const;
  void Forget(int fd);
  void ForgetClosed();

  const ConnectionLimits limits_;
  absl::flat_hash_map<int, Open> open_;  // some of them closed since
  absl::flat_hash_map<std::string, size_t> by_peer_;
};

}  // namespace berth

#endif  // BERTH_SERVER_SERVICES_CONNECTIONS_H_
