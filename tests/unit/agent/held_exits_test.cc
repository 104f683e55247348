// Exits that wait for a look at the GPUs.
#include "clients/agent/held_exits.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

constexpr TaskId kTask = {.job_uid = 7, .task = 1, .attempt = 1};

TaskEvent ExitOf(TaskId id, int code, std::string message = "") {
  return {
      .id = id, .kind = TaskEvent::Kind::kExited, .exit_code = code, .message = std::move(message)};
}

absl::Duration At(int seconds) { return absl::Seconds(1000 + seconds); }

std::string NoneIsBad(const std::string&) { return ""; }
std::string GpuAIsBad(const std::string& uuid) { return uuid == "GPU-a" ? "GPU-a: XID 79" : ""; }

TEST_CASE("only failures that nobody asked for may be the fault of a device") {
  CHECK(FailedByItself(ExitOf(kTask, 1)));
  CHECK_FALSE(FailedByItself(ExitOf(kTask, 0)));
  TaskEvent event = ExitOf(kTask, 0);
  event.exit_signal = 6;
  CHECK(FailedByItself(event));
  event.cause = v1::TaskReport::KILLED;
  CHECK_FALSE(FailedByItself(event));
  event = {.id = kTask, .kind = TaskEvent::Kind::kRefused, .exit_code = 1};
  CHECK_FALSE(FailedByItself(event));
}

TEST_CASE("an exit is held until a round that began after it is over, and blames a bad device") {
  HeldExits held;
  CHECK(held.NextWake() == absl::InfiniteDuration());
  held.Hold(ExitOf(kTask, 134, "Aborted"), {"GPU-b", "GPU-a"}, 7, At(0));
  CHECK(held.NextWake() == At(5));
  CHECK(held.Take(6, At(1), GpuAIsBad).empty());
  const std::vector<TaskEvent> taken = held.Take(7, At(1), GpuAIsBad);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].exit_code == 134);
  CHECK(taken[0].cause == v1::TaskReport::DEVICE_FAULT);
  CHECK(taken[0].message == "Aborted; GPU-a: XID 79");
  CHECK(held.Take(8, At(9), GpuAIsBad).empty());
  CHECK(held.NextWake() == absl::InfiniteDuration());
}

TEST_CASE("an exit with good devices is reported unchanged") {
  HeldExits held;
  held.Hold(ExitOf(kTask, 1, "said"), {"GPU-b"}, 7, At(0));
  const std::vector<TaskEvent> taken = held.Take(7, At(1), GpuAIsBad);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].cause == v1::TaskReport::CAUSE_UNSPECIFIED);
  CHECK(taken[0].message == "said");
}

TEST_CASE("an exit is held for five seconds at most, and each for itself") {
  HeldExits held;
  const TaskId other = {.job_uid = 8, .task = 0, .attempt = 1};
  held.Hold(ExitOf(kTask, 1), {"GPU-a"}, 7, At(0));
  held.Hold(ExitOf(other, 1), {"GPU-a"}, 8, At(2));
  std::vector<TaskEvent> taken = held.Take(6, At(5), NoneIsBad);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].id == kTask);
  CHECK(taken[0].cause == v1::TaskReport::CAUSE_UNSPECIFIED);
  CHECK(held.NextWake() == At(7));
  CHECK(held.Take(7, At(6), NoneIsBad).empty());
  taken = held.Take(8, At(6), GpuAIsBad);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].id == other);
  CHECK(taken[0].cause == v1::TaskReport::DEVICE_FAULT);
}

}  // namespace
}  // namespace berth
