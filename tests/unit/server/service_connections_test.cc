#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "server/services/connections.h"

namespace berth::testing {
namespace {

int NewSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

sockaddr_storage Address(const char* text) {
  sockaddr_storage address{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
    address.ss_family = AF_INET;
  } else {
    REQUIRE(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
    address.ss_family = AF_INET6;
  }
  return address;
}

TEST_CASE("connections: bounded in total and for each peer") {
  Connections connections({.total = 5, .per_address = 3});
  std::vector<int> sockets;
  const auto admit = [&](const char* peer) {
    sockets.push_back(NewSocket());
    return connections.Admit(sockets.back(), peer);
  };
  for (int i = 0; i < 3; ++i) CHECK(admit("a"));
  CHECK_FALSE(admit("a"));
  CHECK(admit("b"));
  CHECK(admit("c"));
  CHECK_FALSE(admit("d"));
  for (const int fd : sockets) close(fd);
}

TEST_CASE("connections: a closed one does not count, even if its descriptor is reused") {
  Connections connections({.total = 3, .per_address = 3});
  std::vector<int> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(NewSocket());
    REQUIRE(connections.Admit(sockets.back(), "a"));
  }
  const int extra = NewSocket();
  CHECK_FALSE(connections.Admit(extra, "a"));
  close(sockets[0]);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);  // the first end reuses the descriptor of the closed one
  CHECK(pipe_ends[0] == sockets[0]);
  CHECK(connections.Admit(extra, "a"));
  close(sockets[1]);
  const int again = NewSocket();
  CHECK(again == sockets[1]);
  CHECK(connections.Admit(again, "b"));
  CHECK(connections.size() == 3);
  for (const int fd : {extra, again, sockets[2], pipe_ends[0], pipe_ends[1]}) close(fd);
}

TEST_CASE("connections: an IPv6 address is represented by its first 64 bits") {
  CHECK(PeerOf(Address("10.0.0.1")) == PeerOf(Address("::ffff:10.0.0.1")));
  CHECK(PeerOf(Address("10.0.0.1")) != PeerOf(Address("10.0.0.2")));
  CHECK(PeerOf(Address("2001:db8:1:2::1")) == PeerOf(Address("2001:db8:1:2:3:4:5:6")));
  CHECK(PeerOf(Address("2001:db8:1:2::1")) != PeerOf(Address("2001:db8:1:3::1")));
}

TEST_CASE("connections: some descriptors are reserved for files") {
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  const ConnectionLimits all = CompleteLimits({});
  CHECK(all.total < files.rlim_cur);
  CHECK(all.total >= files.rlim_cur / 2);
  CHECK(all.per_address == all.total / 2);
  CHECK(CompleteLimits({.total = SIZE_MAX, .per_address = 7}).total == all.total);
  CHECK(CompleteLimits({.total = 10, .per_address = 7}).per_address == 7);
}

}  // namespace
}  // namespace berth::testing
