#include "server/services/connections.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

namespace berth {

ConnectionLimits CompleteLimits(ConnectionLimits wanted) {
  rlimit files{};
  size_t allowed = kDescriptorsForFiles;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) allowed = static_cast<size_t>(files.rlim_cur);
  const size_t most = allowed - std::min(kDescriptorsForFiles, allowed / 2);
  wanted.total = wanted.total == 0 ? most : std::min(wanted.total, most);
  if (wanted.per_address == 0) wanted.per_address = std::max<size_t>(wanted.total / 2, 1);
  return wanted;
}

std::string PeerOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return {reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(&v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return {bytes + 12, 4};
  return {bytes, 8};
}

bool Connections::Fits(const std::string& peer) const {
  const auto found = by_peer_.find(peer);
  const size_t of_peer = found == by_peer_.end() ? 0 : found->second;
  return open_.size() < limits_.total && of_peer < limits_.per_address;
}

bool Connections::Admit(int fd, const std::string& peer) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return false;
  Forget(fd);  // the number is free again: its previous connection was closed
  if (!Fits(peer)) ForgetClosed();
  if (!Fits(peer)) return false;
  open_[fd] = {.device = info.st_dev, .inode = info.st_ino, .peer = peer};
  ++by_peer_[peer];
  return true;
}

void Connections::Forget(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  const auto peer = by_peer_.find(found->second.peer);
  if (--peer->second == 0) by_peer_.erase(peer);
  open_.erase(found);
}

void Connections::CutAll() {
  ForgetClosed();
  for (const auto& [fd, open] : open_) shutdown(fd, SHUT_RDWR);
}

// About a microsecond per two or three connections: called only if there seem to be too many.
void Connections::ForgetClosed() {
  std::vector<int> closed;
  for (const auto& [fd, open] : open_) {
    struct stat info {};
    const bool same =
        fstat(fd, &info) == 0 && info.st_ino == open.inode && info.st_dev == open.device;
    if (!same) closed.push_back(fd);
  }
  for (const int fd : closed) Forget(fd);
}

}  // namespace berth
