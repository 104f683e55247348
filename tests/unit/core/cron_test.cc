// Times of schedules.
#include "core/base/cron.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace berth {
namespace {

// The first times after `after`, in the zone.
std::string Times(const std::string& line, const std::string& after, int count,
                  const std::string& zone_name = "UTC") {
  std::string error;
  const std::optional<Cron> cron = Cron::Parse(line, &error);
  if (!cron.has_value()) return error;
  const std::optional<absl::TimeZone> zone = FindTimeZone(zone_name);
  if (!zone.has_value()) return "no zone";
  absl::Time time;
  REQUIRE(absl::ParseTime("%Y-%m-%d %H:%M:%S", after, *zone, &time, &error));
  std::vector<std::string> times;
  for (int i = 0; i < count; ++i) {
    time = cron->Next(time, *zone);
    times.push_back(absl::FormatTime("%m-%d %H:%M", time, *zone));
  }
  return absl::StrJoin(times, ", ");
}

TEST_CASE("cron: fields, ranges, lists, steps and names") {
  const std::string start = "2026-11-28 10:07:30";  // a Saturday
  CHECK(Times("* * * * *", start, 2) == "11-28 10:08, 11-28 10:09");
  CHECK(Times("*/15 * * * *", start, 4) == "11-28 10:15, 11-28 10:30, 11-28 10:45, 11-28 11:00");
  CHECK(Times("5/20 9-10 * * *", start, 3) == "11-28 10:25, 11-28 10:45, 11-29 09:05");
  CHECK(Times("30 2 * * mon-fri", start, 3) == "11-30 02:30, 12-01 02:30, 12-02 02:30");
  CHECK(Times("0 0 1,15 * *", start, 3) == "12-01 00:00, 12-15 00:00, 01-01 00:00");
  CHECK(Times("0 12 * JAN 7", start, 2) == "01-03 12:00, 01-10 12:00");
  CHECK(Times("@daily", start, 2) == "11-29 00:00, 11-30 00:00");
  CHECK(Times("@hourly", start, 1) == "11-28 11:00");
  // A time is after, never at.
  CHECK(Times("7 10 * * *", "2026-11-28 10:07:00", 1) == "11-29 10:07");
}

TEST_CASE("cron: if both days are restricted, either counts") {
  CHECK(Times("0 0 13 * fri", "2026-11-01 00:00:00", 4) ==
        "11-06 00:00, 11-13 00:00, 11-20 00:00, 11-27 00:00");
  CHECK(Times("0 0 13 * */2", "2026-11-08 00:00:00", 1) ==
        "12-13 00:00");  // a star restricts nothing
}

TEST_CASE("cron: the 29th of February, and dates that never come") {
  CHECK(Times("0 0 29 2 *", "2026-01-01 00:00:00", 2) == "02-29 00:00, 02-29 00:00");
  CHECK(Times("0 0 31 feb *", "2026-01-01 00:00:00", 1) == "no date is ever like that");
}

TEST_CASE("cron: clocks that are set forward and back") {
  // Berlin, 2027-03-28: 02:00 becomes 03:00. 2027-10-31: 03:00 becomes 02:00.
  CHECK(Times("30 2 * * *", "2027-03-27 00:00:00", 3, "Europe/Berlin") ==
        "03-27 02:30, 03-28 03:00, 03-29 02:30");
  CHECK(Times("30 2 * * *", "2027-10-30 12:00:00", 2, "Europe/Berlin") ==
        "10-31 02:30, 11-01 02:30");
}

TEST_CASE("cron: lines that are none say what is wrong") {
  CHECK(Times("* * * *", "2026-01-01 00:00:00", 1).find("got 4") != std::string::npos);
  CHECK(Times("60 * * * *", "2026-01-01 00:00:00", 1).find("\"60\" is no minute") == 0);
  CHECK(Times("* 5-3 * * *", "2026-01-01 00:00:00", 1).find("\"5-3\" is no hour") == 0);
  CHECK(Times("* * 0 * *", "2026-01-01 00:00:00", 1).find("is no day of the month") !=
        std::string::npos);
  CHECK(Times("* * * foo *", "2026-01-01 00:00:00", 1).find("is no month") != std::string::npos);
  CHECK(Times("*/0 * * * *", "2026-01-01 00:00:00", 1).find("is no minute") != std::string::npos);
  CHECK(Times("* * * * -1", "2026-01-01 00:00:00", 1).find("is no day of the week") !=
        std::string::npos);
  CHECK_FALSE(FindTimeZone("Europe/Atlantis").has_value());
}

}  // namespace
}  // namespace berth
