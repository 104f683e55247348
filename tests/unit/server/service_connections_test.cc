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

// Peers "a", "b", ...: addresses of their own.
sockaddr_storage Peer(const std::string& name, int port = 1) {
  sockaddr_storage address = Address(("10.0.0." + std::to_string(name[0])).c_str());
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(static_cast<uint16_t>(port));
  return address;
}
const absl::Duration kNow = absl::Seconds(100);

TEST_CASE("connections: bounded in total and for each peer") {
  Connections connections({.total = 5, .per_address = 3});
  std::vector<int> sockets;
  const auto admit = [&](const char* peer) {
    sockets.push_back(NewSocket());
    return connections.Admit(sockets.back(), Peer(peer), kNow);
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
    REQUIRE(connections.Admit(sockets.back(), Peer("a"), kNow));
  }
  const int extra = NewSocket();
  CHECK_FALSE(connections.Admit(extra, Peer("a"), kNow));
  close(sockets[0]);
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);  // the first end reuses the descriptor of the closed one
  CHECK(pipe_ends[0] == sockets[0]);
  CHECK(connections.Admit(extra, Peer("a"), kNow));
  close(sockets[1]);
  const int again = NewSocket();
  CHECK(again == sockets[1]);
  CHECK(connections.Admit(again, Peer("b"), kNow));
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

TEST_CASE("connections: one that is cut is closed, and its address is refused for a while") {
  Connections connections({.total = 9, .per_address = 9});
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  REQUIRE(connections.Admit(ends[0], Peer("a", 4711), kNow));
  CHECK_FALSE(connections.Cut(EndOf(Peer("a", 4712)), kNow + absl::Seconds(10)));
  CHECK_FALSE(connections.Cut(EndOf(Peer("b", 4711)), kNow + absl::Seconds(10)));
  REQUIRE(connections.Cut(EndOf(Peer("a", 4711)), kNow + absl::Seconds(10)));
  char byte = 0;
  CHECK(read(ends[1], &byte, 1) == 0);
  const int later = NewSocket();
  CHECK_FALSE(connections.Admit(later, Peer("a", 5), kNow + absl::Seconds(9)));
  CHECK(connections.Admit(later, Peer("b", 5), kNow + absl::Seconds(9)));
  CHECK(connections.Admit(NewSocket(), Peer("a", 5), kNow + absl::Seconds(10)));
  for (const int fd : {ends[0], ends[1], later}) close(fd);
}

TEST_CASE("connections: one that ends is closed, and its client may connect again") {
  Connections connections({.total = 9, .per_address = 9});
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  REQUIRE(connections.Admit(ends[0], Peer("a", 4711), kNow));
  CHECK_FALSE(connections.End(EndOf(Peer("a", 4712))));
  CHECK(connections.End(EndOf(Peer("a", 4711))));
  CHECK_FALSE(connections.End(EndOf(Peer("a", 4711))));
  char byte = 0;
  CHECK(read(ends[1], &byte, 1) == 0);
  const int later = NewSocket();
  CHECK(connections.Admit(later, Peer("a", 4711), kNow));
  for (const int fd : {ends[0], ends[1], later}) close(fd);
}

TEST_CASE("connections: users of this machine share an address, which is not refused") {
  Connections connections({.total = 9, .per_address = 9});
  const int fd = NewSocket();
  const sockaddr_storage local = Address("127.0.0.1");
  REQUIRE(connections.Admit(fd, local, kNow));
  REQUIRE(connections.Cut(EndOf(local), kNow + absl::Seconds(10)));
  CHECK(connections.Admit(NewSocket(), local, kNow));
  close(fd);
}

TEST_CASE("connections: a client's end is the same, mapped to IPv6 or not") {
  const ClientEnd plain = EndOf(Address("10.1.2.3"));
  CHECK(EndOf(Address("::ffff:10.1.2.3")) == plain);
  CHECK(TextOf(plain) == "10.1.2.3:0");
  CHECK(TextOf(EndOf(Address("fe80::1"))) == "[fe80::1]:0");
  for (const char* text : {"10.1.2.3:4711", "[fe80::1]:4711", "[::1]:0"}) {
    CHECK(TextOf(ParseClientEnd(text)) == text);
  }
  CHECK(ParseClientEnd("[::ffff:10.1.2.3]:0") == plain);
  CHECK(TextOf(ParseClientEnd("[fe80::1%eth0]:7")) == "[fe80::1]:7");
  for (const char* text : {"", ":", "10.1.2.3", "x:1", "unix:/run/x", "[::1]:x"}) {
    CHECK(ParseClientEnd(text) == ClientEnd());
  }
  CHECK(IsLoopback(EndOf(Address("::1"))));
  CHECK_FALSE(IsLoopback(plain));
}

}  // namespace
}  // namespace berth::testing
