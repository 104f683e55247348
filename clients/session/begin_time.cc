#include "clients/session/begin_time.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "support/quantity.h"

namespace berth {
namespace {

constexpr size_t kMaxCountDigits = 9;
const absl::Time kEnd = absl::FromCivil(absl::CivilSecond(10000, 1, 1), absl::UTCTimeZone());

struct WordUnit {
  const char* word;
  absl::Duration length;
};
// Unit words of at and sbatch. Short units ("10m") are parsed like other durations.
const WordUnit kWordUnits[] = {
    {"", absl::Seconds(1)},        {"second", absl::Seconds(1)},   {"seconds", absl::Seconds(1)},
    {"minute", absl::Minutes(1)},  {"minutes", absl::Minutes(1)},  {"hour", absl::Hours(1)},
    {"hours", absl::Hours(1)},     {"day", absl::Hours(24)},       {"days", absl::Hours(24)},
    {"week", absl::Hours(24 * 7)}, {"weeks", absl::Hours(24 * 7)},
};

// "90", "1hour", "2 days" or "1h30m".
std::optional<absl::Duration> ParseOffset(absl::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[digits])))
    ++digits;
  int64_t count = 0;
  const absl::string_view word = absl::StripLeadingAsciiWhitespace(text.substr(digits));
  if (digits > 0 && digits <= kMaxCountDigits && absl::SimpleAtoi(text.substr(0, digits), &count)) {
    for (const WordUnit& unit : kWordUnits) {
      if (word == unit.word) return count * unit.length;
    }
  }
  const auto parsed = ParseDuration(text);
  if (!parsed.ok()) return std::nullopt;
  return absl::Seconds(parsed->seconds) + absl::Nanoseconds(parsed->nanos);
}

// "16:00" or "16:00:30", as the time since midnight.
std::optional<absl::Duration> ParseClock(absl::string_view text) {
  if (text == "noon") return absl::Hours(12);
  if (text == "midnight") return absl::ZeroDuration();
  absl::Time time;
  std::string error;
  for (const char* format : {"%H:%M", "%H:%M:%S"}) {
    if (absl::ParseTime(format, text, &time, &error)) return time - absl::UnixEpoch();
  }
  return std::nullopt;
}

absl::Time AtClock(absl::CivilDay day, absl::Duration clock, absl::TimeZone zone) {
  return absl::FromCivil(absl::CivilSecond(day) + absl::ToInt64Seconds(clock), zone);
}

std::optional<absl::Time> ParseDate(absl::string_view text, absl::TimeZone zone) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return time;
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    if (absl::ParseTime(format, text, zone, &time, &error)) return time;
  }
  return std::nullopt;
}

// What follows "today" or "tomorrow": nothing, "+2hours", "T08:00" or " 08:00".
std::optional<absl::Time> ParseDay(absl::string_view rest, absl::CivilDay day,
                                   absl::TimeZone zone) {
  if (rest.empty()) return AtClock(day, absl::ZeroDuration(), zone);
  if (absl::ConsumePrefix(&rest, "+")) {
    const auto offset = ParseOffset(rest);
    if (!offset.has_value()) return std::nullopt;
    return AtClock(day, absl::ZeroDuration(), zone) + *offset;
  }
  if (!absl::ConsumePrefix(&rest, "T") && !absl::ConsumePrefix(&rest, " ")) return std::nullopt;
  const auto clock = ParseClock(rest);
  if (!clock.has_value()) return std::nullopt;
  return AtClock(day, *clock, zone);
}

std::optional<absl::Time> Parse(absl::string_view text, absl::Time now, absl::TimeZone zone) {
  const absl::CivilDay today(zone.At(now).cs);
  absl::string_view rest = text;
  absl::ConsumePrefix(&rest, "now");
  if (rest.empty() && !text.empty()) return now;
  if (absl::ConsumePrefix(&rest, "+")) {
    const auto offset = ParseOffset(rest);
    return offset.has_value() ? std::optional(now + *offset) : std::nullopt;
  }
  rest = text;
  if (absl::ConsumePrefix(&rest, "tomorrow")) return ParseDay(rest, today + 1, zone);
  if (rest == "today") return now;
  if (absl::ConsumePrefix(&rest, "today")) return ParseDay(rest, today, zone);
  if (const auto clock = ParseClock(text); clock.has_value()) {
    const absl::Time at = AtClock(today, *clock, zone);
    return at > now ? at : AtClock(today + 1, *clock, zone);
  }
  return ParseDate(text, zone);
}

}  // namespace

absl::StatusOr<absl::Time> ParseBeginTime(absl::string_view text, absl::Time now,
                                          absl::TimeZone zone) {
  const std::optional<absl::Time> time = Parse(text, now, zone);
  if (time.has_value() && *time >= absl::UnixEpoch() && *time < kEnd) return *time;
  return absl::InvalidArgumentError(
      absl::StrCat("expected a time such as +10m, now+1hour, 16:00, tomorrow or "
                   "2026-12-01T10:00, got \"",
                   text, "\""));
}

}  // namespace berth
