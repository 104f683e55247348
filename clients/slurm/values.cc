#include "clients/slurm/values.h"

#include <csignal>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "clients/session/begin_time.h"

namespace berth {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kMostMinutes = int64_t{10} * 366 * 24 * 60;

absl::Status BadTime(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a time such as 90 (minutes), 1:30:00 or 2-12:00:00, got \"", text, "\""));
}

bool ParseParts(absl::string_view text, std::vector<int64_t>* parts) {
  for (absl::string_view part : absl::StrSplit(text, ':')) {
    int64_t value = 0;
    const bool digits =
        !part.empty() && part.find_first_not_of("0123456789") == absl::string_view::npos;
    if (!digits || !absl::SimpleAtoi(part, &value) || value > kMostMinutes * 60) return false;
    parts->push_back(value);
  }
  return true;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseSlurmTime(absl::string_view text) {
  const std::string upper = absl::AsciiStrToUpper(text);
  if (upper == "UNLIMITED" || upper == "INFINITE" || upper == "-1") return absl::InfiniteDuration();
  const size_t dash = text.find('-');
  std::vector<int64_t> days, parts;
  const bool has_days = dash != absl::string_view::npos;
  if (has_days && (!ParseParts(text.substr(0, dash), &days) || days.size() != 1))
    return BadTime(text);
  if (!ParseParts(has_days ? text.substr(dash + 1) : text, &parts) || parts.size() > 3)
    return BadTime(text);
  const absl::Duration units[] = {absl::Hours(1), absl::Minutes(1), absl::Seconds(1)};
  // With days the first part is hours; otherwise two parts are minutes and seconds, one is minutes.
  const size_t first = has_days || parts.size() == 3 ? 0 : 1;
  absl::Duration sum = has_days ? days[0] * absl::Hours(24) : absl::ZeroDuration();
  for (size_t i = 0; i < parts.size(); ++i) sum += parts[i] * units[first + i];
  return sum == absl::ZeroDuration() ? absl::InfiniteDuration() : sum;
}

std::string SlurmElapsed(absl::Duration elapsed) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(elapsed), 0);
  const std::string clock =
      absl::StrFormat("%02d:%02d:%02d", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  const int64_t days = seconds / 86400;
  return days > 0 ? absl::StrCat(days, "-", clock) : clock;
}

std::string ShortElapsed(absl::Duration elapsed) {
  const int64_t seconds = std::max<int64_t>(absl::ToInt64Seconds(elapsed), 0);
  if (seconds >= 86400) return SlurmElapsed(elapsed);
  if (seconds < 3600) return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
  return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string SlurmMoment(absl::Time time, absl::TimeZone zone) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%S", time, zone);
}

absl::StatusOr<absl::Time> ParseSlurmMoment(absl::string_view text, absl::Time now,
                                            absl::TimeZone zone) {
  std::string error;
  absl::Time time;
  for (const char* format : {"%m/%d/%y-%H:%M:%S", "%m/%d/%y-%H:%M", "%m/%d/%y"}) {
    if (absl::ParseTime(format, text, zone, &time, &error)) return time;
  }
  if (absl::string_view back = text; absl::ConsumePrefix(&back, "now-")) {
    const auto ahead = ParseBeginTime(absl::StrCat("now+", back), now, zone);
    if (!ahead.ok()) return ahead.status();
    return now - (*ahead - now);
  }
  if (text == "midnight") {  // the last one, unlike --begin
    return absl::FromCivil(absl::CivilSecond(absl::CivilDay(zone.At(now).cs)), zone);
  }
  return ParseBeginTime(text, now, zone);
}

absl::StatusOr<int64_t> ParseSlurmMemory(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(
      absl::StrCat("expected a memory size such as 4096 (MiB), 4G or 1.5T, got \"", text, "\""));
  absl::string_view rest = text;
  if (rest.size() > 2 && (rest.back() == 'B' || rest.back() == 'b') &&
      absl::ascii_isalpha(static_cast<unsigned char>(rest[rest.size() - 2]))) {
    rest.remove_suffix(1);
  }
  double unit = static_cast<double>(kMiB);
  constexpr absl::string_view kUnits = "KMGTP";
  if (!rest.empty() && absl::ascii_isalpha(static_cast<unsigned char>(rest.back()))) {
    const size_t at = kUnits.find(absl::ascii_toupper(static_cast<unsigned char>(rest.back())));
    if (at == absl::string_view::npos) return bad;
    unit = static_cast<double>(int64_t{1} << (10 * (at + 1)));
    rest.remove_suffix(1);
  }
  double number = 0;
  const bool plain = rest.find_first_not_of("0123456789.") == absl::string_view::npos;
  if (rest.empty() || !plain || !absl::SimpleAtod(rest, &number)) return bad;
  const double bytes = number * unit;
  if (bytes > 1e18) return bad;
  const auto whole = static_cast<int64_t>(bytes);
  return whole == 0 ? 0 : std::max(whole, kMiB);
}

std::string SlurmMemory(int64_t bytes) {
  constexpr absl::string_view kUnits = "MGT";
  int64_t value = bytes / kMiB;
  size_t unit = 0;
  while (unit + 1 < kUnits.size() && value >= 1024 && value % 1024 == 0) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(value, kUnits.substr(unit, 1));
}

absl::StatusOr<int32_t> ParseSlurmCount(absl::string_view option, absl::string_view text,
                                        int32_t least, int32_t most) {
  int32_t value = 0;
  const bool digits =
      !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
  if (digits && absl::SimpleAtoi(text, &value) && value >= least && value <= most) return value;
  return absl::InvalidArgumentError(absl::StrCat("--", option, ": expected a number from ", least,
                                                 " to ", most, ", got \"", text, "\""));
}

absl::StatusOr<int> ParseSignal(absl::string_view text) {
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number > 0 && number < NSIG) return number;
  const std::string upper = absl::AsciiStrToUpper(absl::StripPrefix(text, "SIG"));
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* known = sigabbrev_np(signal);
    if (known != nullptr && upper == known) return signal;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a signal such as USR1 or 10, got \"", text, "\""));
}

absl::StatusOr<SignalBefore> ParseSignalBefore(absl::string_view text) {
  SignalBefore result;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('@', 1));
  absl::string_view who = parts.first;
  if (absl::ConsumePrefix(&who, "R:") || absl::StartsWith(who, "RB:")) {
    return absl::InvalidArgumentError("--signal: R: is for reservations, which are not built");
  }
  result.batch = absl::ConsumePrefix(&who, "B:");
  const absl::StatusOr<int> signal = ParseSignal(who);
  if (!signal.ok()) return signal.status();
  result.signal = *signal;
  if (text.find('@') == absl::string_view::npos) return result;
  const auto seconds = ParseSlurmCount("signal", parts.second, 0, 65535);
  if (!seconds.ok()) return seconds.status();
  result.before = absl::Seconds(*seconds);
  return result;
}

}  // namespace berth
