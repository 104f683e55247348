#include "clients/agent/supervisor/hosts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "clients/agent/supervisor/spec.h"

namespace berth {
namespace {

constexpr char kNodesHosts[] = "/etc/hosts";

bool IsAddress(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

// The first address of the name; "" if it has none.
std::string Resolve(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &wanted, &found) != 0) return "";
  char text[NI_MAXHOST] = "";
  const int error =
      getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return error == 0 ? text : "";
}

int Overwrite(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t n = write(fd, text.data(), text.size());
  const int error = n < 0 ? errno : static_cast<size_t>(n) < text.size() ? ENOSPC : 0;
  close(fd);
  return error;
}

}  // namespace

int CompleteHosts(const std::string& path, int64_t deadline_ns) {
  std::string given;
  std::string text;
  if (const int error = ReadWholeFile(path, &given); error != 0) return error;
  ReadWholeFile(kNodesHosts, &text);  // without one, there is only localhost
  if (text.empty()) text = "127.0.0.1 localhost\n::1 localhost\n";
  if (text.back() != '\n') text += '\n';
  std::map<std::string, std::string> known;
  for (size_t at = 0, end; (end = given.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = given.substr(at, end - at);
    const std::string address = line.substr(0, line.find(' '));
    if (!known.contains(address)) {
      const bool asks = !IsAddress(address) && BoottimeNs() < deadline_ns;
      known[address] = IsAddress(address) ? address : asks ? Resolve(address) : "";
    }
    const std::string& means = known[address];
    text += means.empty() ? "# not resolved: " + line : means + line.substr(address.size());
    text += '\n';
  }
  return Overwrite(path, text);
}

}  // namespace berth
