#include "support/config_file.h"

#include <catch2/catch.hpp>

namespace berth::testing {
namespace {

TEST_CASE("config: addresses of servers are validated") {
  for (const char* wrong :
       {"", "nope", "http://berthd:7070", "a b:7070", "::1:7070", "[::1:7070", "[]:7070", ":7070",
        "berthd:0", "berthd:70700", "berthd:", "berthd:7070/"}) {
    CAPTURE(wrong);
    CHECK(absl::IsInvalidArgument(CheckServerAddress(wrong)));
  }
  for (const char* right : {"berthd:7070", "berthd.example:1", "10.0.0.1:7070", "[::1]:65535",
                            "[fe80::1%eth0]:7070", "unix:/run/berth"}) {
    CAPTURE(right);
    CHECK(CheckServerAddress(right).ok());
  }
  CHECK(CheckServerAddress("nope").message() ==
        "must be HOST:PORT, as in nope:7070 or [2001:db8::1]:7070, is nope");
}

}  // namespace
}  // namespace berth::testing
