#include "support/quantity.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace berth {
namespace {

// Wide enough for 19 digits times 2^60 bytes.
__extension__ typedef __int128 Wide;
constexpr int kMaxWholeDigits = 19;
constexpr int kMaxFractionDigits = 9;

// A decimal number without sign or exponent: value = whole + fraction / scale.
struct Decimal {
  Wide whole = 0;
  Wide fraction = 0;
  Wide scale = 1;
};

// Parses the number at the front of `text`. False if there is none or it has too many digits.
bool TakeDecimal(absl::string_view* text, Decimal* out) {
  int whole = 0;
  int fraction = 0;
  size_t at = 0;
  bool point = false;
  for (; at < text->size(); ++at) {
    const char c = (*text)[at];
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) break;
    if (point ? ++fraction > kMaxFractionDigits : ++whole > kMaxWholeDigits) return false;
    Wide& digits = point ? out->fraction : out->whole;
    digits = digits * 10 + (c - '0');
    if (point) out->scale *= 10;
  }
  if (whole == 0 || (point && fraction == 0)) return false;
  text->remove_prefix(at);
  return true;
}

absl::Status Wrong(absl::string_view text, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("expected ", expected, ", got \"", text, "\""));
}

// number * unit, in whole units of the field.
absl::StatusOr<int64_t> Scale(const Decimal& number, Wide unit, absl::string_view text,
                              absl::string_view smallest) {
  if (number.fraction * unit % number.scale != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is more precise than ", smallest));
  }
  const Wide value = number.whole * unit + number.fraction * unit / number.scale;
  if (value > std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is too large"));
  }
  return static_cast<int64_t>(value);
}

struct ByteUnit {
  const char* suffix;
  int64_t bytes;
};
constexpr ByteUnit kBinaryUnits[] = {
    {"Ei", int64_t{1} << 60}, {"Pi", int64_t{1} << 50}, {"Ti", int64_t{1} << 40},
    {"Gi", int64_t{1} << 30}, {"Mi", int64_t{1} << 20}, {"Ki", int64_t{1} << 10},
};
constexpr ByteUnit kDecimalUnits[] = {
    {"E", 1'000'000'000'000'000'000},
    {"P", 1'000'000'000'000'000},
    {"T", 1'000'000'000'000},
    {"G", 1'000'000'000},
    {"M", 1'000'000},
    {"k", 1'000},
};

// 0 for an unknown suffix. "B" may follow every unit or be the suffix itself; kilo may be K too.
int64_t BytesOfSuffix(absl::string_view suffix) {
  if (!suffix.empty() && suffix.back() == 'B') suffix.remove_suffix(1);
  if (suffix.empty()) return 1;
  if (suffix == "K") suffix = "k";
  for (const ByteUnit& unit : kBinaryUnits) {
    if (suffix == unit.suffix) return unit.bytes;
  }
  for (const ByteUnit& unit : kDecimalUnits) {
    if (suffix == unit.suffix) return unit.bytes;
  }
  return 0;
}

// Corrects "3 GB", "3gb" or "3gi" to a valid amount; "" if `text` is not an amount.
std::string LikelyBytes(absl::string_view text) {
  absl::string_view rest = absl::StripAsciiWhitespace(text);
  const size_t length = rest.size();
  Decimal number;
  if (!TakeDecimal(&rest, &number)) return "";
  const absl::string_view digits = absl::StripAsciiWhitespace(text).substr(0, length - rest.size());
  std::string suffix(absl::StripAsciiWhitespace(rest));
  absl::AsciiStrToUpper(&suffix);
  if (suffix.size() > 1 && suffix[1] == 'I') suffix[1] = 'i';
  return BytesOfSuffix(suffix) == 0 ? "" : absl::StrCat(digits, suffix);
}

constexpr Wide kNanosPerSecond = 1'000'000'000;
constexpr int64_t kMaxSeconds = 315'576'000'000;  // of google.protobuf.Duration

struct TimeUnit {
  const char* suffix;
  Wide nanos;
};
constexpr TimeUnit kTimeUnits[] = {
    {"d", 86400 * kNanosPerSecond},
    {"h", 3600 * kNanosPerSecond},
    {"ms", 1'000'000},
    {"m", 60 * kNanosPerSecond},
    {"s", kNanosPerSecond},
    {"us", 1'000},
    {"ns", 1},
};

// Converts "3600" and Slurm's "30:00" (minutes first), "01:30:00" and "2-12:00:00" to a valid
// duration; "" for other texts.
std::string LikelyDuration(absl::string_view text) {
  static constexpr const char* kUnits[] = {"h", "m", "s"};
  constexpr size_t kMaxDigits = 6;
  std::string out;
  size_t dash = text.find('-');
  if (dash != absl::string_view::npos) {
    absl::StrAppend(&out, text.substr(0, dash), "d");
    text.remove_prefix(dash + 1);
  }
  std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() > 3) return "";
  const size_t first = dash != absl::string_view::npos ? 0 : 3 - parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    int value = 0;
    if (parts[i].size() > kMaxDigits || !absl::SimpleAtoi(parts[i], &value) || value < 0) return "";
    if (value > 0) absl::StrAppend(&out, value, kUnits[first + i]);
  }
  return ParseDuration(out).ok() ? out : "";
}

Wide TakeTimeUnit(absl::string_view* text) {
  size_t length = 0;
  while (length < text->size() && absl::ascii_isalpha(static_cast<unsigned char>((*text)[length])))
    ++length;
  const absl::string_view suffix = text->substr(0, length);
  text->remove_prefix(length);
  for (const TimeUnit& unit : kTimeUnits) {
    if (suffix == unit.suffix) return unit.nanos;
  }
  return 0;
}

absl::Status WrongDuration(absl::string_view text) {
  const absl::Status wrong = Wrong(text, "a duration such as 90s, 1h30m or 500ms");
  const std::string likely = LikelyDuration(text);
  if (likely.empty()) return wrong;
  return absl::InvalidArgumentError(absl::StrCat(wrong.message(), "; did you mean ", likely, "?"));
}

}  // namespace

absl::StatusOr<int64_t> ParseCpuMillis(absl::string_view text) {
  absl::string_view rest = text;
  Decimal number;
  const bool ok = TakeDecimal(&rest, &number);
  if (!ok || (!rest.empty() && rest != "m")) return Wrong(text, "cores such as 2, 1.5 or 500m");
  return Scale(number, rest == "m" ? 1 : 1000, text, "a thousandth of a core");
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view rest = text;
  Decimal number;
  const bool ok = TakeDecimal(&rest, &number);
  const int64_t unit = ok ? BytesOfSuffix(rest) : 0;
  if (unit == 0) {
    const std::string likely = LikelyBytes(text);
    const absl::Status wrong = Wrong(text, "bytes such as 64, 512Mi, 1.5Ti or 80GB");
    if (likely.empty()) return wrong;
    return absl::InvalidArgumentError(
        absl::StrCat(wrong.message(), "; did you mean ", likely, "?"));
  }
  return Scale(number, unit, text, "a byte");
}

absl::StatusOr<SecondsAndNanos> ParseDuration(absl::string_view text) {
  if (text == "0") return SecondsAndNanos{};
  absl::string_view rest = text;
  Wide total = 0;
  do {
    Decimal number;
    const Wide unit = TakeDecimal(&rest, &number) ? TakeTimeUnit(&rest) : 0;
    if (unit == 0) return WrongDuration(text);
    if (number.fraction * unit % number.scale != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", text, "\" is more precise than a nanosecond"));
    }
    total += number.whole * unit + number.fraction * unit / number.scale;
    if (total > kMaxSeconds * kNanosPerSecond) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is too large"));
    }
  } while (!rest.empty());
  return SecondsAndNanos{static_cast<int64_t>(total / kNanosPerSecond),
                         static_cast<int32_t>(total % kNanosPerSecond)};
}

std::string FormatCpuMillis(int64_t millis) {
  if (millis % 1000 == 0) return absl::StrCat(millis / 1000);
  if (millis > 1000 && millis % 100 == 0)
    return absl::StrCat(millis / 1000, ".", millis % 1000 / 100);
  return absl::StrCat(millis, "m");
}

std::string FormatBytes(int64_t bytes) {
  if (bytes == 0) return "0";
  for (const ByteUnit& unit : kBinaryUnits) {
    if (bytes % unit.bytes == 0) return absl::StrCat(bytes / unit.bytes, unit.suffix);
  }
  for (const ByteUnit& unit : kDecimalUnits) {
    if (bytes % unit.bytes == 0) return absl::StrCat(bytes / unit.bytes, unit.suffix);
  }
  return absl::StrCat(bytes);
}

std::string FormatDuration(SecondsAndNanos duration) {
  std::string out;
  const int64_t hours = duration.seconds / 3600;
  const int64_t minutes = duration.seconds % 3600 / 60;
  const int64_t seconds = duration.seconds % 60;
  if (hours != 0) absl::StrAppend(&out, hours, "h");
  if (minutes != 0) absl::StrAppend(&out, minutes, "m");
  if (seconds != 0) absl::StrAppend(&out, seconds, "s");
  const int32_t nanos = duration.nanos;
  if (nanos % 1'000'000 == 0) {
    if (nanos != 0) absl::StrAppend(&out, nanos / 1'000'000, "ms");
  } else if (nanos % 1'000 == 0) {
    absl::StrAppend(&out, nanos / 1'000, "us");
  } else {
    absl::StrAppend(&out, nanos, "ns");
  }
  return out.empty() ? "0s" : out;
}

std::string ShortestReal(double value, int digits) {
  for (int precision = 6; precision < digits; ++precision) {
    const std::string text = absl::StrFormat("%.*g", precision, value);
    double back = 0;
    if (absl::SimpleAtod(text, &back) && back == value) return text;
  }
  return absl::StrFormat("%.*g", digits, value);
}

}  // namespace berth
