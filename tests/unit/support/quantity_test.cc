#include "support/quantity.h"

#include <catch2/catch.hpp>
#include <limits>

#include "support/nearest.h"
#include "support/random.h"

namespace berth {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST_CASE("cores are parsed and printed") {
  CHECK(*ParseCpuMillis("0") == 0);
  CHECK(*ParseCpuMillis("2") == 2000);
  CHECK(*ParseCpuMillis("1.5") == 1500);
  CHECK(*ParseCpuMillis("500m") == 500);
  CHECK(*ParseCpuMillis("0.001") == 1);
  CHECK(*ParseCpuMillis("9223372036854775807m") == kMax);
  for (const char* bad :
       {"", "-1", "+1", "1e3", "m", ".5", "1.", "1.5m", "1 ", "0.0001", "1k", "1.2.3",
        "9223372036854775808m", "9223372036854775807", "99999999999999999999"}) {
    INFO(bad);
    CHECK(ParseCpuMillis(bad).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("bytes are parsed and printed") {
  CHECK(*ParseBytes("64") == 64);
  CHECK(*ParseBytes("64B") == 64);
  CHECK(*ParseBytes("1Ki") == 1024);
  CHECK(*ParseBytes("1KiB") == 1024);
  CHECK(*ParseBytes("1k") == 1000);
  CHECK(*ParseBytes("1K") == 1000);
  CHECK(*ParseBytes("80GB") == 80'000'000'000);
  CHECK(*ParseBytes("80GiB") == int64_t{80} << 30);
  CHECK(*ParseBytes("1.5Gi") == int64_t{3} << 29);
  CHECK(*ParseBytes("7Ei") == int64_t{7} << 60);
  CHECK(*ParseBytes("9223372036854775807") == kMax);
  for (const char* bad : {"", "-1", "1.5", "0.1Ki", "8Ei", "1Tb", "1 Gi", "Gi", "1gi", "1KB i",
                          "500m", "9223372036854775808"}) {
    INFO(bad);
    CHECK(ParseBytes(bad).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("durations are parsed and printed") {
  const auto nanos = [](const char* text) {
    const auto parsed = ParseDuration(text);
    REQUIRE(parsed.ok());
    return parsed->seconds * 1'000'000'000 + parsed->nanos;
  };
  CHECK(nanos("0") == 0);
  CHECK(nanos("0s") == 0);
  CHECK(nanos("1h30m") == 5400'000'000'000);
  CHECK(nanos("2d") == 172800'000'000'000);
  CHECK(nanos("500ms") == 500'000'000);
  CHECK(nanos("1.5s") == 1'500'000'000);
  CHECK(nanos("3600s") == 3600'000'000'000);
  CHECK(nanos("1us1ns") == 1001);
  CHECK(ParseDuration("315576000000s").ok());
  for (const char* bad :
       {"", "90", "-1s", "s", "1h ", "1 h", "1y", "0.1ns", "315576000001s", "1s5"}) {
    INFO(bad);
    CHECK(ParseDuration(bad).status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("printed quantities parse back to the same number") {
  CHECK(FormatCpuMillis(1500) == "1.5");
  CHECK(FormatCpuMillis(96'000) == "96");
  CHECK(FormatCpuMillis(1'250) == "1250m");
  CHECK(FormatBytes(int64_t{1} << 40) == "1Ti");
  CHECK(FormatBytes(80'000'000'000) == "78125000Ki");
  CHECK(FormatBytes(1'000) == "1k");
  CHECK(FormatBytes(17) == "17");
  CHECK(FormatDuration({259200, 0}) == "72h");
  CHECK(FormatDuration({5400, 500'000'000}) == "1h30m500ms");
  CHECK(FormatDuration({0, 0}) == "0s");
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<int64_t>(random.Next() >> (1 + random.Below(63)));
    const int64_t round = value >> random.Below(62) << random.Below(2);
    for (const int64_t number : {value, round}) {
      CHECK(*ParseCpuMillis(FormatCpuMillis(number)) == number);
      CHECK(*ParseBytes(FormatBytes(number)) == number);
    }
    const SecondsAndNanos duration{static_cast<int64_t>(random.Below(315'576'000'000)),
                                   static_cast<int32_t>(random.Below(1'000'000'000))};
    const auto back = ParseDuration(FormatDuration(duration));
    REQUIRE(back.ok());
    CHECK((back->seconds == duration.seconds && back->nanos == duration.nanos));
  }
}

TEST_CASE("the nearest known word is suggested") {
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("replica", "replicas") == 1);
  CHECK(EditDistance("memroy", "memory") == 1);
  CHECK(EditDistance("CPU", "cpu") == 0);
  CHECK(NearestWord("minAvailabel", {"replicas", "minAvailable"}) == "minAvailable");
  CHECK(NearestWord("x", {"cpu", "memory"}) == "");
  CHECK(NearestWord("gpu", {"cpu", "gpus"}) == "gpus");
  CHECK(NearestWord("GPU", {"gpus", "cpu"}) == "gpus");
  CHECK(UnknownWord("unknown key", "zzz", {"a", "b"}) == "unknown key \"zzz\"; known: a, b");
}

}  // namespace
}  // namespace berth
