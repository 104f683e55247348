// Times of a schedule, written as in crontab(5): five fields, minute, hour, day of the month,
// month, day of the week, each "*", a number, a name (jan, mon), a range, a list, or any of these
// with a step ("*/15", "9-17/2"); or "@hourly", "@daily", "@weekly", "@monthly", "@yearly". If both
// days are restricted, a day that matches either counts (as in Vixie cron). 7 is Sunday, like 0.
//
// Where clocks are set forward, a time that does not exist is the moment of the change; where they
// are set back, a time that exists twice is its first one.
#ifndef BERTH_CORE_BASE_CRON_H_
#define BERTH_CORE_BASE_CRON_H_

#include <bitset>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace berth {

class Cron {
 public:
  // Nothing, and the reason in `error`, if the text is no such line or names no date that exists.
  static std::optional<Cron> Parse(absl::string_view text, std::string* error);

  // The first time after `after`. Infinite future if there is none within 9 years.
  absl::Time Next(absl::Time after, const absl::TimeZone& zone) const;

 private:
  Cron() = default;
  bool IsDay(absl::CivilDay day) const;
  std::optional<absl::CivilMinute> NextMinute(absl::CivilMinute from) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;     // 1..31
  std::bitset<13> months_;   // 1..12
  std::bitset<7> weekdays_;  // 0 = Sunday
  bool any_day_ = true;
  bool any_weekday_ = true;
};

// "Europe/Berlin"; "" and "UTC" are UTC. Nothing for a name that the node's database lacks.
std::optional<absl::TimeZone> FindTimeZone(const std::string& name);

}  // namespace berth

#endif  // BERTH_CORE_BASE_CRON_H_
