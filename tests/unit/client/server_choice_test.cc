#include "clients/cpp/server_choice.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

TEST_CASE("servers: each of the others is tried at once, then one at a time") {
  ServerChoice choice(3);
  CHECK(choice.current() == 0);
  CHECK(choice.Leave(true, std::nullopt));
  CHECK(choice.current() == 1);
  CHECK(choice.Leave(true, std::nullopt));
  CHECK(choice.current() == 2);
  for (const size_t next : {0, 1, 2, 0}) {
    CHECK_FALSE(choice.Leave(true, std::nullopt));
    CHECK(choice.current() == next);
  }
  choice.Stay();
  CHECK(choice.Leave(true, std::nullopt));
}

TEST_CASE("servers: the leader is tried at once, unless it has just failed") {
  ServerChoice choice(4);
  CHECK(choice.Leave(true, 2));
  CHECK(choice.current() == 2);
  CHECK(choice.Leave(false, std::nullopt));
  CHECK(choice.current() == 3);
  CHECK(choice.Leave(true, 2));  // it has just failed
  CHECK(choice.current() == 1);
}

TEST_CASE("servers: after a wait the leader is tried again") {
  ServerChoice choice(2);
  CHECK(choice.Leave(false, std::nullopt));
  CHECK_FALSE(choice.Leave(true, 0));
  CHECK(choice.current() == 1);  // the first one did not answer
  CHECK(choice.Leave(true, 0));
  CHECK(choice.current() == 0);
}

TEST_CASE("servers: one that does not answer is left out some times") {
  ServerChoice choice(2);
  CHECK(choice.Leave(false, std::nullopt));
  int others = 0;
  for (int i = 0; i < 12; ++i) {
    choice.Leave(choice.current() == 1, std::nullopt);
    others += choice.current() == 0;
  }
  CHECK(others == 2);
}

TEST_CASE("servers: a single one is its own successor") {
  ServerChoice choice(1);
  CHECK_FALSE(choice.Leave(true, 0));
  CHECK_FALSE(choice.Leave(false, std::nullopt));
  CHECK(choice.current() == 0);
}

}  // namespace
}  // namespace berth
