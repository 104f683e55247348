#include "support/log.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace berth::testing {

TEST_CASE("log: one event, then fields, and special values are quoted") {
  CHECK(FormatLogLine("task started", {{"job", "train"}, {"attempt", 3}}) ==
        "task started  job=train attempt=3");
  CHECK(FormatLogLine("x", {{"message", "two words"}, {"empty", ""}, {"q", "a\"b\n"}}) ==
        "x  message=\"two words\" empty=\"\" q=\"a\\\"b\\n\"");
  CHECK(FormatLogLine("x", {{"error", absl::NotFoundError("gone")}}) ==
        "x  error=\"NOT_FOUND: gone\"");
  CHECK(FormatLogLine("alone", {}) == "alone");
}

TEST_CASE("log: levels and files") {
  CHECK(absl::IsInvalidArgument(StartLog("loud", "")));
  CHECK(absl::IsInvalidArgument(StartLog("info", "/proc/nothing/log")));
  CHECK(absl::IsInvalidArgument(StartLog("info", "/")));
  const std::string path = std::tmpnam(nullptr);
  REQUIRE(StartLog("warn", path).ok());
  CHECK_FALSE(LogEnabled(LogLevel::kInfo));
  LogInfo("not this");
  LogWarn("but this", {{"node", "n1"}});
  FlushLog();
  REQUIRE(StartLog("info", "").ok());
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove(path.c_str());
  CHECK(text.find("not this") == std::string::npos);
  CHECK(text.find("Z warn") != std::string::npos);
  CHECK(text.find("but this  node=n1") != std::string::npos);
}

}  // namespace berth::testing
