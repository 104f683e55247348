#include "server/services/connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

ClientEnd EndOf(std::string address, int port) {
  constexpr absl::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (address.size() == 16 && absl::StartsWith(address, kMapped)) address.erase(0, 12);
  return {std::move(address), port};
}

ClientEnd EndOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return {{reinterpret_cast<const char*>(&v4.sin_addr), sizeof v4.sin_addr}, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return EndOf({reinterpret_cast<const char*>(&v6.sin6_addr), sizeof v6.sin6_addr},
               ntohs(v6.sin6_port));
}

std::string TextOf(const ClientEnd& end) {
  const bool v4 = end.address.size() == 4;
  if (!v4 && end.address.size() != 16) return "unknown";
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(v4 ? AF_INET : AF_INET6, end.address.data(), text, sizeof text);
  return v4 ? absl::StrCat(text, ":", end.port) : absl::StrCat("[", text, "]:", end.port);
}

ClientEnd ParseClientEnd(absl::string_view text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port)) {
    return {};
  }
  absl::string_view host = text.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  const std::string plain(host.substr(0, host.find('%')));  // without the interface
  std::string address(sizeof(in6_addr), '\0');
  if (inet_pton(AF_INET6, plain.c_str(), address.data()) == 1) return EndOf(address, port);
  address.resize(sizeof(in_addr));
  if (inet_pton(AF_INET, plain.c_str(), address.data()) == 1) return EndOf(address, port);
  return {};
}

bool IsLoopback(const ClientEnd& end) {
  if (end.address.size() == 4) return end.address[0] == 127;
  return end.address == std::string(15, '\0') + '\1';
}

bool Connections::IsBanned(const std::string& peer, absl::Duration now) {
  if (banned_.empty()) return false;
  absl::erase_if(banned_, [&](const auto& entry) { return entry.second <= now; });
  return banned_.contains(peer);
}

bool Connections::Fits(const std::string& peer) const {
  const auto found = by_peer_.find(peer);
  const size_t of_peer = found == by_peer_.end() ? 0 : found->second;
  return open_.size() < limits_.total && of_peer < limits_.per_address;
}

bool Connections::Admit(int fd, const sockaddr_storage& address, absl::Duration now) {
  const std::string peer = PeerOf(address);
  struct stat info {};
  if (fstat(fd, &info) != 0 || IsBanned(peer, now)) return false;
  Forget(fd);  // the number is free again: its previous connection was closed
  if (!Fits(peer)) ForgetClosed();
  if (!Fits(peer)) return false;
  open_[fd] = {.device = info.st_dev, .inode = info.st_ino, .peer = peer, .end = EndOf(address)};
  ++by_peer_[peer];
  return true;
}

bool Connections::IsOpen(int fd, const Open& open) {
  struct stat info {};
  return fstat(fd, &info) == 0 && info.st_ino == open.inode && info.st_dev == open.device;
}

void Connections::Forget(int fd) {
  const auto found = open_.find(fd);
  if (found == open_.end()) return;
  const auto peer = by_peer_.find(found->second.peer);
  if (--peer->second == 0) by_peer_.erase(peer);
  open_.erase(found);
}

Connections::Open* Connections::Close(const ClientEnd& end) {
  for (auto& [fd, open] : open_) {
    if (open.cut || !(open.end == end) || !IsOpen(fd, open)) continue;
    shutdown(fd, SHUT_RDWR);
    open.cut = true;
    return &open;
  }
  return nullptr;
}

bool Connections::End(const ClientEnd& end) { return Close(end) != nullptr; }

bool Connections::Cut(const ClientEnd& end, absl::Duration until) {
  const Open* const open = Close(end);
  if (open == nullptr) return false;
  if (!IsLoopback(end)) banned_[open->peer] = until;
  return true;
}

void Connections::CutAll() {
  ForgetClosed();
  for (const auto& [fd, open] : open_) shutdown(fd, SHUT_RDWR);
}

// About a microsecond per two or three connections: called only if there seem to be too many.
void Connections::ForgetClosed() {
  std::vector<int> closed;
  for (const auto& [fd, open] : open_) {
    if (!IsOpen(fd, open)) closed.push_back(fd);
  }
  for (const int fd : closed) Forget(fd);
}

}  // namespace berth
