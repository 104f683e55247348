// Which connections the guard of streams cuts, and gRPC's counters as it reads them.
#include <algorithm>
#include <catch2/catch.hpp>

#include "server/services/stream_guard.h"
#include "absl/time/clock.h"
#include "tests/unit/server/service_world.h"

namespace berth::testing {
namespace {

using Sockets = std::vector<SocketStreams>;

std::vector<int64_t> Ids(const Sockets& sockets) {
  std::vector<int64_t> ids;
  for (const SocketStreams& socket : sockets) ids.push_back(socket.id);
  return ids;
}

constexpr StreamLimits kLimits = {.resets_per_second = 1000, .open = 100};
const absl::Duration kTick = absl::Milliseconds(100);

TEST_CASE("stream guard: connections with many resets are cut, others not") {
  StreamJudge judge(kLimits);
  // What happened before the first look says nothing.
  CHECK(judge
            .Look({{.id = 1, .started = 90'000, .failed = 90'000},
                   {.id = 2, .started = 50, .succeeded = 50}},
                  kTick)
            .empty());
  const Sockets calm = {{.id = 1, .started = 90'050, .failed = 90'050},
                        {.id = 2, .started = 90, .succeeded = 90}};
  CHECK(judge.Look(calm, 2 * kTick).empty());
  CHECK(Ids(judge.Look({{.id = 1, .started = 90'250, .failed = 90'250},
                        {.id = 2, .started = 300, .succeeded = 300},
                        {.id = 3, .started = 500, .succeeded = 470, .failed = 30}},
                       3 * kTick)) == std::vector<int64_t>{1});
}

TEST_CASE("stream guard: new connections count from their beginning, together") {
  StreamJudge judge(kLimits);
  CHECK(judge.Look({{.id = 1}}, kTick).empty());
  // Each alone would be below the limit.
  CHECK(Ids(judge.Look({{.id = 1},
                        {.id = 5, .started = 60, .failed = 60},
                        {.id = 6, .started = 60, .failed = 60}},
                       2 * kTick)) == std::vector<int64_t>{5, 6});
}

TEST_CASE("stream guard: a client that is not held to the limit of open streams is cut") {
  StreamJudge judge(kLimits);
  CHECK(judge.Look({{.id = 1, .started = 100}}, kTick).empty());
  CHECK(Ids(judge.Look({{.id = 1, .started = 101}}, 2 * kTick)) == std::vector<int64_t>{1});
}

TEST_CASE("stream guard: it reads gRPC's counters of each connection") {
  ServiceWorld world;
  world.CreateQueue("q");
  const auto found = [] {
    const Sockets sockets = ReadSocketStreams();
    return std::any_of(sockets.begin(), sockets.end(), [](const SocketStreams& socket) {
      return socket.address == std::string("\x7f\0\0\1", 4) && socket.port > 0 &&
             socket.started >= 1 && socket.succeeded == socket.started && socket.failed == 0;
    });
  };
  // A call is counted a moment after its answer.
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (!found() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  CHECK(found());
}

}  // namespace
}  // namespace berth::testing
