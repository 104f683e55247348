#include "server/validation/values.h"

#include <string>

#include "absl/strings/str_split.h"

namespace berth {

void CheckRange(const FieldPath& path, int64_t value, int64_t low, int64_t high,
                Findings& findings) {
  if (value >= low && value <= high) return;
  findings.Invalid(path, absl::StrCat("must be ", low, "..", high, ", is ", value));
}

void CheckDuration(const FieldPath& path, const google::protobuf::Duration& duration,
                   absl::Duration low, absl::Duration high, Findings& findings) {
  const int64_t seconds = duration.seconds();
  const int64_t nanos = duration.nanos();
  const bool formed = nanos > -1'000'000'000 && nanos < 1'000'000'000 &&
                      (seconds == 0 || nanos == 0 || (seconds > 0) == (nanos > 0));
  if (!formed) {
    findings.Invalid(path, "nanos must be within one second and have the sign of seconds");
    return;
  }
  const absl::Duration value = absl::Seconds(seconds) + absl::Nanoseconds(nanos);
  if (value >= low && value <= high) return;
  findings.Invalid(
      path, absl::StrCat("must be ", absl::FormatDuration(low), "..", absl::FormatDuration(high),
                         ", is ", absl::FormatDuration(value)));
}

void CheckTimestamp(const FieldPath& path, const google::protobuf::Timestamp& time,
                    Findings& findings) {
  constexpr int64_t kYear1 = -62135596800;
  constexpr int64_t kYear9999End = 253402300799;
  if (time.seconds() >= kYear1 && time.seconds() <= kYear9999End && time.nanos() >= 0 &&
      time.nanos() < 1'000'000'000) {
    return;
  }
  findings.Invalid(path, "must be a time in the years 1 to 9999 with nanos 0..999999999");
}

bool KnownField(const google::protobuf::Descriptor* message, absl::string_view path) {
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (message == nullptr) return false;
    const auto* field = message->FindFieldByName(std::string(name));
    if (field == nullptr) return false;
    message = field->is_repeated() ? nullptr : field->message_type();
  }
  return true;
}

}  // namespace berth
