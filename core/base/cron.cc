#include "core/base/cron.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

constexpr int kYearsAhead = 9;  // 29 February is at most 8 years away

struct Field {
  const char* name;
  int least;
  int most;
  std::vector<absl::string_view> words;  // of `least` and on; empty: only numbers
};

struct Shorthand {
  const char* word;
  const char* line;
};
constexpr Shorthand kShorthands[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

std::optional<int> ReadValue(const Field& field, absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  for (size_t i = 0; i < field.words.size(); ++i) {
    if (lower == field.words[i]) return field.least + static_cast<int>(i);
  }
  int value = 0;
  const bool digits = !text.empty() && text.size() <= 4 &&
                      text.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(text, &value)) return std::nullopt;
  if (value < field.least || value > field.most) return std::nullopt;
  return value;
}

// One part of a list: "*", "5", "1-5", "*/2", "1-5/2", "5/2".
template <size_t n>
bool ReadPart(const Field& field, absl::string_view part, std::bitset<n>* out) {
  const std::vector<absl::string_view> stepped = absl::StrSplit(part, '/');
  int step = 1;
  if (stepped.size() > 2) return false;
  if (stepped.size() == 2 && (!absl::SimpleAtoi(stepped[1], &step) || step < 1 || step > 1000)) {
    return false;
  }
  int first = field.least, last = field.most;
  if (stepped[0] != "*") {
    const std::vector<absl::string_view> ends = absl::StrSplit(stepped[0], '-');
    const std::optional<int> begin = ReadValue(field, ends[0]);
    const std::optional<int> end = ends.size() == 2 ? ReadValue(field, ends[1]) : begin;
    if (ends.size() > 2 || !begin.has_value() || !end.has_value() || *end < *begin) return false;
    first = *begin;
    // As in crontab(5): "5/2" is from 5 on.
    if (ends.size() == 2 || stepped.size() == 1) last = *end;
  }
  for (int value = first; value <= last; value += step) out->set(static_cast<size_t>(value));
  return true;
}

template <size_t n>
bool ReadField(const Field& field, absl::string_view text, std::bitset<n>* out,
               std::string* error) {
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (ReadPart(field, part, out)) continue;
    *error = absl::StrCat("\"", part, "\" is no ", field.name, ": expected ", field.least, " to ",
                          field.most, ", \"*\", a range, a list or a step");
    return false;
  }
  return true;
}

}  // namespace

std::optional<Cron> Cron::Parse(absl::string_view text, std::string* error) {
  for (const Shorthand& shorthand : kShorthands) {
    if (absl::AsciiStrToLower(text) == shorthand.word) text = shorthand.line;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (parts.size() != 5) {
    *error = absl::StrCat(
        "expected five fields, minute, hour, day, month and day of the week, as in "
        "\"30 2 * * mon-fri\", or @hourly, @daily, @weekly, @monthly, @yearly; got ",
        parts.size());
    return std::nullopt;
  }
  const Field months{
      "month",
      1,
      12,
      {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}};
  const Field weekdays{"day of the week", 0, 7, {"sun", "mon", "tue", "wed", "thu", "fri", "sat"}};
  Cron cron;
  std::bitset<8> week;
  if (!ReadField({"minute", 0, 59, {}}, parts[0], &cron.minutes_, error) ||
      !ReadField({"hour", 0, 23, {}}, parts[1], &cron.hours_, error) ||
      !ReadField({"day of the month", 1, 31, {}}, parts[2], &cron.days_, error) ||
      !ReadField(months, parts[3], &cron.months_, error) ||
      !ReadField(weekdays, parts[4], &week, error)) {
    return std::nullopt;
  }
  for (size_t day = 0; day < 8; ++day) {
    if (week[day]) cron.weekdays_.set(day % 7);
  }
  cron.any_day_ = absl::StartsWith(parts[2], "*");
  cron.any_weekday_ = absl::StartsWith(parts[4], "*");
  if (!cron.NextMinute(absl::CivilMinute(2024, 1, 1)).has_value()) {
    *error = "no date is ever like that";
    return std::nullopt;
  }
  return cron;
}

bool Cron::IsDay(absl::CivilDay day) const {
  // absl counts from Monday.
  const auto weekday = (static_cast<size_t>(absl::GetWeekday(day)) + 1) % 7;
  const bool of_month = days_[static_cast<size_t>(day.day())];
  const bool of_week = weekdays_[weekday];
  return any_day_ || any_weekday_ ? of_month && of_week : of_month || of_week;
}

// At `from` or after.
std::optional<absl::CivilMinute> Cron::NextMinute(absl::CivilMinute from) const {
  const absl::CivilYear end = absl::CivilYear(from) + kYearsAhead;
  for (absl::CivilDay day(from); absl::CivilYear(day) < end;) {
    if (!months_[static_cast<size_t>(day.month())]) {
      day = absl::CivilDay(absl::CivilMonth(day) + 1);
      continue;
    }
    if (IsDay(day)) {
      absl::CivilMinute minute = std::max(from, absl::CivilMinute(day));
      for (; absl::CivilDay(minute) == day;) {
        if (!hours_[static_cast<size_t>(minute.hour())]) {
          minute = absl::CivilMinute(absl::CivilHour(minute) + 1);
        } else if (minutes_[static_cast<size_t>(minute.minute())]) {
          return minute;
        } else {
          ++minute;
        }
      }
    }
    ++day;
  }
  return std::nullopt;
}

absl::Time Cron::Next(absl::Time after, const absl::TimeZone& zone) const {
  absl::CivilMinute from(zone.At(after).cs);
  for (;;) {
    const std::optional<absl::CivilMinute> minute = NextMinute(from);
    if (!minute.has_value()) return absl::InfiniteFuture();
    const absl::TimeZone::TimeInfo info = zone.At(absl::CivilSecond(*minute));
    const absl::Time time = info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
    if (time > after) return time;
    from = *minute + 1;
  }
}

std::optional<absl::TimeZone> FindTimeZone(const std::string& name) {
  absl::TimeZone zone = absl::UTCTimeZone();
  if (name.empty() || absl::LoadTimeZone(name, &zone)) return zone;
  return std::nullopt;
}

}  // namespace berth
